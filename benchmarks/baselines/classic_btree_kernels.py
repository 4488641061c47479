# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""The classic B-tree with an aggregate in every node (VLDB 2019, section 3.1).

The functions here take the place of FiBA's: every node holds the product of its whole subtree, so
every change is carried up to the root, and every search comes down from it.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_aggregate_kernels import refresh_leaf
from muntin.stores.fiba_insert_kernels import split_up
from muntin.stores.fiba_layout import (
    COUNT,
    FLAGS,
    HEIGHT,
    KID_OWN,
    LEAF,
    LEFT_FINGER,
    MOST,
    MU,
    OWN,
    PATH,
    SIZE,
    TIMES,
    TOP,
)
from muntin.stores.fiba_node_kernels import put_entry, room, search
from muntin.stores.fiba_remove_kernels import evict_at
from muntin.stores.vocabulary import *


def refresh_inner(D: Any, x: int) -> None:
    """The product of all entries and all children."""
    S, N, V = D
    n = N[x + COUNT]
    total = get(V, x + KID_OWN)
    for i in range(n):
        total = combine(total, combine(get(V, x + i), get(V, x + KID_OWN + i + 1)))
    put(V, x + OWN, total)
    S[COMBINES] += 2 * n


def recount(D: Any, x: int) -> None:
    """Counts below nodes serve bulk evicts only, which this tree does not have."""


def descend(D: Any, x: int, side: int) -> None:
    """There are no spines."""


def repair(D: Any, x: int, depth: int, hit: int, delta: int) -> None:
    """Recompute every node up to the root."""
    S, N, V = D
    if N[x + FLAGS] & LEAF:
        refresh_leaf(D, x)
    else:
        refresh_inner(D, x)
    while depth > 0:
        depth -= 1
        parent, i = S[PATH + 2 * depth], S[PATH + 2 * depth + 1]
        put(V, parent + KID_OWN + i, get(V, x + OWN))
        x = parent
        refresh_inner(D, x)


def start_node(D: Any, t: int) -> tuple[int, int]:
    """Every search comes down from the root."""
    S = D[0]
    return S[TOP], S[HEIGHT] - 1


def underflows(D: Any, x: int) -> bool:
    """Whether node x has too few entries; only the root may have any number."""
    S, N, _ = D
    return x != S[TOP] and N[x + COUNT] < MU - 1


def find_newest(D: Any) -> None:
    """Nothing depends on it."""


def insert(D: Any, t: int, v: Any) -> int:
    """O(log n)."""
    S, N, V = D
    if room(D) < S[HEIGHT] + 2:
        return FULL
    x, i, depth = search(D, t)
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


def evict(D: Any) -> int:
    """O(log n)."""
    S, N, _ = D
    if S[SIZE] == 0:
        return EMPTY
    return evict_at(D, N[S[LEFT_FINGER] + TIMES])


def evict_before(D: Any, t: int) -> int:
    """One after the other."""
    S, N, _ = D
    count = 0
    while S[SIZE] > 0 and N[S[LEFT_FINGER] + TIMES] < t:
        evict(D)
        count += 1
    return count


def query(D: Any) -> Any:
    """No combine."""
    return get(D[2], D[0][TOP] + OWN)
