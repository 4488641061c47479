"""Compiled sorted runs: the distinct keys of each row in order, and how many values lie up to each."""

from __future__ import annotations

import numpy as np
from numba import njit

from muntin.aggregates.arrays import Ints


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
    """Sorted rows with repetitions as offsets, distinct keys and the number of values up to each."""
    starts = np.zeros(offsets.size, np.int64)
    distinct = np.empty(keys.size, np.int64)
    upto = np.empty(keys.size, np.int64)
    k = 0
    for j in range(offsets.size - 1):
        first = offsets[j]
        last = offsets[j + 1]
        for i in range(first, last):
            if i + 1 == last or keys[i] != keys[i + 1]:
                distinct[k] = keys[i]
                upto[k] = i + 1 - first
                k += 1
        starts[j + 1] = k
    return starts, distinct[:k].copy(), upto[:k].copy()


@njit(cache=True, nogil=True)
def _merge(keys: Ints, upto: Ints, a: int, b: int, c: int, into_keys: Ints, into_upto: Ints) -> int:
    """Merge the runs a:b and b:c into the same place of the other buffers; where they end."""
    k = a
    i = a
    j = b
    # What has been merged of each run so far. Their sum counts by multiplicity, not by one.
    p = 0
    q = 0
    while i < b and j < c:
        x = keys[i]
        y = keys[j]
        if x <= y:
            p = upto[i]
            i += 1
        if y <= x:
            q = upto[j]
            j += 1
        into_keys[k] = min(x, y)
        into_upto[k] = p + q
        k += 1
    while i < b:
        into_keys[k] = keys[i]
        into_upto[k] = upto[i] + q
        i += 1
        k += 1
    while j < c:
        into_keys[k] = keys[j]
        into_upto[k] = p + upto[j]
        j += 1
        k += 1
    return k


@njit(cache=True, nogil=True)
def _merge_all(
    begin: Ints, end: Ints, n: int, keys: Ints, upto: Ints, other_keys: Ints, other_upto: Ints
) -> tuple[Ints, Ints, int]:
    """Merge n runs pair by pair until one is left; its buffers and its end."""
    while n > 1:
        m = 0
        for p in range(0, n - 1, 2):
            # The first run may end before the second begins: close the gap.
            a, b, c = begin[p], end[p], begin[p + 1]
            length = end[p + 1] - c
            if b < c:
                keys[b : b + length] = keys[c : c + length]
                upto[b : b + length] = upto[c : c + length]
            end[m] = _merge(keys, upto, a, b, b + length, other_keys, other_upto)
            begin[m] = a
            m += 1
        if n % 2:
            a, b = begin[n - 1], end[n - 1]
            other_keys[a:b] = keys[a:b]
            other_upto[a:b] = upto[a:b]
            begin[m] = a
            end[m] = b
            m += 1
        n = m
        keys, other_keys = other_keys, keys
        upto, other_upto = other_upto, upto
    return keys, upto, end[0]


@njit(cache=True, nogil=True)
def _sizes(offsets: Ints, rows: Ints | None, lo: Ints, hi: Ints) -> tuple[int, int, int]:
    """Keys of all ranges together, of the largest one, and the most rows in one."""
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
    return total, largest, most


@njit(cache=True, nogil=True)
def merge_rows(
    offsets: Ints, keys: Ints, upto: Ints, rows: Ints | None, lo: Ints, hi: Ints
) -> tuple[Ints, Ints, Ints]:
    """The runs of each range of rows merged into one."""
    total, largest, most = _sizes(offsets, rows, lo, hi)
    buffers = np.empty((4, largest if most > 1 else 0), np.int64)
    begin = np.empty(most + 1, np.int64)
    end = np.empty(most + 1, np.int64)
    starts = np.zeros(lo.size + 1, np.int64)
    out_keys = np.empty(total, np.int64)
    out_upto = np.empty(total, np.int64)
    k = 0
    for j in range(lo.size):
        n = 0
        size = 0
        alone = hi[j] - lo[j] == 1  # most rows of a table: no detour through the buffers
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            a, b = offsets[r], offsets[r + 1]
            if alone:
                out_keys[k : k + b - a] = keys[a:b]
                out_upto[k : k + b - a] = upto[a:b]
                k += b - a
            elif a < b:
                begin[n] = size
                end[n] = size + b - a
                buffers[0, size : size + b - a] = keys[a:b]
                buffers[1, size : size + b - a] = upto[a:b]
                size = end[n]
                n += 1
        if n > 0:
            merged_keys, merged_upto, size = _merge_all(
                begin, end, n, buffers[0], buffers[1], buffers[2], buffers[3]
            )
            out_keys[k : k + size] = merged_keys[:size]
            out_upto[k : k + size] = merged_upto[:size]
            k += size
        starts[j + 1] = k
    return starts, out_keys[:k].copy(), out_upto[:k].copy()
