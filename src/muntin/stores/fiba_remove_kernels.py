"""FiBA: evict an entry anywhere, and the rebalancing of all evictions (VLDB 2019, section 3).

A node with too few entries takes some from a sibling or is merged with it.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import close_left, descend, refresh, repair
from muntin.stores.fiba_layout import *
from muntin.stores.fiba_node_kernels import (
    child_index,
    clear,
    move_entries,
    move_kids,
    release_node,
    search,
    take_entry,
)
from muntin.stores.vocabulary import *


def evict_at(D: Any, t: int) -> int:
    """The entry of time t, anywhere: O(log d)."""
    S, N, V = D
    if S[SKIP] > 0:
        close_left(D)
    x, i, depth = search(D, t)
    if i == N[x + COUNT] or N[x + TIMES + i] != t:
        return MISSING
    if S[SIZE] == 1:
        clear(D)
        return OK
    S[SIZE] -= 1
    replaced = depth
    if N[x + FLAGS] & LEAF == 0:
        # An inner entry gives its place to its neighbour in a leaf below.
        leaf, depth, j = neighbour_leaf(D, x, i, depth, True)
        if N[leaf + COUNT] == 0:
            leaf, depth, j = neighbour_leaf(D, x, i, depth, False)
        N[x + TIMES + i] = N[leaf + TIMES + j]
        put(V, x + i, get(V, leaf + j))
        x, i = leaf, j
    take_entry(D, x, i)
    rebalance(D, x, depth, replaced)
    if t == S[NEWEST]:
        find_newest(D)
    return OK


def neighbour_leaf(D: Any, x: int, i: int, depth: int, after: bool) -> tuple[int, int, int]:
    """(leaf, depth, index) of the entry that follows entry i of inner node x, or precedes it.

    The path to it goes into PATH. The leaf is empty if it is a finger with nothing in it.
    """
    S, N, _ = D
    while S[PATH + 2 * depth] != x:
        depth -= 1
    S[PATH + 2 * depth + 1] = i + 1 if after else i
    while N[x + FLAGS] & LEAF == 0:
        x = N[x + KIDS + S[PATH + 2 * depth + 1]]
        depth += 1
        S[PATH + 2 * depth] = x
        S[PATH + 2 * depth + 1] = 0 if after else N[x + COUNT]
    return x, depth, 0 if after else N[x + COUNT] - 1


def find_newest(D: Any) -> None:
    """NEWEST, when the newest entry is gone: the last one of the right finger, or above it."""
    S, N, _ = D
    x = S[RIGHT_FINGER]
    while N[x + COUNT] == 0:
        x = N[x + PARENT]
    S[NEWEST] = N[x + TIMES + N[x + COUNT] - 1]


def rebalance(D: Any, x: int, depth: int, replaced: int) -> None:
    """Merge or move upwards while a node has too few entries, then repair.

    ``replaced``: depth of the node in which an entry was replaced; all up to it are recomputed.
    """
    S, N, V = D
    hit = N[x + FLAGS] & ROOT
    while underflows(D, x) or depth > replaced:
        depth -= 1
        parent = N[x + PARENT]
        i = child_index(D, x, depth)
        if underflows(D, x):
            after = i < N[parent + COUNT]
            y = N[parent + KIDS + (i + 1 if after else i - 1)]
            hit |= N[y + FLAGS] & ROOT
            if N[x + COUNT] + 1 + N[y + COUNT] <= MOST:
                merge(D, parent, i if after else i - 1)
            elif after:
                borrow_right(D, parent, i)
            else:
                borrow_left(D, parent, i - 1)
        else:
            refresh(D, x)
            put(V, parent + KID_OWN + i, get(V, x + OWN))
        x = parent
        if x != S[TOP]:
            hit |= N[x + FLAGS] & ROOT
    repair(D, x, depth, hit, -1)
    lower_root(D)


def lower_root(D: Any) -> None:
    """While the two spines and the entry between them fit into one node, it is the root."""
    S, N, _ = D
    root = S[TOP]
    while N[root + COUNT] <= 1 and N[root + FLAGS] & LEAF == 0:
        x, y = N[root + KIDS], N[root + KIDS + 1]
        if N[root + COUNT] == 1:
            if N[x + COUNT] + 1 + N[y + COUNT] > MOST:
                return
            merge(D, root, 0)
        become_root(D, x, S[HEIGHT] - 2)
        descend(D, x, LEFT)
        root = x


# --- rebalancing -----------------------------------------------------------------------------


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
