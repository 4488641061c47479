# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so their items are Any)
"""Insert and query of the two Lite queues, Two-Stacks Lite and DABA Lite.

Slots before BORDER serve the front with suffix products, slots from BORDER on are entries. ``back``, the
product of BORDER..END-1, is behind the ring, in the slot after the last.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.placeholders import combine, get, lift, put
from muntin.stores.queue_kernels import COMBINES, DISORDER, END, FRONT, FULL, MASK, OK

BORDER = 4
HOT = frozenset({"insert", "query"})


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


def query(D: Any) -> Any:
    """One combine."""
    S, _, V = D
    mask = S[MASK]
    if S[FRONT] == S[BORDER]:
        return get(V, mask + 1)
    S[COMBINES] += 1
    return combine(get(V, S[FRONT] & mask), get(V, mask + 1))
