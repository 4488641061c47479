# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""The classic B-tree with an aggregate in every node (VLDB 2019, section 3.1).

The functions here take the place of FiBA's: every node holds the product of its whole subtree, so
every change is carried up to the root, and every search comes down from it.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.fiba_kernels import (
    BELOW,
    CELLS,
    COUNT,
    FLAGS,
    HEIGHT,
    KIDS,
    LEAF,
    LEFT_FINGER,
    MU,
    OWN,
    PARENT,
    SIZE,
    STRIDE,
    TIMES,
    TOP,
    put_entry,
    rank,
    rebalance_overflow,
    rebalance_underflow,
    room,
    take_entry,
)
from muntin.stores.placeholders import ONE, combine, get, lift, put
from muntin.stores.queue_kernels import COMBINES, EMPTY, FULL, OK

INNER = frozenset({"refresh", "recount", "repair", "extend", "search"})


def refresh(D: Any, x: int) -> None:
    """The product of all entries and all children."""
    S, N, V = D
    at, cell = x * STRIDE, x * CELLS
    n = N[at + COUNT]
    if n == 0:
        put(V, cell + OWN, ONE)
        return
    total = get(V, cell)
    combines = n - 1
    if N[at + FLAGS] & LEAF:
        for i in range(1, n):
            total = combine(total, get(V, cell + i))
    else:
        kids = at + KIDS
        total = combine(get(V, N[kids] * CELLS + OWN), total)
        for i in range(1, n):
            total = combine(total, combine(get(V, N[kids + i] * CELLS + OWN), get(V, cell + i)))
        total = combine(total, get(V, N[kids + n] * CELLS + OWN))
        combines += n + 1
    put(V, cell + OWN, total)
    S[COMBINES] += combines


def recount(D: Any, x: int) -> None:
    """Counts below nodes serve bulk evicts only, which this tree does not have."""
    D[1][x * STRIDE + BELOW] = 0


def repair(D: Any, x: int, hit: int, delta: int) -> None:
    """Recompute every node up to the root."""
    S, N, _ = D
    refresh(D, x)
    while x != S[TOP]:
        x = N[x * STRIDE + PARENT]
        refresh(D, x)


def extend(D: Any, parent: int, x: int, y: int) -> None:
    """A split at the right edge changes the whole path as any other does."""
    repair(D, parent, 0, 1)


def search(D: Any, t: int) -> tuple[int, int]:
    """(node, index) of the entry of time t, or where in a leaf it would go: O(log n), from the root."""
    S, N, _ = D
    x = S[TOP]
    while True:
        at = x * STRIDE
        i = rank(D, x, t)
        if N[at + FLAGS] & LEAF or (i < N[at + COUNT] and N[at + TIMES + i] == t):
            return x, i
        x = N[at + KIDS + i]


def insert(D: Any, t: int, v: Any) -> int:
    """O(log n)."""
    S, N, V = D
    if room(D) < S[HEIGHT] + 2:
        return FULL
    x, i = search(D, t)
    n = N[x * STRIDE + COUNT]
    if i < n and N[x * STRIDE + TIMES + i] == t:
        put(V, x * CELLS + i, combine(get(V, x * CELLS + i), lift(v)))
        S[COMBINES] += 1
        repair(D, x, 0, 0)
        return OK
    put_entry(D, x, i, t, lift(v))
    S[SIZE] += 1
    if n + 1 < 2 * MU:
        repair(D, x, 0, 1)
    else:
        rebalance_overflow(D, x)
    return OK


def evict(D: Any) -> int:
    """O(log n)."""
    S = D[0]
    if S[SIZE] == 0:
        return EMPTY
    S[SIZE] -= 1
    x = S[LEFT_FINGER]
    take_entry(D, x, 0)
    rebalance_underflow(D, x, 0, 0)
    return OK


def evict_before(D: Any, t: int) -> int:
    """One after the other."""
    S, N, _ = D
    count = 0
    while S[SIZE] > 0 and N[S[LEFT_FINGER] * STRIDE + TIMES] < t:
        evict(D)
        count += 1
    return count


def query(D: Any) -> Any:
    """No combine."""
    return get(D[2], D[0][TOP] * CELLS + OWN)
