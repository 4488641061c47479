"""FiBA: insert (Tangwongsan et al., VLDB 2019, section 3).

In order an entry goes to the right finger. When that is full, the next entry goes up to its parent, and
an empty leaf behind it is the new finger. A full inner node of the right spine keeps most of its content,
sends one entry up and gives the SPARE entries behind it to a new node. So full leaves are left behind,
and little is moved.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import close_left, descend, put_down, refresh_node, repair
from muntin.stores.fiba_layout import *
from muntin.stores.fiba_node_kernels import (
    allocate,
    child_index,
    move_entries,
    move_kids,
    put_child,
    put_entry,
    rank,
    room,
    search,
)
from muntin.stores.vocabulary import *

HOT = frozenset({"append"})


def insert(D: Any, t: int, v: Any) -> int:
    """In order 2 combines and amortised O(1) when the finger moves on; at distance d O(log d)."""
    if t > D[0][NEWEST]:
        return append(D, t, lift(v))
    return insert_late(D, t, v)


def insert_newest(D: Any, t: int, v: Any) -> int:
    """The part of `insert` that windows in order need: it alone compiles in a third of the time."""
    return append(D, t, lift(v)) if t > D[0][NEWEST] else LATE


# --- in order --------------------------------------------------------------------------------


def append(D: Any, t: int, p: Any) -> int:
    """An entry newer than all others: only the right finger's aggregates change if it has room."""
    S, N, V = D
    x = S[RIGHT_FINGER]
    n = N[x + COUNT]
    if n >= MOST:
        if S[HEIGHT] > 1 or S[SKIP] == 0:
            return grow(D, t, p)
        close_left(D)
        n = N[x + COUNT]
    N[x + TIMES + n] = t
    N[x + COUNT] = N[x + BELOW] = n + 1
    put(V, x + n, p)
    S[SIZE] += 1
    S[NEWEST] = t
    if S[HEIGHT] > 1:
        put(V, x + OWN, combine(get(V, x + OWN), p))
        put(V, x + DOWN, combine(get(V, x + DOWN), p))
        S[COMBINES] += 2
    elif n == S[SUMMED]:
        put(V, x + OWN, p)
    else:
        put(V, x + OWN, combine(get(V, x + OWN), p))
        S[COMBINES] += 1
    return OK


def grow(D: Any, t: int, p: Any) -> int:
    """The right finger is full: the entry goes up, a new finger begins behind it."""
    S, N, V = D
    height = S[HEIGHT]
    if room(D) < height + 2:
        return FULL
    x = S[RIGHT_FINGER]
    N[x + FLAGS] &= LEAF | LEFT
    if x == S[TOP]:
        raise_root(D)
    a = N[x + PARENT]
    if N[a + COUNT] >= MOST:
        a = shed(D, a)
    extend(D, a, x, t, p)
    y = allocate(D, RIGHT | LEAF)
    N[y + PARENT] = a
    N[a + KIDS + N[a + COUNT]] = y
    put(V, y + DOWN, ONE if a == S[TOP] else get(V, a + DOWN))
    S[RIGHT_FINGER] = y
    if S[HEIGHT] > height:
        descend(D, S[TOP], LEFT)
    S[SIZE] += 1
    S[NEWEST] = t
    return OK


def extend(D: Any, a: int, x: int, t: int, p: Any) -> None:
    """Append an entry to node a, behind its last child x; the caller puts a new last child behind it."""
    S, N, V = D
    n = N[a + COUNT]
    piece = p
    if n > 0 or N[a + FLAGS] & LEFT == 0:  # else x is the first child of a left node
        piece = combine(get(V, x + OWN), p)
        N[a + BELOW] += N[x + BELOW]
        S[COMBINES] += 1
    if n > 0:
        put(V, a + OWN, combine(get(V, a + OWN), piece))
        S[COMBINES] += 1
    else:
        put(V, a + OWN, piece)
    put(V, a + KID_OWN + n, get(V, x + OWN))
    put_entry(D, a, n, t, p)
    N[a + BELOW] += 1
    if a != S[TOP]:
        put(V, a + DOWN, combine(get(V, a + DOWN), piece))
        S[COMBINES] += 1


def shed(D: Any, a: int) -> int:
    """Make room in node a above the right finger and in all full nodes above it; the node in its place."""
    S, N, V = D
    while a != S[TOP] and N[N[a + PARENT] + COUNT] >= MOST:
        a = N[a + PARENT]
    if a == S[TOP]:
        raise_root(D)
    while True:
        parent, keep = N[a + PARENT], N[a + COUNT] - SPARE - 1
        b = allocate(D, RIGHT)
        N[a + FLAGS] &= LEFT
        move_end(D, a, b, keep)
        refresh_node(D, a)
        refresh_node(D, b)
        extend(D, parent, a, N[a + TIMES + keep], get(V, a + keep))
        N[parent + KIDS + N[parent + COUNT]] = b
        N[b + PARENT] = parent
        put_down(D, b, RIGHT)
        a = N[b + KIDS + SPARE]
        if N[a + FLAGS] & LEAF:
            return b


def raise_root(D: Any) -> None:
    """A new root above the old one."""
    S, N, _ = D
    x = S[TOP]
    root = allocate(D, ROOT)
    N[root + KIDS] = x
    N[x + PARENT] = root
    S[TOP] = root
    S[HEIGHT] += 1


# --- out of order ----------------------------------------------------------------------------


def insert_late(D: Any, t: int, v: Any) -> int:
    """Not newer than all others: O(log d)."""
    S, N, V = D
    if room(D) < S[HEIGHT] + 2:
        return FULL
    x, i, depth = search(D, t)
    if x == S[LEFT_FINGER] and S[SKIP] > 0:
        close_left(D)
        i = rank(D, x, t)
    n = N[x + COUNT]
    if i < n and N[x + TIMES + i] == t:
        put(V, x + i, combine(get(V, x + i), lift(v)))
        S[COMBINES] += 1
        repair(D, x, depth, 0, 0)
        return OK
    put_entry(D, x, i, t, lift(v))
    S[SIZE] += 1
    if n < MOST:
        repair(D, x, depth, 0, 1)
    else:
        split_up(D, x, depth)
    return OK


def split_up(D: Any, x: int, depth: int) -> None:
    """Split upwards while a node has too many entries, then repair."""
    S, N, V = D
    hit = 0
    while N[x + COUNT] > MOST:
        if x == S[TOP]:
            raise_root(D)
        parent = N[x + PARENT]
        depth -= 1
        i = child_index(D, x, depth)
        y = split(D, x, parent, i)
        refresh_node(D, x)
        refresh_node(D, y)
        put(V, parent + KID_OWN + i, get(V, x + OWN))
        put(V, parent + KID_OWN + i + 1, get(V, y + OWN))
        hit |= (N[x + FLAGS] | N[y + FLAGS]) & ROOT
        x = parent
    repair(D, x, depth, hit, 1)


def split(D: Any, x: int, parent: int, i: int) -> int:
    """Cut child i, which overflows: MU entries stay, the next moves up, the rest goes to a new right node."""
    S, N, V = D
    y = allocate(D, N[x + FLAGS] & (LEAF | RIGHT))
    N[x + FLAGS] &= LEAF | LEFT
    move_end(D, x, y, MU)
    if N[y + FLAGS] == LEAF | RIGHT:
        S[RIGHT_FINGER] = y
    put_child(D, parent, i, N[x + TIMES + MU], get(V, x + MU), y)
    return y


def move_end(D: Any, x: int, y: int, keep: int) -> None:
    """The entries of node x behind the one at ``keep``, which moves up, and their children go to node y."""
    N = D[1]
    moved = N[x + COUNT] - keep - 1
    move_entries(D, x, keep + 1, y, 0, moved)
    if N[x + FLAGS] & LEAF == 0:
        move_kids(D, x, keep + 1, y, 0, moved + 1)
    N[x + COUNT] = keep
    N[y + COUNT] = moved
