"""The lazy list: entries in time order, combined by each query."""

from __future__ import annotations

from typing import Any

from muntin.stores.queue_kernels import evict, lower_bound
from muntin.stores.vocabulary import *


def insert(D: Any, t: int, v: Any) -> int:
    """In order O(1), otherwise the younger entries move up by one; a tie costs one combine."""
    S, T, V = D
    front, end, mask = S[FRONT], S[END], S[MASK]
    at = end
    if end > front and t <= T[(end - 1) & mask]:
        at = lower_bound(D, t)
        if T[at & mask] == t:
            put(V, at & mask, combine(get(V, at & mask), lift(v)))
            S[COMBINES] += 1
            return OK
    if end - front > mask:
        return FULL
    p = lift(v)
    for i in range(end, at, -1):
        T[i & mask] = T[(i - 1) & mask]
        put(V, i & mask, get(V, (i - 1) & mask))
    T[at & mask] = t
    put(V, at & mask, p)
    S[END] = end + 1
    return OK


def evict_at(D: Any, t: int) -> int:
    """Remove the entry of time ``t``: no combine, the older entries move up by one."""
    S, T, V = D
    mask = S[MASK]
    at = lower_bound(D, t)
    if at == S[END] or T[at & mask] != t:
        return MISSING
    for i in range(at, S[FRONT], -1):
        T[i & mask] = T[(i - 1) & mask]
        put(V, i & mask, get(V, (i - 1) & mask))
    return evict(D)
