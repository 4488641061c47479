# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""Subtract-on-evict: one running total, from which the oldest entry is taken when it leaves."""

from __future__ import annotations

from typing import Any

from muntin.stores.queue_kernels import lower_bound
from muntin.stores.vocabulary import *


def insert(D: Any, t: int, v: Any) -> int:
    """One combine."""
    S, T, V = D
    front, end, mask = S[FRONT], S[END], S[MASK]
    if end - front > mask:
        return FULL
    if end > front and t < T[(end - 1) & mask]:
        return DISORDER
    p = lift(v)
    T[end & mask] = t
    put(V, end & mask, p)
    put(V, mask + 1, combine(get(V, mask + 1), p))
    S[END] = end + 1
    S[COMBINES] += 1
    return OK


def evict(D: Any) -> int:
    """One invert."""
    S, _, V = D
    front, mask = S[FRONT], S[MASK]
    if front == S[END]:
        return EMPTY
    put(V, mask + 1, invert(get(V, mask + 1), get(V, front & mask)))
    put(V, front & mask, ONE)
    S[FRONT] = front + 1
    S[COMBINES] += 1
    return OK


def evict_before(D: Any, t: int) -> int:
    """One invert each."""
    count: int = lower_bound(D, t) - D[0][FRONT]
    for _ in range(count):
        evict(D)
    return count


def query(D: Any) -> Any:
    """No combine."""
    return get(D[2], D[0][MASK] + 1)
