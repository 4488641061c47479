# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA: bulk insert (Tangwongsan et al., VLDB 2023, section 5).

Entries newer than all others are appended. For the rest `locate` searches in one sweep: those whose
time is there already are combined in place, the others become *pending* at a leaf. `settle` then works
level by level: a node takes its pending items or is cut into several nodes, and each new node becomes a
pending item (entry, right child) of the parent. Nodes to be worked on are grouped by identity and kept
in order of time at every level; a node in which only values changed takes its place among them.

Scratch ``X = (K, C, P, G, B, F, L, NK, NC, NP, NG, NB, TK, TC, TP, R)``: pending keys, right children
and partials; groups (node, first pending); found nodes and their levels; the same for the next level;
room for the items of one node and those pending there; and a few integers: how many there are of each.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import close_left, descend, refresh
from muntin.stores.fiba_insert_kernels import append, raise_root
from muntin.stores.fiba_node_kernels import (
    COUNT,
    EARLIEST,
    FLAGS,
    HEIGHT,
    KIDS,
    LEAF,
    LEFT,
    MOST,
    MU,
    NEWEST,
    PARENT,
    PATH,
    RIGHT,
    RIGHT_FINGER,
    ROOT,
    SIZE,
    SKIP,
    TIMES,
    TOP,
    allocate,
    rank,
    room,
)
from muntin.stores.fiba_search_kernels import start_node
from muntin.stores.placeholders import combine, get, lift, put
from muntin.stores.queue_kernels import COMBINES, FULL, OK

LATEST = 2**63 - 1
PENDING, GROUPS, FOUND, TOP_LEFT, TOP_RIGHT = range(5)  # of R


def insert_bulk(D: Any, X: Any, ts: Any, vs: Any) -> int:
    """Entries in order of time, repeats allowed, late ones and newer ones.

    FULL, and nothing done, if there may be too few nodes for them.
    """
    if room(D) < nodes_for(D, len(ts)):
        return FULL
    late = count_late(D, ts)
    if late > 0:
        insert_sorted(D, X, ts, vs, late)
    append_many(D, ts, vs, late)
    return OK


def nodes_for(D: Any, m: int) -> int:
    """So many nodes are enough for m more entries."""
    return m // MU + 2 * D[0][HEIGHT] + 64


def count_late(D: Any, ts: Any) -> int:
    """How many of the sorted times are not newer than all entries."""
    newest = D[0][NEWEST]
    low, high = 0, len(ts)
    while low < high:
        middle = (low + high) >> 1
        if ts[middle] <= newest:
            low = middle + 1
        else:
            high = middle
    return low


def append_many(D: Any, ts: Any, vs: Any, start: int) -> int:
    """Entries in order of time, newer than all others, from ``start`` on; how far it came."""
    j = start
    while j < len(ts):
        p = lift(vs[j])
        after = j + 1
        while after < len(ts) and ts[after] == ts[j]:
            p = combine(p, lift(vs[after]))
            D[0][COMBINES] += 1
            after += 1
        if append(D, ts[j], p) != OK:
            return j
        j = after
    return j


def insert_sorted(D: Any, X: Any, ts: Any, vs: Any, m: int) -> int:
    """The first m entries, in order of time, none of them newer than all others: O(m log(d/m)).

    FULL, and nothing done, if there may be too few nodes for them.
    """
    if room(D) < nodes_for(D, m):
        return FULL
    if D[0][SKIP] > 0:
        close_left(D)
    locate(D, X, ts, vs, m)
    settle(D, X)
    return OK


def until(D: Any, x: int) -> int:
    """The time before which all entries below x lie; x is the root or on a spine."""
    N = D[1]
    return LATEST if N[x + FLAGS] & RIGHT else N[N[x + PARENT] + TIMES]


def begins(D: Any, x: int) -> int:
    """The time of the first entry of x; of an empty finger, by its side."""
    N = D[1]
    if N[x + COUNT] > 0:
        return N[x + TIMES]
    return EARLIEST if N[x + FLAGS] & LEFT else LATEST


def locate(D: Any, X: Any, ts: Any, vs: Any, m: int) -> None:
    """Pass 1: find the place of the first m entries with a stack of (node, time it ends at)."""
    S, N, _ = D
    K, P, R = X[0], X[2], X[15]
    R[PENDING] = R[GROUPS] = R[FOUND] = 0
    R[TOP_LEFT] = R[TOP_RIGHT] = -1
    last = -1  # the pending item of the previous time, -1 if that was found in the tree
    depth = 0
    S[PATH], level = start_node(D, ts[0])
    S[PATH + 1] = until(D, S[PATH])
    for j in range(m):
        t = ts[j]
        if last >= 0 and K[last] == t:
            put(P, last, combine(get(P, last), lift(vs[j])))
            S[COMBINES] += 1
            continue
        while t >= S[PATH + 2 * depth + 1] and S[PATH + 2 * depth] != S[TOP]:
            level += 1
            if depth > 0:
                depth -= 1
            else:
                S[PATH] = N[S[PATH] + PARENT]
                S[PATH + 1] = until(D, S[PATH])
        x, end = S[PATH + 2 * depth], S[PATH + 2 * depth + 1]
        i = rank(D, x, t)
        while N[x + FLAGS] & LEAF == 0:
            if i < N[x + COUNT]:
                end = N[x + TIMES + i]
                if end == t:
                    break
            x = N[x + KIDS + i]
            depth += 1
            level -= 1
            S[PATH + 2 * depth], S[PATH + 2 * depth + 1] = x, end
            i = rank(D, x, t)
        last = place(D, X, x, i, level, t, vs[j])
    S[SIZE] += R[PENDING]


def place(D: Any, X: Any, x: int, i: int, level: int, t: int, v: Any) -> int:
    """Combine entry i of node x with v if it has time t, else make v pending there; its item, or -1."""
    S, N, V = D
    K, P, G, B, F, L, R = X[0], X[2], X[3], X[4], X[5], X[6], X[15]
    if i < N[x + COUNT] and N[x + TIMES + i] == t:
        put(V, x + i, combine(get(V, x + i), lift(v)))
        S[COMBINES] += 1
        F[R[FOUND]], L[R[FOUND]] = x, level
        R[FOUND] += 1
        return -1
    pending = R[PENDING]
    if R[GROUPS] == 0 or G[R[GROUPS] - 1] != x:
        G[R[GROUPS]], B[R[GROUPS]] = x, pending
        R[GROUPS] += 1
    K[pending] = t
    put(P, pending, lift(v))
    R[PENDING] = pending + 1
    return pending


def settle(D: Any, X: Any) -> None:
    """Passes 2 and 3: level by level upwards, then down the spines."""
    L, R = X[6], X[15]
    level = 0
    while True:
        waiting = R[GROUPS]  # nodes to be worked on, on this level or above
        for j in range(R[FOUND]):
            if L[j] >= level:
                waiting += 1
        if waiting == 0:
            break
        settle_level(D, X, level)
        level += 1
    if R[TOP_LEFT] >= 0:
        descend(D, R[TOP_LEFT], LEFT)
    if R[TOP_RIGHT] >= 0:
        descend(D, R[TOP_RIGHT], RIGHT)


def settle_level(D: Any, X: Any, level: int) -> None:
    """Work on the nodes of one level, those with pending items and those found, in order of time."""
    N = D[1]
    G, B, F, L, NG, NB, R = X[3], X[4], X[5], X[6], X[10], X[11], X[15]
    groups, found, pending = R[GROUPS], R[FOUND], R[PENDING]
    g, f = 0, 0
    emitted, parents = 0, 0
    while True:
        while f < found and L[f] != level:
            f += 1
        if g == groups and f == found:
            break
        x = F[f] if g == groups else G[g]
        if g < groups and f < found and begins(D, F[f]) < begins(D, x):
            x = F[f]
        low, high = 0, 0
        if g < groups and G[g] == x:
            low = B[g]
            high = B[g + 1] if g + 1 < groups else pending
            g += 1
        while f < found and (L[f] != level or F[f] == x):
            f += 1
        before = emitted
        y = x
        if N[x + COUNT] + high - low <= MOST:
            take_items(D, X, x, low, high)
        else:
            y, emitted = cut_items(D, X, x, low, high, emitted)
        flags = N[x + FLAGS] & ROOT
        if flags == 0 or emitted > before:
            parent = N[x + PARENT]
            if parents == 0 or NG[parents - 1] != parent:
                NG[parents], NB[parents] = parent, before
                parents += 1
        if flags == LEFT or (level == 0 and flags == ROOT):
            R[TOP_LEFT] = x
        if N[y + FLAGS] & ROOT == RIGHT:
            R[TOP_RIGHT] = y
    next_level(X, emitted, parents)


def next_level(X: Any, emitted: int, parents: int) -> None:
    """What was emitted is pending now, and the parents are to be worked on."""
    K, C, P, G, B = X[0], X[1], X[2], X[3], X[4]
    NK, NC, NP, NG, NB, R = X[7], X[8], X[9], X[10], X[11], X[15]
    for j in range(emitted):
        K[j], C[j] = NK[j], NC[j]
        put(P, j, get(NP, j))
    for j in range(parents):
        G[j], B[j] = NG[j], NB[j]
    R[PENDING], R[GROUPS] = emitted, parents


def take_items(D: Any, X: Any, x: int, low: int, high: int) -> None:
    """Merge the pending items low..high-1 into node x, which has room for them, from the back."""
    N, V = D[1], D[2]
    K, C, P = X[0], X[1], X[2]
    leaf = N[x + FLAGS] & LEAF != 0
    i = N[x + COUNT] - 1
    j = high - 1
    to = i + high - low
    N[x + COUNT] = to + 1
    while j >= low:
        if i >= 0 and N[x + TIMES + i] > K[j]:
            N[x + TIMES + to] = N[x + TIMES + i]
            put(V, x + to, get(V, x + i))
            if not leaf:
                N[x + KIDS + to + 1] = N[x + KIDS + i + 1]
            i -= 1
        else:
            N[x + TIMES + to] = K[j]
            put(V, x + to, get(P, j))
            if not leaf:
                N[x + KIDS + to + 1] = C[j]
                N[C[j] + PARENT] = x
            j -= 1
        to -= 1
    refresh(D, x)


def cut_items(D: Any, X: Any, x: int, low: int, high: int, emitted: int) -> tuple[int, int]:
    """Merge pending items into node x and cut it; (last piece, emitted items).

    Nodes of MU entries are each followed by one entry that goes up as the pending item of the next
    node; the last node takes the rest. The first piece stays in x, so the left finger and the
    parent's pointer remain right; the last piece inherits the right spine.
    """
    S, N, _ = D
    NK, NC, NP, TK, TC, TP = X[7], X[8], X[9], X[12], X[13], X[14]
    total = merge_items(D, X, x, low, high)
    if x == S[TOP]:
        raise_root(D)
    leaf, right = N[x + FLAGS] & LEAF, N[x + FLAGS] & RIGHT
    N[x + FLAGS] &= LEAF | LEFT
    i, y = 0, x
    while True:
        size = total - i if total - i <= MOST else MU
        fill_node(D, X, y, i, size)
        i += size
        if i == total:
            break
        refresh(D, y)
        y = allocate(D, leaf)
        if not leaf:
            N[y + KIDS] = TC[i]
            N[TC[i] + PARENT] = y
        NK[emitted], NC[emitted] = TK[i], y
        put(NP, emitted, get(TP, i))
        emitted += 1
        i += 1
    N[y + FLAGS] |= right
    if leaf and right:
        S[RIGHT_FINGER] = y
    refresh(D, y)
    return y, emitted


def merge_items(D: Any, X: Any, x: int, low: int, high: int) -> int:
    """The entries of node x and the pending items low..high-1 as one sequence; its length."""
    N, V = D[1], D[2]
    K, C, P, TK, TC, TP = X[0], X[1], X[2], X[12], X[13], X[14]
    leaf = N[x + FLAGS] & LEAF != 0
    n = N[x + COUNT]
    i, j = 0, low
    for to in range(n + high - low):
        if i < n and (j == high or N[x + TIMES + i] < K[j]):
            TK[to] = N[x + TIMES + i]
            put(TP, to, get(V, x + i))
            i += 1
            TC[to] = 0 if leaf else N[x + KIDS + i]
        else:
            TK[to] = K[j]
            put(TP, to, get(P, j))
            TC[to] = C[j]
            j += 1
    return n + high - low


def fill_node(D: Any, X: Any, y: int, start: int, size: int) -> None:
    """Put the merged items from ``start`` on into node y."""
    N, V = D[1], D[2]
    TK, TC, TP = X[12], X[13], X[14]
    N[y + COUNT] = size
    for i in range(size):
        N[y + TIMES + i] = TK[start + i]
        put(V, y + i, get(TP, start + i))
    if N[y + FLAGS] & LEAF == 0:
        for i in range(size):
            N[y + KIDS + i + 1] = TC[start + i]
            N[TC[start + i] + PARENT] = y
