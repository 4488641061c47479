"""DABA Lite: Two-Stacks Lite with the flip spread over later operations (VLDBJ 2021).

Positions F <= L <= R <= A <= B <= E cut the queue:

    [F, L)  product i..B-1   finished
    [L, R)  product i..R-1   old front, still lacks R..B-1
    [R, A)  the entry        not yet a suffix product
    [A, B)  product i..B-1   finished from the right
    [B, E)  the entry

``back`` = product B..E-1 and ``mid`` = product R..B-1 are behind the ring. R - L = A - R, and while
the window is not empty L - F = (E - B) + 1: the front slot is always finished.
"""

from __future__ import annotations

from typing import Any

from muntin.stores.queue_kernels import lower_bound, query_positions
from muntin.stores.two_stacks_kernels import BORDER, append
from muntin.stores.vocabulary import *

LEFT, RIGHT, ACCUMULATED = 5, 6, 7
HOT = frozenset({"step", "insert", "evict"})


def step(D: Any) -> None:
    """One step of the flip: at most two combines."""
    S, _, V = D
    mask, border = S[MASK], S[BORDER]
    back, mid = mask + 1, mask + 2
    if S[LEFT] == border:
        S[LEFT] = S[FRONT]
        S[RIGHT] = border
        S[ACCUMULATED] = S[BORDER] = border = S[END]
        put(V, mid, get(V, back))
        put(V, back, ONE)
    if S[FRONT] == border:
        put(V, mid, ONE)
        put(V, back, ONE)
        return
    left, right, a = S[LEFT], S[RIGHT], S[ACCUMULATED]
    if a != right:
        a -= 1
        if a + 1 != border:
            put(V, a & mask, combine(get(V, a & mask), get(V, (a + 1) & mask)))
            S[COMBINES] += 1
        S[ACCUMULATED] = a
    if left != right:
        put(V, left & mask, combine(get(V, left & mask), get(V, mid)))
        S[COMBINES] += 1
        S[LEFT] = left + 1
    else:
        S[LEFT] = left + 1
        S[RIGHT] = right + 1
        S[ACCUMULATED] = a + 1
        put(V, mid, ONE if a + 1 == border else get(V, (a + 1) & mask))


def insert(D: Any, t: int, v: Any) -> int:
    """At most three combines."""
    status = append(D, t, v)
    if status == OK:
        step(D)
    return status


def evict(D: Any) -> int:
    """At most two combines."""
    S, _, V = D
    if S[FRONT] == S[END]:
        return EMPTY
    put(V, S[FRONT] & S[MASK], ONE)
    S[FRONT] += 1
    step(D)
    return OK


def evict_before(D: Any, t: int) -> int:
    """Evict one after the other: at most two combines each."""
    count = lower_bound(D, t) - D[0][FRONT]
    for _ in range(count):
        evict(D)
    return count


def query_from(D: Any, i: int) -> Any:
    """Product of the entries from position ``i`` to the end."""
    S, _, V = D
    mask, border = S[MASK], S[BORDER]
    if i >= border:
        return query_positions(D, i, S[END])
    total = get(V, i & mask)
    j = border  # the entries from j on are not in total yet
    if S[LEFT] <= i and i < S[RIGHT]:
        total = combine(total, get(V, mask + 2))
        S[COMBINES] += 1
    elif S[RIGHT] <= i and i < S[ACCUMULATED]:
        j = i + 1
    while j < border:
        total = combine(total, get(V, j & mask))
        S[COMBINES] += 1
        j = border if j >= S[ACCUMULATED] else j + 1
    S[COMBINES] += 1
    return combine(total, get(V, mask + 1))
