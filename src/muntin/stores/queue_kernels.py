# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""What the in-order stores share: a ring of times with absolute positions FRONT <= i < END.

State ``D = (S, T, V)``: ``S`` integers, ``T`` times, ``V`` partials. A position ``i`` lives in slot
``i & S[MASK]``; the capacity is a power of two. Kernels return a status instead of raising, so that
the caller can grow the arrays and try again; nothing has changed when the status is not ``OK``.
"""

from __future__ import annotations

from typing import Any

OK, FULL, DISORDER, EMPTY, MISSING, SPARSE = 0, 1, 2, 3, 4, 5
COMBINES, FRONT, END, MASK = 0, 1, 2, 3


def lower_bound(D: Any, t: int) -> int:
    """First position whose time is not before ``t``: O(log n), no combines."""
    S, T = D[0], D[1]
    mask = S[MASK]
    low, high = S[FRONT], S[END]
    while low < high:
        middle = (low + high) >> 1
        if T[middle & mask] < t:
            low = middle + 1
        else:
            high = middle
    return low


def insert_many(D: Any, ts: Any, vs: Any, start: int) -> tuple[int, int]:
    """Insert one after the other; (how far it came, the status that stopped it)."""
    for j in range(start, len(ts)):
        status = insert(D, ts[j], vs[j])
        if status != OK:
            return j, status
    return len(ts), OK


def insert(D: Any, t: int, v: Any) -> int:
    """Each store has its own, which takes the place of this one."""
    raise NotImplementedError("each store has its own")
