# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FiBA: evict an entry anywhere (Tangwongsan et al., VLDB 2019, section 3)."""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import close_left, descend, refresh, repair
from muntin.stores.fiba_balance_kernels import become_root, borrow_left, borrow_right, merge, underflows
from muntin.stores.fiba_node_kernels import (
    COUNT,
    FLAGS,
    HEIGHT,
    KID_OWN,
    KIDS,
    LEAF,
    LEFT,
    MOST,
    NEWEST,
    OWN,
    PARENT,
    PATH,
    RIGHT_FINGER,
    ROOT,
    SIZE,
    SKIP,
    TIMES,
    TOP,
    clear,
    release,
    take_entry,
)
from muntin.stores.fiba_search_kernels import search
from muntin.stores.placeholders import get, put
from muntin.stores.queue_kernels import MISSING, OK


def evict_at(D: Any, t: int) -> int:
    """The entry of time t, anywhere: O(log d)."""
    S, N, V = D
    if S[SKIP] > 0:
        close_left(D)
    x, i, depth = search(D, t)
    if i == N[x + COUNT] or N[x + TIMES + i] != t:
        return MISSING
    if S[SIZE] == 1:
        release(D, S[TOP])
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
        if depth >= 0:
            i = S[PATH + 2 * depth + 1]
        else:  # above the start of the search: on a spine
            i = 0 if N[x + FLAGS] & LEFT else N[parent + COUNT]
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
