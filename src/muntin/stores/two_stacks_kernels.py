"""Two-Stacks Lite: a queue whose front part holds suffix products (Tangwongsan et al., VLDBJ 2021).

With F <= B <= E: slot i of [F, B) holds the product of the entries i..B-1, slot i of [B, E) the
entry itself. ``back``, the product of B..E-1, is behind the ring, in the slot after the last.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.queue_kernels import drop_before, query_positions
from muntin.stores.vocabulary import *

BORDER = 4
HOT = frozenset({"append", "insert", "evict", "query"})


def append(D: Any, t: int, v: Any) -> int:
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


def insert(D: Any, t: int, v: Any) -> int:
    """One combine."""
    return append(D, t, v)


def flip(D: Any) -> None:
    """Turn the back part into suffix products: one combine per entry."""
    S, _, V = D
    front, end, mask = S[FRONT], S[END], S[MASK]
    total = ONE
    for i in range(end - 1, front - 1, -1):
        total = combine(get(V, i & mask), total)
        put(V, i & mask, total)
    put(V, mask + 1, ONE)
    S[BORDER] = end
    S[COMBINES] += end - front


def evict(D: Any) -> int:
    """No combine, or one per entry when the front part is used up."""
    S, _, V = D
    if S[FRONT] == S[END]:
        return EMPTY
    if S[FRONT] == S[BORDER]:
        flip(D)
    put(V, S[FRONT] & S[MASK], ONE)
    S[FRONT] += 1
    return OK


def evict_before(D: Any, t: int) -> int:
    """No combine within the front part; a cut in the back part flips the remaining entries."""
    count = drop_before(D, t)
    if D[0][FRONT] > D[0][BORDER]:
        flip(D)
    return count


def query(D: Any) -> Any:
    """One combine."""
    S, _, V = D
    mask = S[MASK]
    if S[FRONT] == S[BORDER]:
        return get(V, mask + 1)
    S[COMBINES] += 1
    return combine(get(V, S[FRONT] & mask), get(V, mask + 1))


def query_from(D: Any, i: int) -> Any:
    """Product of the entries from position ``i`` to the end; one combine in the front part."""
    S, _, V = D
    mask = S[MASK]
    if i < S[BORDER]:
        S[COMBINES] += 1
        return combine(get(V, i & mask), get(V, mask + 1))
    return query_positions(D, i, S[END])
