# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""B-Int: aggregates of dyadic base intervals (Arasu and Widom, VLDB 2004).

Interval j of level l covers the positions j * 2^l to (j + 1) * 2^l - 1 and is computed when its last
entry arrives; the levels lie in ``V`` like the nodes of a FlatFAT. A window is a run of positions and
is put together from at most two intervals of each level when it is asked for.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.flatfat_node_kernels import query_slots
from muntin.stores.queue_kernels import lower_bound
from muntin.stores.vocabulary import *


def insert(D: Any, t: int, v: Any) -> int:
    """One combine on average, at most log2 n."""
    S, T, V, _ = D
    front, end, mask = S[FRONT], S[END], S[MASK]
    if end - front > mask:
        return FULL
    if end > front and t < T[(end - 1) & mask]:
        return DISORDER
    T[end & mask] = t
    x = mask + 1 + (end & mask)
    put(V, x, lift(v))
    while x & 1 and x > 1:
        x >>= 1
        put(V, x, combine(get(V, 2 * x), get(V, 2 * x + 1)))
        S[COMBINES] += 1
    S[END] = end + 1
    return OK


def evict(D: Any) -> int:
    """No combine."""
    S = D[0]
    if S[FRONT] == S[END]:
        return EMPTY
    S[FRONT] += 1
    return OK


def evict_before(D: Any, t: int) -> int:
    """No combine."""
    S = D[0]
    cut = lower_bound(D, t)
    count: int = cut - S[FRONT]
    S[FRONT] = cut
    return count


def query_positions(D: Any, i: int, j: int) -> Any:
    """At most 2 log2 n combines."""
    S = D[0]
    if i >= j:
        return ONE
    low, high = i & S[MASK], ((j - 1) & S[MASK]) + 1
    if low < high:
        return query_slots(D, low, high)
    S[COMBINES] += 1
    return combine(query_slots(D, low, S[MASK] + 1), query_slots(D, 0, high))


def query(D: Any) -> Any:
    """At most 2 log2 n + 1 combines."""
    return query_positions(D, D[0][FRONT], D[0][END])
