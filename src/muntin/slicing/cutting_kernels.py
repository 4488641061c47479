"""Compiled: tuples into cells and groups, in one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def extent(key: Ints, time: Ints) -> tuple[int, int, bool, bool]:
    """Smallest and largest time, whether the times never go back, and whether there is one key only."""
    low = high = previous = time[0]
    ordered = True
    for t in time:
        ordered &= t >= previous
        low = min(low, t)
        high = max(high, t)
        previous = t
    first = key[0]
    one_key = True
    for k in key:
        one_key &= k == first
    return low, high, ordered, one_key


@njit(cache=True, nogil=True)
def lookup_table(edges: Ints, low: int, shift: int, size: int) -> Ints:
    """For each bucket of 2**shift time units from `low`: how many edges lie at or before its start."""
    table = np.empty(size, np.int64)
    e = 0
    for b in range(size):
        at = low + (b << shift)
        while e < edges.shape[0] and edges[e] <= at:
            e += 1
        table[b] = e
    return table


@njit(cache=True, nogil=True)
def assign(time: Ints, edges: Ints, table: Ints, low: int, shift: int, cell: Ints) -> None:
    """Cell of each tuple: the number of edges at or before it.

    One look-up, then rarely a step, as with the cached next edge of [scotty §7.3.3].
    """
    n = edges.shape[0]
    for i in range(time.shape[0]):
        t = time[i]
        c = table[(t - low) >> shift]
        while c < n and edges[c] <= t:
            c += 1
        cell[i] = c


@njit(cache=True, nogil=True)
def spread(group: Ints, key_rank: Ints, cells: int) -> None:
    """Turn cells into groups of (key, cell), in place."""
    for i in range(group.shape[0]):
        group[i] += key_rank[i] * cells


@njit(cache=True, nogil=True)
def describe(group: Ints, time: Ints, first: Ints, last: Ints, n: Ints) -> None:
    """First and last time and number of tuples of each group."""
    for g in range(n.shape[0]):
        n[g] = 0
    for i in range(group.shape[0]):
        g = group[i]
        t = time[i]
        if n[g] == 0:
            first[g] = t
            last[g] = t
        elif t < first[g]:
            first[g] = t
        elif t > last[g]:
            last[g] = t
        n[g] += 1


@njit(cache=True, nogil=True)
def content_marks(seq: Ints, begins: Ints, mark: Ints) -> None:
    """A sum of hashes of the tuples of each run: equal for equal contents, whatever else happened."""
    for g in range(mark.shape[0]):
        total = np.uint64(0)
        for i in range(begins[g], begins[g + 1]):
            x = (np.uint64(seq[i]) + np.uint64(1)) * MIX
            x ^= x >> np.uint64(29)
            total += x * MIX
        mark[g] = np.int64(total)


@njit(cache=True, nogil=True)
def cut_sorted_time(time: Ints, edges: Ints, begins: Ints) -> int:
    """Begins of slices of one key's tuples in order: only the next edge counts, as in [scotty Alg. 1]."""
    count = 0
    i = 0
    n = time.shape[0]
    e = np.searchsorted(edges, time[0], side="right")
    while i < n:
        begins[count] = i
        count += 1
        if e >= edges.shape[0]:
            break
        i += np.searchsorted(time[i:], edges[e])
        if i < n:
            e += np.searchsorted(edges[e:], time[i], side="right")
    return count


@njit(cache=True, nogil=True)
def cut_sorted(key: Ints, time: Ints, edges: Ints, gap: int, forced: Flags, begins: Ints) -> int:
    """Begins of the slices of tuples in (key, time) order: at each key, edge, session gap or forced cut."""
    n = edges.shape[0]
    count = 0
    previous_key = np.int64(-1)
    previous_time = np.int64(0)
    e = 0
    for i in range(time.shape[0]):
        t = time[i]
        new = forced[i]
        if i == 0 or key[i] != previous_key:
            new = True
            e = np.searchsorted(edges, t, side="right")
        else:
            while e < n and edges[e] <= t:
                e += 1
                new = True
            if gap >= 0 and t > previous_time + gap:
                new = True
        if new:
            begins[count] = i
            count += 1
        previous_key = key[i]
        previous_time = t
    return count


@njit(cache=True, nogil=True)
def progression_edges(offset: Ints, period: Ints, low: int, high: int, out: Ints) -> int:
    """All members of the arithmetic progressions in [low, high]; returns how many, as in [scotty Alg. 2]."""
    count = 0
    for p in range(offset.shape[0]):
        k = -((offset[p] - low) // period[p])
        at = offset[p] + k * period[p]
        while at <= high:
            out[count] = at
            count += 1
            at += period[p]
    return count
