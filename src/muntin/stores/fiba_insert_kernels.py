# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA: bulk insert (Tangwongsan et al., VLDB 2023, section 5).

`locate` searches for all entries in one sweep: those whose time is there already are combined in
place, the others become *pending* at a leaf. `settle` then works level by level: a node takes its
pending items or is cut into several nodes, and each new node becomes a pending item (entry, right
child) of the parent. Nodes to be worked on are grouped by identity and kept in order of time at every
level; a node in which only values changed takes its place among them.

Scratch ``X = (K, C, P, G, B, F, L, NK, NC, NP, NG, NB, TK, TC, TP)``: pending keys, right children and
partials; groups (node, first pending); found nodes and their levels; the same for the next level;
and room for one node's items.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_kernels import (
    CELLS,
    COUNT,
    FLAGS,
    HEIGHT,
    KIDS,
    LEAF,
    LEFT,
    LEFT_FINGER,
    MU,
    PARENT,
    PATH,
    RESUME,
    RIGHT,
    RIGHT_FINGER,
    ROOT,
    SIZE,
    STRIDE,
    TIMES,
    TOP,
    allocate,
    descend,
    insert,
    raise_root,
    rank,
    recount,
    refresh,
    room,
)
from muntin.stores.placeholders import combine, get, lift, put
from muntin.stores.queue_kernels import COMBINES, FULL, OK

INFINITY = 2**63 - 1
# State between two calls of settle: level, pending, groups, found, topmost touched spine nodes.
LEVEL, PENDING, GROUPS, FOUND, TOP_LEFT, TOP_RIGHT = range(RESUME, RESUME + 6)
INNER = frozenset(
    {
        "above",
        "locate",
        "start_node",
        "settle_level",
        "take_items",
        "cut_items",
    }
)


def insert_many(D: Any, ts: Any, vs: Any, start: int) -> tuple[int, int]:
    """One after the other, better for a few; (how far it came, the status that stopped it)."""
    for j in range(start, len(ts)):
        status = insert(D, ts[j], vs[j])
        if status != OK:
            return j, status
    return len(ts), OK


def insert_sorted(D: Any, X: Any, ts: Any, vs: Any) -> int:
    """Entries in order of time, repeats allowed: amortised O(m log(d/m)), O(m) in order.

    FULL means: make room and call `settle`, the entries are all in X by then.
    """
    if len(ts) == 0:
        return OK
    locate(D, X, ts, vs)
    return settle(D, X)


def above(D: Any, x: int) -> int:
    """The time before which all entries below x lie; x is the root or on a spine."""
    N = D[1]
    if N[x * STRIDE + FLAGS] & RIGHT:
        return INFINITY
    first: int = N[N[x * STRIDE + PARENT] * STRIDE + TIMES]
    return first


def locate(D: Any, X: Any, ts: Any, vs: Any) -> None:
    """Pass 1: find the place of every entry with a stack of (node, time it ends at) from a finger."""
    S, N, V = D
    K, P, G, B, F, L = X[0], X[2], X[3], X[4], X[5], X[6]
    pending, groups, found = 0, 0, 0
    depth, level = 0, 0
    last = -1  # index of the entry of the previous time, -1 if that was found in the tree
    S[PATH], S[PATH + 1] = start_node(D, ts[0])
    level = S[PATH + 1]
    S[PATH + 1] = above(D, S[PATH])
    for j in range(len(ts)):
        t = ts[j]
        if last >= 0 and K[last] == t:
            put(P, last, combine(get(P, last), lift(vs[j])))
            S[COMBINES] += 1
            continue
        while t >= S[PATH + 2 * depth + 1]:
            level += 1
            if depth > 0:
                depth -= 1
            else:
                S[PATH] = N[S[PATH] * STRIDE + PARENT]
                S[PATH + 1] = above(D, S[PATH])
        x, end = S[PATH + 2 * depth], S[PATH + 2 * depth + 1]
        while True:
            i = rank(D, x, t)
            at = x * STRIDE
            if i < N[at + COUNT] and N[at + TIMES + i] == t:
                put(V, x * CELLS + i, combine(get(V, x * CELLS + i), lift(vs[j])))
                S[COMBINES] += 1
                F[found], L[found] = x, level
                found += 1
                last = -1
                break
            if N[at + FLAGS] & LEAF:
                if groups == 0 or G[groups - 1] != x:
                    G[groups], B[groups] = x, pending
                    groups += 1
                K[pending] = t
                put(P, pending, lift(vs[j]))
                last = pending
                pending += 1
                break
            end = N[at + TIMES + i] if i < N[at + COUNT] else end
            x = N[at + KIDS + i]
            depth += 1
            level -= 1
            S[PATH + 2 * depth], S[PATH + 2 * depth + 1] = x, end
    S[SIZE] += pending
    S[LEVEL], S[PENDING], S[GROUPS], S[FOUND] = 0, pending, groups, found
    S[TOP_LEFT] = S[TOP_RIGHT] = -1


def start_node(D: Any, t: int) -> tuple[int, int]:
    """(node, level): the root or the spine node nearest to a finger that covers t."""
    S, N, _ = D
    x = S[TOP]
    n = N[x * STRIDE + COUNT]
    level = 0
    if n > 0 and t < N[x * STRIDE + TIMES]:
        x = S[LEFT_FINGER]
        while N[x * STRIDE + FLAGS] & ROOT != ROOT and N[x * STRIDE + TIMES + N[x * STRIDE] - 1] < t:
            x = N[x * STRIDE + PARENT]
            level += 1
        return x, level
    if n > 0 and t > N[x * STRIDE + TIMES + n - 1]:
        x = S[RIGHT_FINGER]
        while N[x * STRIDE + FLAGS] & ROOT != ROOT and t < N[x * STRIDE + TIMES]:
            x = N[x * STRIDE + PARENT]
            level += 1
        return x, level
    return x, S[HEIGHT] - 1


def settle(D: Any, X: Any) -> int:
    """Passes 2 and 3: level by level upwards, then down the spines. FULL: make room, call again."""
    S = D[0]
    L = X[6]
    while True:
        level, groups, found = S[LEVEL], S[GROUPS], S[FOUND]
        waiting = 0  # nodes found on this level or above
        for j in range(found):
            if L[j] >= level:
                waiting += 1
        if groups == 0 and waiting == 0:
            break
        if room(D) < S[PENDING] // (MU + 1) + groups + 2:
            return FULL
        settle_level(D, X, level, groups, found)
        S[LEVEL] = level + 1
    if S[TOP_LEFT] >= 0:
        descend(D, S[TOP_LEFT], LEFT)
    if S[TOP_RIGHT] >= 0:
        descend(D, S[TOP_RIGHT], RIGHT)
    return OK


def settle_level(D: Any, X: Any, level: int, groups: int, found: int) -> None:
    """Work on the nodes of one level, those with pending items and those found, in order of time."""
    S, N, _ = D
    K, C, P, G, B, F, L, NK, NC, NP, NG, NB = X[:12]
    pending = S[PENDING]
    g, f = 0, 0
    emitted, parents = 0, 0
    while True:
        while f < found and L[f] != level:
            f += 1
        if g == groups and f == found:
            break
        x = F[f] if g == groups else G[g]
        if g < groups and f < found and N[F[f] * STRIDE + TIMES] < N[x * STRIDE + TIMES]:
            x = F[f]
        low, high = 0, 0
        if g < groups and G[g] == x:
            low = B[g]
            high = B[g + 1] if g + 1 < groups else pending
            g += 1
        while f < found and (L[f] != level or F[f] == x):
            f += 1
        before = emitted
        if N[x * STRIDE + COUNT] + high - low < 2 * MU:
            take_items(D, X, x, low, high)
            y = x
        else:
            y, emitted = cut_items(D, X, x, low, high, emitted)
        flags = N[x * STRIDE + FLAGS] & ROOT
        if flags == 0 or emitted > before:
            parent = N[x * STRIDE + PARENT]
            if parents == 0 or NG[parents - 1] != parent:
                NG[parents], NB[parents] = parent, before
                parents += 1
        if flags == LEFT:
            S[TOP_LEFT] = x
        if N[y * STRIDE + FLAGS] & ROOT == RIGHT:
            S[TOP_RIGHT] = y
    for j in range(emitted):
        K[j], C[j] = NK[j], NC[j]
        put(P, j, get(NP, j))
    for j in range(parents):
        G[j], B[j] = NG[j], NB[j]
    S[PENDING], S[GROUPS] = emitted, parents


def take_items(D: Any, X: Any, x: int, low: int, high: int) -> None:
    """Merge the pending items low..high-1 into node x, which has room for them, from the back."""
    N, V = D[1], D[2]
    K, C, P = X[0], X[1], X[2]
    at, cell = x * STRIDE, x * CELLS
    leaf = N[at + FLAGS] & LEAF != 0
    i = N[at + COUNT] - 1
    j = high - 1
    to = i + high - low
    N[at + COUNT] = to + 1
    while j >= low:
        if i >= 0 and N[at + TIMES + i] > K[j]:
            N[at + TIMES + to] = N[at + TIMES + i]
            put(V, cell + to, get(V, cell + i))
            if not leaf:
                N[at + KIDS + to + 1] = N[at + KIDS + i + 1]
            i -= 1
        else:
            N[at + TIMES + to] = K[j]
            put(V, cell + to, get(P, j))
            if not leaf:
                N[at + KIDS + to + 1] = C[j]
                N[C[j] * STRIDE + PARENT] = x
            j -= 1
        to -= 1
    refresh(D, x)
    recount(D, x)


def cut_items(D: Any, X: Any, x: int, low: int, high: int, emitted: int) -> tuple[int, int]:
    """Merge pending items into node x and cut it; (last piece, emitted items).

    Nodes of MU entries are each followed by one entry that goes up as the pending item of the next
    node; the last node takes the rest. The first piece stays in x, so the left finger and the
    parent's pointer remain right; the last piece inherits the right spine.
    """
    S, N, V = D
    K, C, P, NK, NC, NP, TK, TC, TP = X[0], X[1], X[2], X[7], X[8], X[9], X[12], X[13], X[14]
    at = x * STRIDE
    n, leaf = N[at + COUNT], N[at + FLAGS] & LEAF
    for j in range(n):
        TK[j] = N[at + TIMES + j]
        put(TP, j, get(V, x * CELLS + j))
        if not leaf:
            TC[j] = N[at + KIDS + j + 1]
    if x == S[TOP]:
        raise_root(D)
    right = N[at + FLAGS] & RIGHT
    N[at + FLAGS] &= LEAF | LEFT
    remaining = n + high - low
    i, j, y = 0, low, x
    while True:
        size = remaining if remaining < 2 * MU else MU
        at = y * STRIDE
        for to in range(size):
            if i < n and (j >= high or TK[i] < K[j]):
                N[at + TIMES + to] = TK[i]
                put(V, y * CELLS + to, get(TP, i))
                kid = TC[i]
                i += 1
            else:
                N[at + TIMES + to] = K[j]
                put(V, y * CELLS + to, get(P, j))
                kid = C[j]
                j += 1
            if not leaf:
                N[at + KIDS + to + 1] = kid
                N[kid * STRIDE + PARENT] = y
        N[at + COUNT] = size
        remaining -= size
        if remaining == 0:
            break
        refresh(D, y)
        recount(D, y)
        y = allocate(D, leaf)
        if i < n and (j >= high or TK[i] < K[j]):
            NK[emitted] = TK[i]
            put(NP, emitted, get(TP, i))
            kid = TC[i]
            i += 1
        else:
            NK[emitted] = K[j]
            put(NP, emitted, get(P, j))
            kid = C[j]
            j += 1
        if not leaf:
            N[y * STRIDE + KIDS] = kid
            N[kid * STRIDE + PARENT] = y
        NC[emitted] = y
        emitted += 1
        remaining -= 1
    N[y * STRIDE + FLAGS] |= right
    if leaf and right:
        S[RIGHT_FINGER] = y
    refresh(D, y)
    recount(D, y)
    return y, emitted
