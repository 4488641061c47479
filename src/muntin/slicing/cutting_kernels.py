"""Compiled: tuples into cells and groups, in one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def extent(time: Ints) -> tuple[int, int, bool]:
    """Smallest and largest time, and whether the times never go back."""
    low = high = time[0]
    ordered = True
    previous = time[0]
    for t in time:
        if t < previous:
            ordered = False
            if t < low:
                low = t
        elif t > high:
            high = t
        previous = t
    return low, high, ordered


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
def assign_sorted(time: Ints, edges: Ints, cell: Ints) -> None:
    """Cells of tuples in order: only the next edge is compared, as in [scotty Alg. 1]."""
    n = edges.shape[0]
    e = 0
    i = 0
    m = time.shape[0]
    while i < m:
        while e < n and edges[e] <= time[i]:
            e += 1
        upto = m
        if e < n:
            upto = i + np.searchsorted(time[i:], edges[e])
        cell[i:upto] = e
        i = upto


@njit(cache=True, nogil=True)
def spread(group: Ints, key_rank: Ints, cells: int) -> None:
    """Turn cells into groups of (key, cell), in place."""
    for i in range(group.shape[0]):
        group[i] += key_rank[i] * cells


@njit(cache=True, nogil=True)
def describe(group: Ints, time: Ints, seq: Ints, first: Ints, last: Ints, n: Ints, mark: Ints) -> None:
    """First and last time, number of tuples, and content mark of each group."""
    for g in range(n.shape[0]):
        n[g] = 0
        mark[g] = 0
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
        x = (np.uint64(seq[i]) + np.uint64(1)) * MIX
        x ^= x >> np.uint64(29)
        mark[g] += np.int64(x * MIX)


@njit(cache=True, nogil=True)
def describe_sorted(group: Ints, time: Ints, seq: Ints, first: Ints, last: Ints, n: Ints, mark: Ints) -> None:
    """As `describe`, for tuples in group order: counters stay in registers."""
    for g in range(n.shape[0]):
        n[g] = 0
        mark[g] = 0
    m = group.shape[0]
    i = 0
    while i < m:
        g = group[i]
        begin = i
        total = np.uint64(0)
        while i < m and group[i] == g:
            x = (np.uint64(seq[i]) + np.uint64(1)) * MIX
            x ^= x >> np.uint64(29)
            total += x * MIX
            i += 1
        first[g] = time[begin]
        last[g] = time[i - 1]
        n[g] = i - begin
        mark[g] = np.int64(total)


@njit(cache=True, nogil=True)
def cut_sorted(key: Ints, time: Ints, edges: Ints, gap: int, forced: Flags, group: Ints) -> int:
    """Groups of tuples in (key, time) order: a new one at each key, edge, session gap or forced cut."""
    n = edges.shape[0]
    g = -1
    previous_key = np.int64(-1)
    previous_time = np.int64(0)
    e = 0
    for i in range(time.shape[0]):
        t = time[i]
        new = i == 0 or key[i] != previous_key or forced[i]
        if key[i] != previous_key or i == 0:
            e = np.searchsorted(edges, t, side="right")
        else:
            while e < n and edges[e] <= t:
                e += 1
                new = True
            if gap >= 0 and t - previous_time > gap:
                new = True
        if new:
            g += 1
        group[i] = g
        previous_key = key[i]
        previous_time = t
    return g + 1


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
