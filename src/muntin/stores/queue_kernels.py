"""The ring of the in-order stores: entries at absolute positions FRONT <= i < END.

State ``D = (S, T, V)``: ``S`` integers, ``T`` times, ``V`` partials. Position ``i`` is in slot
``i & S[MASK]``; the capacity is a power of two. Kernels return a status instead of raising, so that
the caller can grow the arrays and try again; a status other than ``OK`` means that nothing changed.
A store's own kernels replace those of the same name here.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.vocabulary import *


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
    """Insert one after the other; (number of entries done, the status that stopped it)."""
    for j in range(start, len(ts)):
        status = insert(D, ts[j], vs[j])
        if status != OK:
            return j, status
    return len(ts), OK


def insert(D: Any, t: int, v: Any) -> int:
    """Replaced by each store."""
    raise NotImplementedError


def evict(D: Any) -> int:
    """The oldest entry: no combine."""
    S = D[0]
    if S[FRONT] == S[END]:
        return EMPTY
    put(D[2], S[FRONT] & S[MASK], ONE)
    S[FRONT] += 1
    return OK


def drop_before(D: Any, t: int) -> int:
    """Forget every entry before ``t``: no combine. Their number."""
    S, _, V = D
    front, cut = S[FRONT], lower_bound(D, t)
    for i in range(front, cut):
        put(V, i & S[MASK], ONE)
    S[FRONT] = cut
    return cut - front


def evict_before(D: Any, t: int) -> int:
    """No combine."""
    return drop_before(D, t)


def query_positions(D: Any, i: int, j: int) -> Any:
    """Product of the entries i..j-1 that their slots hold: n - 1 combines for n entries."""
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
    """Product of all entries."""
    return query_positions(D, D[0][FRONT], D[0][END])
