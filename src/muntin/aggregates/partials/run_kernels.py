"""Compiled sorted runs: the distinct keys of each row in order, with how often each occurs."""

from __future__ import annotations

import numpy as np
from numba import njit

from muntin.aggregates.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def sort_small(offsets: Ints, keys: Ints, limit: int) -> None:
    """Sort the rows of at most `limit` keys in place, by insertion; NumPy sorts the others faster."""
    for j in range(offsets.size - 1):
        if 1 < offsets[j + 1] - offsets[j] <= limit:
            for i in range(offsets[j] + 1, offsets[j + 1]):
                key = keys[i]
                k = i
                while k > offsets[j] and keys[k - 1] > key:
                    keys[k] = keys[k - 1]
                    k -= 1
                keys[k] = key


@njit(cache=True, nogil=True)
def compress(offsets: Ints, keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Sorted rows with repetitions as offsets, distinct keys and counts."""
    starts = np.zeros(offsets.size, np.int64)
    distinct = np.empty(keys.size, np.int64)
    counts = np.empty(keys.size, np.int64)
    k = 0
    for j in range(offsets.size - 1):
        for i in range(offsets[j], offsets[j + 1]):
            if i > offsets[j] and keys[i] == distinct[k - 1]:
                counts[k - 1] += 1
            else:
                distinct[k] = keys[i]
                counts[k] = 1
                k += 1
        starts[j + 1] = k
    return starts, distinct[:k].copy(), counts[:k].copy()


@njit(cache=True, nogil=True)
def _copy(keys: Ints, counts: Ints, a: int, b: int, into_keys: Ints, into_counts: Ints, at: int) -> None:
    for i in range(a, b):
        into_keys[at + i - a] = keys[i]
        into_counts[at + i - a] = counts[i]


@njit(cache=True, nogil=True)
def _merge(keys: Ints, counts: Ints, a: int, b: int, c: int, into_keys: Ints, into_counts: Ints) -> int:
    """Merge the runs a:b and b:c into the same place of the other buffers; where they end."""
    k = a
    i = a
    j = b
    while i < b and j < c:
        if keys[i] < keys[j]:
            into_keys[k] = keys[i]
            into_counts[k] = counts[i]
            i += 1
        elif keys[j] < keys[i]:
            into_keys[k] = keys[j]
            into_counts[k] = counts[j]
            j += 1
        else:
            into_keys[k] = keys[i]
            into_counts[k] = counts[i] + counts[j]  # by multiplicity, not by one
            i += 1
            j += 1
        k += 1
    while i < b:
        into_keys[k] = keys[i]
        into_counts[k] = counts[i]
        i += 1
        k += 1
    while j < c:
        into_keys[k] = keys[j]
        into_counts[k] = counts[j]
        j += 1
        k += 1
    return k


@njit(cache=True, nogil=True)
def _merge_all(
    begin: Ints, end: Ints, n: int, keys: Ints, counts: Ints, other_keys: Ints, other_counts: Ints
) -> tuple[Ints, Ints, int]:
    """Merge n runs pair by pair until one is left; its buffers and its end."""
    while n > 1:
        m = 0
        for p in range(0, n - 1, 2):
            # The first run may end before the second begins: close the gap.
            a, b, c = begin[p], end[p], begin[p + 1]
            length = end[p + 1] - c
            if b < c:
                _copy(keys, counts, c, c + length, keys, counts, b)
            end[m] = _merge(keys, counts, a, b, b + length, other_keys, other_counts)
            begin[m] = a
            m += 1
        if n % 2:
            a, b = begin[n - 1], end[n - 1]
            _copy(keys, counts, a, b, other_keys, other_counts, a)
            begin[m] = a
            end[m] = b
            m += 1
        n = m
        keys, other_keys = other_keys, keys
        counts, other_counts = other_counts, counts
    return keys, counts, end[0]


@njit(cache=True, nogil=True)
def merge_rows(
    offsets: Ints, keys: Ints, counts: Ints, rows: Ints | None, lo: Ints, hi: Ints
) -> tuple[Ints, Ints, Ints]:
    """The runs of each range of rows merged into one."""
    largest = 0
    total = 0
    most = 0
    for j in range(lo.size):
        size = 0
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            size += offsets[r + 1] - offsets[r]
        largest = max(largest, size)
        most = max(most, hi[j] - lo[j])
        total += size
    buffers = np.empty((4, largest), np.int64)
    begin = np.empty(most + 1, np.int64)
    end = np.empty(most + 1, np.int64)
    starts = np.zeros(lo.size + 1, np.int64)
    out_keys = np.empty(total, np.int64)
    out_counts = np.empty(total, np.int64)
    k = 0
    for j in range(lo.size):
        n = 0
        size = 0
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            a, b = offsets[r], offsets[r + 1]
            if a < b:
                begin[n] = size
                end[n] = size + b - a
                _copy(keys, counts, a, b, buffers[0], buffers[1], size)
                size = end[n]
                n += 1
        if n > 0:
            merged_keys, merged_counts, size = _merge_all(
                begin, end, n, buffers[0], buffers[1], buffers[2], buffers[3]
            )
            _copy(merged_keys, merged_counts, 0, size, out_keys, out_counts, k)
            k += size
        starts[j + 1] = k
    return starts, out_keys[:k].copy(), out_counts[:k].copy()


@njit(cache=True, nogil=True)
def neighbours(offsets: Ints, keys: Ints, counts: Ints, q: float) -> tuple[Ints, Ints, Floats]:
    """The keys below and above the fraction q of each row, and how far between them it lies."""
    rows = offsets.size - 1
    below = np.zeros(rows, np.int64)
    above = np.zeros(rows, np.int64)
    between = np.zeros(rows)
    for j in range(rows):
        total = 0
        for c in counts[offsets[j] : offsets[j + 1]]:
            total += c
        if total == 0:
            continue
        position = q * (total - 1)
        low = np.int64(np.floor(position))
        high = np.int64(np.ceil(position))
        between[j] = position - low
        seen = 0
        found = False
        for i in range(offsets[j], offsets[j + 1]):
            seen += counts[i]
            if not found and seen > low:
                below[j] = keys[i]
                found = True
            if seen > high:
                above[j] = keys[i]
                break
    return below, above, between
