"""FlatFAT, the flat fixed-size aggregator of the Reactive Aggregator (Tangwongsan et al., VLDB 2015).

State ``D = (S, T, V, H)``: a perfect binary tree in ``V`` (root at 1, children of x at 2x and 2x+1),
whose leaves ``capacity + slot`` are a ring of entries; ``H`` marks holes, entries that were evicted
from the middle. The first and the last entry are never holes.

Inserts and evicts write leaves only; `propagate` brings the inner nodes up to date before a query.
Slots outside the live range are skipped, not filled (paper 5.2). When the ring is inverted (the back
is before the front), a node over both ends would be in the wrong order; such nodes are never read,
and the answer is suffix(front) combined with prefix(back) (paper 5.1.2).
"""

from __future__ import annotations

from typing import Any

from muntin.stores.vocabulary import *

LIVE = 4  # entries that are not holes
DONE = 5  # entries before this position are in the inner nodes
EDGES = 6  # 1 if the front or the back has moved inwards since
SMALLEST = 8  # capacity
HOT = frozenset({"refresh", "end_leaves"})


def refresh(D: Any, x: int, first: int, last: int, inverted: bool) -> int:
    """Recompute node x; ``first`` and ``last`` are the nodes of the front and the back one level below.

    Returns the number of combines: 0 if at most one child has live entries.
    """
    V = D[2]
    left, right = 2 * x, 2 * x + 1
    if inverted:
        if x == first >> 1 and x == last >> 1:
            return 0  # over both ends: never read
        has_left = left <= last or left >= first
        has_right = right <= last or right >= first
    else:
        has_left = first <= left and left <= last
        has_right = first <= right and right <= last
    if has_left and has_right:
        put(V, x, combine(get(V, left), get(V, right)))
        return 1
    if has_left:
        put(V, x, get(V, left))
    elif has_right:
        put(V, x, get(V, right))
    return 0


def refresh_level(D: Any, low: int, high: int, first: int, last: int, inverted: bool) -> int:
    """Recompute the nodes low..high of one level; the number of combines."""
    combines = 0
    for x in range(low, high + 1):
        combines += refresh(D, x, first, last, inverted)
    return combines


def refresh_path(D: Any, leaf: int) -> None:
    """Recompute the ancestors of one leaf: at most log2(capacity) combines."""
    S = D[0]
    first, last = end_leaves(D)
    inverted = first > last
    x = leaf >> 1
    while x > 0:
        S[COMBINES] += refresh(D, x, first, last, inverted)
        first >>= 1
        last >>= 1
        x >>= 1


def end_leaves(D: Any) -> tuple[int, int]:
    """The leaves of the oldest and the newest entry."""
    S = D[0]
    capacity = S[MASK] + 1
    return capacity + (S[FRONT] & S[MASK]), capacity + ((S[END] - 1) & S[MASK])


def propagate(D: Any) -> None:
    """Bring the inner nodes up to date, level by level: m + 2 log2 n combines for m new entries."""
    S = D[0]
    end, mask = S[END], S[MASK]
    if S[FRONT] == end:
        S[DONE] = end
    if S[DONE] == end and (S[EDGES] == 0 or S[FRONT] == end):
        return
    # New entries are in slots low..high, wrapped if low > high. When only an edge moved, the path of the
    # last entry is refreshed: it contains every node that was over both ends before.
    low = mask + 1 + ((S[DONE] if S[DONE] < end else end - 1) & mask)
    first, last = end_leaves(D)
    high = last
    wrapped, inverted = low > high, first > last
    moved = S[EDGES] == 1
    aligned = True  # no node of this level has dead slots left of the front
    top = mask + 1  # first node of the level below
    combines = 0
    while top > 1:
        low >>= 1
        high >>= 1
        aligned = aligned and first & 1 == 0
        x = first >> 1
        if wrapped:
            combines += refresh_level(D, top >> 1, high, first, last, inverted)
            start = low if low > high else high + 1
            combines += refresh_level(D, start, top - 1, first, last, inverted)
            fresh = x <= high or x >= start
        else:
            combines += refresh_level(D, low, high, first, last, inverted)
            fresh = low <= x and x <= high
        if moved and not aligned and not fresh:
            combines += refresh(D, x, first, last, inverted)
        first, last, top = x, last >> 1, top >> 1
    S[COMBINES] += combines
    S[DONE] = end
    S[EDGES] = 0


def query(D: Any) -> Any:
    """O(1) in order, else suffix(front) and prefix(back); at most 2 log2 n + 1 with the last changes."""
    S, _, V, _ = D
    propagate(D)
    x, y = end_leaves(D)
    if S[FRONT] == S[END]:
        return ONE
    if x <= y:
        return get(V, 1)
    while x >> 1 != y >> 1:
        x >>= 1
        y >>= 1
    suffix, prefix = get(V, x), get(V, y)
    x >>= 1
    while x > 1:
        if x & 1:
            prefix = combine(get(V, x - 1), prefix)
        else:
            suffix = combine(suffix, get(V, x + 1))
        S[COMBINES] += 1
        x >>= 1
    S[COMBINES] += 1
    return combine(suffix, prefix)


def query_slots(D: Any, i: int, j: int) -> Any:
    """Product of the slots i..j-1, from the largest nodes inside: at most 2 log2 n combines."""
    S, _, V, _ = D
    low, high = S[MASK] + 1 + i, S[MASK] + 1 + j
    left, right = ONE, ONE
    while low < high:
        if low & 1:
            left = combine(left, get(V, low))
            S[COMBINES] += 1
            low += 1
        if high & 1:
            high -= 1
            right = combine(get(V, high), right)
            S[COMBINES] += 1
        low >>= 1
        high >>= 1
    S[COMBINES] += 1
    return combine(left, right)


def query_positions(D: Any, i: int, j: int) -> Any:
    """Product of the entries at positions i..j-1."""
    S = D[0]
    propagate(D)
    if i >= j:
        return ONE
    low, high = i & S[MASK], ((j - 1) & S[MASK]) + 1
    if low < high:
        return query_slots(D, low, high)
    S[COMBINES] += 1
    return combine(query_slots(D, low, S[MASK] + 1), query_slots(D, 0, high))


def any_live(D: Any, i: int, j: int) -> int:
    """1 if some entry at positions i..j-1 is not a hole, else 0."""
    S, H = D[0], D[3]
    for k in range(i, j):
        if not H[k & S[MASK]]:
            return 1
    return 0
