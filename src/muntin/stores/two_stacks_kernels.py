# mypy: disable-error-code="no-any-return"
# (columns are lists or arrays, so what they hold is Any)
"""Two-Stacks Lite: a queue whose front part holds suffix sums (Tangwongsan et al., VLDBJ 2021).

With F <= B <= E: slot i of [F, B) holds the product of the entries i..B-1, slot i of [B, E) the
entry itself; ``back`` (kept behind the ring, at the slot after the last) is the product of B..E-1.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.placeholders import ONE, combine, get, lift, put
from muntin.stores.queue_kernels import (
    COMBINES,
    DISORDER,
    EMPTY,
    END,
    FRONT,
    FULL,
    MASK,
    OK,
    lower_bound,
)

BORDER = 4
STATES = 5
HOT = frozenset({"insert", "evict", "query"})


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


def flip(D: Any) -> None:
    """Turn the back part into suffix sums: as many combines as it has entries."""
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
    """No combine, or one for each entry when the front part has run out."""
    S, _, V = D
    if S[FRONT] == S[END]:
        return EMPTY
    if S[FRONT] == S[BORDER]:
        flip(D)
    put(V, S[FRONT] & S[MASK], ONE)
    S[FRONT] += 1
    return OK


def evict_before(D: Any, t: int) -> int:
    """Free within the front part; a cut in the back part flips what remains."""
    S, _, V = D
    front, mask = S[FRONT], S[MASK]
    cut = lower_bound(D, t)
    for i in range(front, cut):
        put(V, i & mask, ONE)
    S[FRONT] = cut
    if cut > S[BORDER]:
        flip(D)
    return cut - front


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
    mask, border = S[MASK], S[BORDER]
    if i < border:
        S[COMBINES] += 1
        return combine(get(V, i & mask), get(V, mask + 1))
    total = get(V, i & mask)
    for j in range(i + 1, S[END]):
        total = combine(total, get(V, j & mask))
    S[COMBINES] += S[END] - i - 1
    return total
