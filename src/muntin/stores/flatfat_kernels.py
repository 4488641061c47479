"""FlatFAT: insert, update and evict entries, which write leaves; see `flatfat_node_kernels` for the rest."""

from __future__ import annotations

from typing import Any

from muntin.stores.flatfat_node_kernels import (
    DONE,
    EDGES,
    LIVE,
    SMALLEST,
    end_leaves,
    propagate,
    refresh,
    refresh_path,
)
from muntin.stores.queue_kernels import lower_bound
from muntin.stores.vocabulary import *

HOT = frozenset({"insert", "evict", "density"})


def insert(D: Any, t: int, v: Any) -> int:
    """At the end: no combine until the next query. At an existing time: O(log n)."""
    S, T, V, H = D
    front, end, mask = S[FRONT], S[END], S[MASK]
    if end > front and t <= T[(end - 1) & mask]:
        return revisit(D, lower_bound(D, t), t, v)
    if end - front > mask:
        return FULL
    slot = end & mask
    put(V, mask + 1 + slot, lift(v))
    T[slot] = t
    H[slot] = 0
    S[END] = end + 1
    S[LIVE] += 1
    return OK


def revisit(D: Any, at: int, t: int, v: Any) -> int:
    """Combine into the entry of time ``t``, or fill the hole that it left."""
    S, T, V, H = D
    slot = at & S[MASK]
    leaf = S[MASK] + 1 + slot
    if T[slot] != t:
        return DISORDER
    if H[slot]:
        H[slot] = 0
        S[LIVE] += 1
        put(V, leaf, lift(v))
    else:
        put(V, leaf, combine(get(V, leaf), lift(v)))
        S[COMBINES] += 1
    if at < S[DONE]:
        refresh_path(D, leaf)
    return OK


def evict(D: Any) -> int:
    """The oldest entry: no combine until the next query."""
    S = D[0]
    if S[LIVE] == 0:
        return EMPTY
    drop_front(D, S[FRONT] + 1)
    return density(D)


def density(D: Any) -> int:
    """SPARSE if less than a quarter of the slots is live."""
    S = D[0]
    return SPARSE if 4 * S[LIVE] <= S[MASK] and S[MASK] >= SMALLEST else OK


def drop_front(D: Any, cut: int) -> None:
    """Forget everything before position ``cut`` and the holes that follow it."""
    S, _, V, H = D
    front, end, mask = S[FRONT], S[END], S[MASK]
    while front < cut or (front < end and H[front & mask]):
        slot = front & mask
        if not H[slot]:
            S[LIVE] -= 1
        H[slot] = 0
        put(V, mask + 1 + slot, ONE)
        front += 1
    S[FRONT] = front
    if S[DONE] < front:
        S[DONE] = front
    S[EDGES] = 1


def evict_before(D: Any, t: int) -> int:
    """No combine until the next query."""
    S = D[0]
    live = S[LIVE]
    cut = lower_bound(D, t)
    if cut > S[FRONT]:
        drop_front(D, cut)
    return live - S[LIVE]


def evict_at(D: Any, t: int) -> int:
    """Anywhere: a hole in the middle costs O(log n); at both ends no combine until the next query."""
    S, T, V, H = D
    mask = S[MASK]
    at = lower_bound(D, t)
    slot = at & mask
    if at == S[END] or T[slot] != t or H[slot]:
        return MISSING
    if at == S[FRONT]:
        drop_front(D, at + 1)
    elif at == S[END] - 1:
        drop_back(D)
    else:
        H[slot] = 1
        put(V, mask + 1 + slot, ONE)
        S[LIVE] -= 1
        if at < S[DONE]:
            refresh_path(D, mask + 1 + slot)
    return density(D)


def drop_back(D: Any) -> None:
    """Forget the newest entry and the holes before it."""
    S, _, V, H = D
    end, mask = S[END] - 1, S[MASK]
    put(V, mask + 1 + (end & mask), ONE)
    while H[(end - 1) & mask]:
        end -= 1
        H[end & mask] = 0
    S[END] = end
    S[LIVE] -= 1
    if S[DONE] > end:
        S[DONE] = end
    S[EDGES] = 1


def update_many(D: Any, ts: Any, vs: Any, nodes: Any) -> int:
    """Replace the values at times ``ts`` (sorted, all present): O(m + m log(n/m)) combines.

    Returns -1, or the index of the first time that is missing (nothing has changed then).
    """
    S, T, V, H = D
    mask = S[MASK]
    propagate(D)
    for j in range(len(ts)):
        at = lower_bound(D, ts[j])
        if at == S[END] or T[at & mask] != ts[j] or H[at & mask]:
            return j
        nodes[j] = mask + 1 + (at & mask)
    for j in range(len(ts)):
        put(V, nodes[j], lift(vs[j]))
    first, last = end_leaves(D)
    inverted = first > last
    count = len(ts)
    while count > 0 and first > 1:
        parents = 0
        for j in range(count):
            x = nodes[j] >> 1
            if parents == 0 or nodes[parents - 1] != x:
                nodes[parents] = x
                parents += 1
                S[COMBINES] += refresh(D, x, first, last, inverted)
        count = parents
        first >>= 1
        last >>= 1
    return -1
