"""Prefix products of an operator with an exact inverse: any range costs one ``invert``.

Slot i of [F, E) holds the product of the entries BASE..i. One slot before F stays readable, so the
ring takes one entry less than its capacity. Once per ring length the products restart at F, so no
product covers more entries than the ring has slots.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.queue_kernels import lower_bound
from muntin.stores.vocabulary import *

BASE = 4


def rebase(D: Any) -> None:
    """Restart the products at the front: one invert per entry, at most one per insert on average."""
    S, _, V = D
    front, end, mask = S[FRONT], S[END], S[MASK]
    if front > S[BASE]:
        before = get(V, (front - 1) & mask)
        for i in range(front, end):
            put(V, i & mask, invert(get(V, i & mask), before))
        S[COMBINES] += end - front
    S[BASE] = front


def insert(D: Any, t: int, v: Any) -> int:
    """One combine, and one invert on average for the restarts."""
    S, T, V = D
    end, mask = S[END], S[MASK]
    last = (end - 1) & mask
    tied = False
    if end > S[FRONT]:
        if t < T[last]:
            return DISORDER
        tied = t == T[last]
    if not tied and end - S[FRONT] >= mask:
        return FULL
    p = lift(v)
    if not tied and end - S[BASE] > mask:
        rebase(D)
    if end > S[BASE]:
        p = combine(get(V, last), p)
        S[COMBINES] += 1
    if tied:
        put(V, last, p)
        return OK
    T[end & mask] = t
    put(V, end & mask, p)
    S[END] = end + 1
    return OK


def evict(D: Any) -> int:
    """No combine."""
    S = D[0]
    if S[FRONT] == S[END]:
        return EMPTY
    S[FRONT] += 1
    if S[FRONT] == S[END]:
        S[BASE] = S[END]
    return OK


def evict_before(D: Any, t: int) -> int:
    """No combine."""
    S = D[0]
    cut = lower_bound(D, t)
    count = cut - S[FRONT]
    S[FRONT] = cut
    if cut == S[END]:
        S[BASE] = cut
    return count


def query_positions(D: Any, i: int, j: int) -> Any:
    """Product of the entries i..j-1: at most one invert."""
    S, _, V = D
    mask = S[MASK]
    if i >= j:
        return ONE
    total = get(V, (j - 1) & mask)
    if i > S[BASE]:
        S[COMBINES] += 1
        total = invert(total, get(V, (i - 1) & mask))
    return total
