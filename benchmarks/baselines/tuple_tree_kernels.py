# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""FlatFAT over single tuples: one that comes late moves all younger leaves and dirties their nodes."""

from __future__ import annotations

from typing import Any

from muntin.stores.flatfat_node_kernels import DONE, EDGES, LIVE
from muntin.stores.queue_kernels import lower_bound
from muntin.stores.vocabulary import *


def insert(D: Any, t: int, v: Any) -> int:
    """In order no combine until the next query; at distance d O(d + log n)."""
    S, T, V, H = D
    front, end, mask = S[FRONT], S[END], S[MASK]
    if end - front > mask:
        return FULL
    at = end
    if end > front and t < T[(end - 1) & mask]:
        at = lower_bound(D, t + 1)
    leaf = mask + 1
    for i in range(end, at, -1):
        T[i & mask] = T[(i - 1) & mask]
        H[i & mask] = H[(i - 1) & mask]
        put(V, leaf + (i & mask), get(V, leaf + ((i - 1) & mask)))
    T[at & mask] = t
    H[at & mask] = 0
    put(V, leaf + (at & mask), lift(v))
    S[END] = end + 1
    S[LIVE] += 1
    if at < S[DONE]:
        S[DONE] = at
        S[EDGES] = 1
    return OK
