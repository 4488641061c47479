# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA: nodes with too few entries take some from a sibling or are merged with it."""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import descend, refresh
from muntin.stores.fiba_node_kernels import (
    COUNT,
    FLAGS,
    HEIGHT,
    KID_OWN,
    KIDS,
    LEAF,
    MU,
    OWN,
    PARENT,
    RIGHT,
    RIGHT_FINGER,
    ROOT,
    SPARE,
    TIMES,
    TOP,
    move_entries,
    move_kids,
    release_node,
    take_entry,
)
from muntin.stores.placeholders import ONE, get, put


def underflows(D: Any, x: int) -> bool:
    """Whether node x has too few entries."""
    N = D[1]
    flags, n = N[x + FLAGS], N[x + COUNT]
    if flags & ROOT == 0:
        return n < MU - 1
    return flags & ROOT != ROOT and flags & LEAF == 0 and n < SPARE


def merge(D: Any, parent: int, i: int) -> None:
    """Children i and i + 1 of a node and the entry between them become one, which is child i."""
    S, N, V = D
    x, y = N[parent + KIDS + i], N[parent + KIDS + i + 1]
    n, m = N[x + COUNT], N[y + COUNT]
    N[x + TIMES + n] = N[parent + TIMES + i]
    put(V, x + n, get(V, parent + i))
    move_entries(D, y, 0, x, n + 1, m)
    if N[x + FLAGS] & LEAF == 0:
        move_kids(D, y, 0, x, n + 1, m + 1)
    N[x + COUNT] = n + 1 + m
    N[x + FLAGS] |= N[y + FLAGS]
    if S[RIGHT_FINGER] == y:
        S[RIGHT_FINGER] = x
    take_entry(D, parent, i)
    move_kids(D, parent, i + 2, parent, i + 1, N[parent + COUNT] - i)
    release_node(D, y)
    refresh(D, x)
    put(V, parent + KID_OWN + i, get(V, x + OWN))


def borrow_right(D: Any, parent: int, i: int) -> None:
    """Child i takes half of what child i + 1 has more, through the parent."""
    N, V = D[1], D[2]
    x, y = N[parent + KIDS + i], N[parent + KIDS + i + 1]
    n = N[x + COUNT]
    moved = (N[y + COUNT] - n + 1) >> 1
    N[x + TIMES + n] = N[parent + TIMES + i]
    put(V, x + n, get(V, parent + i))
    move_entries(D, y, 0, x, n + 1, moved - 1)
    move_entries(D, y, moved - 1, parent, i, 1)
    if N[x + FLAGS] & LEAF == 0:
        move_kids(D, y, 0, x, n + 1, moved)
    N[x + COUNT] = n + moved
    close_front(D, y, moved)
    refresh_pair(D, parent, i)


def borrow_left(D: Any, parent: int, i: int) -> None:
    """Child i + 1 takes half of what child i has more, through the parent."""
    N, V = D[1], D[2]
    x, y = N[parent + KIDS + i], N[parent + KIDS + i + 1]
    n, m = N[x + COUNT], N[y + COUNT]
    moved = (n - m + 1) >> 1
    keep = n - moved
    move_entries(D, y, 0, y, moved, m)
    move_entries(D, parent, i, y, moved - 1, 1)
    move_entries(D, x, keep + 1, y, 0, moved - 1)
    move_entries(D, x, keep, parent, i, 1)
    for j in range(keep, n):
        put(V, x + j, ONE)
    if N[x + FLAGS] & LEAF == 0:
        move_kids(D, y, 0, y, moved, m + 1)
        move_kids(D, x, keep + 1, y, 0, moved)
    N[x + COUNT] = keep
    N[y + COUNT] = m + moved
    refresh_pair(D, parent, i)


def refresh_pair(D: Any, parent: int, i: int) -> None:
    """Recompute children i and i + 1."""
    N, V = D[1], D[2]
    for j in range(i, i + 2):
        x = N[parent + KIDS + j]
        refresh(D, x)
        put(V, parent + KID_OWN + j, get(V, x + OWN))


def close_front(D: Any, x: int, n: int) -> None:
    """Close the gap that the first n entries of node x leave, and its first n children."""
    N, V = D[1], D[2]
    left = N[x + COUNT] - n
    move_entries(D, x, n, x, 0, left)
    for j in range(left, left + n):
        put(V, x + j, ONE)
    if N[x + FLAGS] & LEAF == 0:
        move_kids(D, x, n, x, 0, left + 1)
    N[x + COUNT] = left


def become_root(D: Any, x: int, level: int) -> None:
    """A node of the right spine is on the left one too: what is above it holds nothing any more."""
    S, N, _ = D
    above = N[x + PARENT]
    while above >= 0:
        parent = N[above + PARENT]
        release_node(D, above)
        above = parent
    N[x + PARENT] = -1
    S[TOP] = x
    S[HEIGHT] = level + 1
    if level > 0:
        descend(D, x, RIGHT)
