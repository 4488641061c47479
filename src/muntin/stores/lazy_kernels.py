# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""The lazy list: entries in time order, combined when asked."""

from __future__ import annotations

from typing import Any

from muntin.stores.placeholders import ONE, combine, get, lift, put
from muntin.stores.queue_kernels import (
    COMBINES,
    EMPTY,
    END,
    FRONT,
    FULL,
    MASK,
    MISSING,
    OK,
    lower_bound,
)

STATES = 4


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


def evict(D: Any) -> int:
    """No combine."""
    S, _, V = D
    if S[FRONT] == S[END]:
        return EMPTY
    put(V, S[FRONT] & S[MASK], ONE)
    S[FRONT] += 1
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


def evict_before(D: Any, t: int) -> int:
    """No combine."""
    S, _, V = D
    cut = lower_bound(D, t)
    count = cut - S[FRONT]
    for i in range(S[FRONT], cut):
        put(V, i & S[MASK], ONE)
    S[FRONT] = cut
    return count


def query_positions(D: Any, i: int, j: int) -> Any:
    """Product of the entries i..j-1: one combine less than entries."""
    S, _, V = D
    mask = S[MASK]
    if i >= j:
        return ONE
    total = get(V, i & mask)
    for k in range(i + 1, j):
        total = combine(total, get(V, k & mask))
    S[COMBINES] += j - i - 1
    return total


def query(D: Any) -> Any:
    """One combine less than entries."""
    return query_positions(D, D[0][FRONT], D[0][END])
