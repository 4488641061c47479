"""FiBA: bulk insert (Tangwongsan et al., VLDB 2023, section 5).

Entries newer than all others are appended. For the rest `locate` searches in one sweep: entries whose
time is in the tree are combined in place, the others become *pending* at a leaf. `settle` then works
level by level: a node takes its pending items or is cut into several nodes, and each new node becomes a
pending item (entry, right child) of the parent. Nodes to be worked on are grouped by identity, in order of
time at every level, together with the *changed* nodes, in which only values changed.

Scratch ``X = (items, groups, changed, next items, next groups, merged, R)``:

    items    K, C, P: times, right children and partials of the pending items
    groups   G, B: nodes with pending items, and the first item of each
    changed  F, L: nodes with changed values, and their levels
    merged   items of one node together with those pending there
    R        integers: the number of each, and the topmost nodes changed
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import close_left, descend, refresh
from muntin.stores.fiba_insert_kernels import append, raise_root
from muntin.stores.fiba_layout import *
from muntin.stores.fiba_node_kernels import allocate, put_child, put_entry, rank, room, start_node
from muntin.stores.vocabulary import *

PENDING, GROUPS, CHANGED, HIGHEST, TOP_LEFT, TOP_RIGHT = range(6)  # of R


def append_many(D: Any, ts: Any, vs: Any, start: int) -> int:
    """Entries in order of time, newer than all others, from ``start`` on; the index of the first not done."""
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
    if room(D) < m // MU + 2 * D[0][HEIGHT] + 64:
        return FULL
    if D[0][SKIP] > 0:
        close_left(D)
    locate(D, X, ts, vs, m)
    settle(D, X)
    return OK


def until(D: Any, x: int) -> int:
    """The time before which all entries below x are; x is the root or on a spine."""
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
    (K, _, P), R = X[0], X[6]
    R[PENDING] = R[GROUPS] = R[CHANGED] = 0
    R[HIGHEST] = R[TOP_LEFT] = R[TOP_RIGHT] = -1
    last = -1  # the pending item of the previous time, -1 if that time is in the tree
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
    (K, _, P), (G, B), (F, L), R = X[0], X[1], X[2], X[6]
    if i < N[x + COUNT] and N[x + TIMES + i] == t:
        put(V, x + i, combine(get(V, x + i), lift(v)))
        S[COMBINES] += 1
        F[R[CHANGED]], L[R[CHANGED]] = x, level
        R[CHANGED] += 1
        R[HIGHEST] = max(R[HIGHEST], level)
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
    R = X[6]
    level = 0
    while R[GROUPS] > 0 or level <= R[HIGHEST]:
        settle_level(D, X, level)
        X = X[3], X[4], X[2], X[0], X[1], X[5], R
        level += 1
    if R[TOP_LEFT] >= 0:
        descend(D, R[TOP_LEFT], LEFT)
    if R[TOP_RIGHT] >= 0:
        descend(D, R[TOP_RIGHT], RIGHT)


def settle_level(D: Any, X: Any, level: int) -> None:
    """Update the nodes of one level, those with pending items and the changed ones, in order of time."""
    N = D[1]
    (G, B), (F, L), (next_G, next_B), R = X[1], X[2], X[4], X[6]
    groups, changed, pending = R[GROUPS], R[CHANGED], R[PENDING]
    g, f = 0, 0
    emitted, parents = 0, 0
    while True:
        while f < changed and L[f] != level:
            f += 1
        if g == groups and f == changed:
            break
        x = F[f] if g == groups else G[g]
        if g < groups and f < changed and begins(D, F[f]) < begins(D, x):
            x = F[f]
        low, high = 0, 0
        if g < groups and G[g] == x:
            low = B[g]
            high = B[g + 1] if g + 1 < groups else pending
            g += 1
        while f < changed and (L[f] != level or F[f] == x):
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
            if parents == 0 or next_G[parents - 1] != parent:
                next_G[parents], next_B[parents] = parent, before
                parents += 1
        if flags == LEFT or (level == 0 and flags == ROOT):
            R[TOP_LEFT] = x
        if N[y + FLAGS] & ROOT == RIGHT:
            R[TOP_RIGHT] = y
    R[PENDING], R[GROUPS] = emitted, parents


def take_items(D: Any, X: Any, x: int, low: int, high: int) -> None:
    """Put the pending items low..high-1 into node x, which has room for them."""
    K, C, P = X[0]
    for j in range(low, high):
        i = rank(D, x, K[j])
        if D[1][x + FLAGS] & LEAF:
            put_entry(D, x, i, K[j], get(P, j))
        else:
            put_child(D, x, i, K[j], get(P, j), C[j])
    refresh(D, x)


def cut_items(D: Any, X: Any, x: int, low: int, high: int, emitted: int) -> tuple[int, int]:
    """Merge the pending items low..high-1 into node x and cut it; (last node, emitted items).

    Nodes of MU entries are each followed by one entry that goes up as the pending item of the next
    node; the last node takes the rest. The first one stays in x, so the left finger and the
    parent's pointer remain right; the last one inherits the right spine.
    """
    S, N, _ = D
    (next_K, next_C, next_P), (K, C, P) = X[3], X[5]
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
            N[y + KIDS] = C[i]
            N[C[i] + PARENT] = y
        next_K[emitted], next_C[emitted] = K[i], y
        put(next_P, emitted, get(P, i))
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
    (K, C, P), (merged_K, merged_C, merged_P) = X[0], X[5]
    leaf = N[x + FLAGS] & LEAF != 0
    n = N[x + COUNT]
    i, j = 0, low
    for to in range(n + high - low):
        if i < n and (j == high or N[x + TIMES + i] < K[j]):
            merged_K[to] = N[x + TIMES + i]
            put(merged_P, to, get(V, x + i))
            i += 1
            merged_C[to] = 0 if leaf else N[x + KIDS + i]
        else:
            merged_K[to] = K[j]
            put(merged_P, to, get(P, j))
            merged_C[to] = C[j]
            j += 1
    return n + high - low


def fill_node(D: Any, X: Any, y: int, start: int, size: int) -> None:
    """Put ``size`` merged items from ``start`` on into node y."""
    N, V = D[1], D[2]
    K, C, P = X[5]
    N[y + COUNT] = size
    for i in range(size):
        N[y + TIMES + i] = K[start + i]
        put(V, y + i, get(P, start + i))
    if N[y + FLAGS] & LEAF == 0:
        for i in range(size):
            N[y + KIDS + i + 1] = C[start + i]
            N[C[start + i] + PARENT] = y
