"""FiBA: the aggregates in the nodes, and the query of the whole window (VLDB 2019, section 3).

Cell OWN of a node holds the product of its entries and its children's OWN, without the first child of
a LEFT node and the last child of a RIGHT one: the whole subtree of an up node, the inner aggregate of
the root. Cell DOWN, on the spines only, adds the entries between the node and the root:

    left spine   DOWN(x) = OWN(x) * DOWN(parent)       right spine   DOWN(x) = DOWN(parent) * OWN(x)

without DOWN(root); these are the paper's left and right aggregates. With OWN in the node too, the walk
down to a finger costs one combine per level. An inner node has copies of its children's OWN, from KID_OWN
on, so that a change below reads one stretch of memory. BELOW is the number of entries combined in OWN.

The left finger has neither OWN nor DOWN. The cells of node 0 hold its share of the result, once for every
entry that may be its oldest: cell i is the product of the entries from i on and DOWN(parent). So an evict
only increments SKIP. S[SUMMED] is the number of entries in these products: all, but while the root is the
only node, newer ones may be in its OWN instead, as in Two-Stacks Lite.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_layout import *
from muntin.stores.fiba_node_kernels import move_entries
from muntin.stores.vocabulary import *

HOT = frozenset({"refresh_inner", "refresh_leaf", "query"})


def refresh(D: Any, x: int) -> None:
    """Recompute OWN and BELOW of node x from its entries and its children."""
    N, V = D[1], D[2]
    if N[x + FLAGS] & LEAF == 0:
        for i in range(N[x + COUNT] + 1):
            put(V, x + KID_OWN + i, get(V, N[x + KIDS + i] + OWN))
    refresh_node(D, x)


def refresh_node(D: Any, x: int) -> None:
    """Recompute OWN and BELOW of node x, whose copies of the children's OWN are up to date."""
    if D[1][x + FLAGS] & LEAF:
        refresh_leaf(D, x)
    else:
        refresh_inner(D, x)
        recount(D, x)


def refresh_leaf(D: Any, x: int) -> None:
    """Recompute OWN of a leaf."""
    S, N, V = D
    n = N[x + COUNT]
    N[x + BELOW] = n
    if n == 0:
        put(V, x + OWN, ONE)
        return
    total = get(V, x)
    for i in range(1, n):
        total = combine(total, get(V, x + i))
    put(V, x + OWN, total)
    S[COMBINES] += n - 1


def refresh_inner(D: Any, x: int) -> None:
    """Recompute OWN of an inner node from its entries and the copies of its children's OWN."""
    S, N, V = D
    n, flags = N[x + COUNT], N[x + FLAGS]
    if n == 0:  # on a spine, with one child, which is on it too
        put(V, x + OWN, ONE)
        return
    kids = x + KID_OWN
    total = get(V, x)
    combines = 2 * (n - 1)
    if flags & LEFT == 0:
        total = combine(get(V, kids), total)
        combines += 1
    half = n >> 1
    if half > 0:
        # Two products side by side: neither waits for the other.
        rest = combine(get(V, kids + half), get(V, x + half))
        for i in range(1, half):
            total = combine(total, combine(get(V, kids + i), get(V, x + i)))
            j = half + i
            rest = combine(rest, combine(get(V, kids + j), get(V, x + j)))
        if n & 1:
            rest = combine(rest, combine(get(V, kids + n - 1), get(V, x + n - 1)))
        total = combine(total, rest)
    if flags & RIGHT == 0:
        total = combine(total, get(V, kids + n))
        combines += 1
    put(V, x + OWN, total)
    S[COMBINES] += combines


def recount(D: Any, x: int) -> None:
    """Recompute BELOW of an inner node."""
    N = D[1]
    n, flags = N[x + COUNT], N[x + FLAGS]
    count = n
    first = 1 if flags & LEFT else 0
    last = n if flags & RIGHT else n + 1
    for i in range(first, last):
        count += N[N[x + KIDS + i] + BELOW]
    N[x + BELOW] = count


def descend(D: Any, x: int, side: int) -> None:
    """Recompute DOWN along one spine, from node x (the root or on that spine) to the finger."""
    S, N, _ = D
    if x == S[TOP] and N[x + FLAGS] & LEAF == 0:
        x = N[x + KIDS + (0 if side == LEFT else N[x + COUNT])]
    while N[x + FLAGS] & LEAF == 0:
        put_down(D, x, side)
        x = N[x + KIDS + (0 if side == LEFT else N[x + COUNT])]
    if side == LEFT:
        sum_left(D)
    else:
        put_down(D, x, side)


def put_down(D: Any, x: int, side: int) -> None:
    """Recompute DOWN of a node on a spine."""
    S, N, V = D
    parent = N[x + PARENT]
    down = get(V, x + OWN)
    if x != S[TOP] and parent != S[TOP]:
        above = get(V, parent + DOWN)
        down = combine(down, above) if side == LEFT else combine(above, down)
        S[COMBINES] += 1
    put(V, x + DOWN, down)


def repair(D: Any, x: int, depth: int, hit: int, delta: int) -> None:
    """Recompute the aggregates that include node x: up to the first spine node, then down to the fingers.

    PATH has the nodes above an up node; ``depth`` is the index of x there. ``hit``: the spines on which a
    node below x changed; ``delta``: the change in the number of entries below.
    """
    S, N, V = D
    flags = N[x + FLAGS]
    if flags & LEAF:
        refresh_leaf(D, x)
    else:
        refresh_inner(D, x)
        if flags & ROOT:
            recount(D, x)  # a child may have left the spine
        else:
            N[x + BELOW] += delta
    while N[x + FLAGS] & ROOT == 0:
        depth -= 1
        parent, i = S[PATH + 2 * depth], S[PATH + 2 * depth + 1]
        put(V, parent + KID_OWN + i, get(V, x + OWN))
        x = parent
        refresh_inner(D, x)
        N[x + BELOW] += delta
    flags = N[x + FLAGS] & ROOT
    if flags == ROOT:
        flags = hit if S[HEIGHT] > 1 else LEFT
    if flags & LEFT:
        descend(D, x, LEFT)
    if flags & RIGHT:
        descend(D, x, RIGHT)


def sum_left(D: Any) -> None:
    """Recompute the products of the left finger from its remaining entries."""
    S, N, V = D
    x = S[LEFT_FINGER]
    n, parent = N[x + COUNT], N[x + PARENT]
    S[SUMMED] = n
    total = ONE
    if S[HEIGHT] > 1 and parent != S[TOP]:
        total = get(V, parent + DOWN)
    put(V, n, total)
    for i in range(n - 1, S[SKIP] - 1, -1):
        total = combine(get(V, x + i), total)
        put(V, i, total)
    S[COMBINES] += n - S[SKIP]


def close_left(D: Any) -> None:
    """Remove the evicted entries from the left finger, and their products."""
    S, N, V = D
    x, skip = S[LEFT_FINGER], S[SKIP]
    n = N[x + COUNT] - skip
    move_entries(D, x, skip, x, 0, n)
    for j in range(n, n + skip):
        put(V, x + j, ONE)
    N[x + COUNT] = N[x + BELOW] = n
    S[SKIP] = 0
    S[SUMMED] -= skip
    for j in range(S[SUMMED] + 1):
        put(V, j, get(V, skip + j))


def query(D: Any) -> Any:
    """Left finger, root, right finger: two combines."""
    S, N, V = D
    total = get(V, S[SKIP])
    if S[HEIGHT] == 1:
        if N[S[TOP] + COUNT] > S[SUMMED]:
            S[COMBINES] += 1
            total = combine(total, get(V, S[TOP] + OWN))
        return total
    S[COMBINES] += 2
    total = combine(total, get(V, S[TOP] + OWN))
    return combine(total, get(V, S[RIGHT_FINGER] + DOWN))
