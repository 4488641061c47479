"""Compiled removal of repeated items within rows."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Bools, Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled


@compiled
def _enter(
    item: int, codes: Ints, counts: Ints, start: int, k: int, last: Ints, index: Ints, summed: Ints
) -> int:
    """Append an item to the output, or add its count to an equal one since `start`; returns the new size."""
    place = last[codes[item]]
    if place >= start:
        summed[place] += counts[item]
        return k
    last[codes[item]] = k
    index[k] = item
    summed[k] = counts[item]
    return k + 1


@compiled
def first_of_each(
    offsets: Ints, codes: Ints, size: int, counts: Ints, repeating: Bools | None
) -> tuple[Ints, Ints, Ints]:
    """Offsets, places and summed counts of the first item of each code (0 to size - 1) in each row.

    Rows that are not `repeating` have no equal items.
    """
    starts = np.zeros(offsets.size, np.int64)
    index = np.empty(codes.size, np.int64)
    summed = np.empty(codes.size, np.int64)
    last = np.full(size, -1, np.int64)  # the last place of the code in the output, of any row
    k = 0
    for j in range(offsets.size - 1):
        if repeating is not None and not repeating[j]:
            for i in range(offsets[j], offsets[j + 1]):
                index[k] = i
                summed[k] = counts[i]
                k += 1
            starts[j + 1] = k
            continue
        for i in range(offsets[j], offsets[j + 1]):
            k = _enter(i, codes, counts, starts[j], k, last, index, summed)
        starts[j + 1] = k
    return starts, index[:k].copy(), summed[:k].copy()


@compiled
def first_in_ranges(
    offsets: Ints, codes: Ints, size: int, counts: Ints, rows: Ints | None, lo: Ints, hi: Ints
) -> tuple[Ints, Ints, Ints]:
    """As `first_of_each`, for ranges of rows that do not overlap in time, without joining them."""
    starts = np.zeros(lo.size + 1, np.int64)
    total = 0
    for j in range(lo.size):
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            total += offsets[r + 1] - offsets[r]
    index = np.empty(total, np.int64)
    summed = np.empty(total, np.int64)
    last = np.full(size, -1, np.int64)
    k = 0
    for j in range(lo.size):
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            for item in range(offsets[r], offsets[r + 1]):
                k = _enter(item, codes, counts, starts[j], k, last, index, summed)
        starts[j + 1] = k
    return starts, index[:k], summed[:k]


@compiled
def most_frequent(offsets: Ints, counts: Ints) -> Ints:
    """The place of the largest count of each row, the first of several; -1 for an empty row."""
    out = np.full(offsets.size - 1, -1, np.int64)
    for j in range(offsets.size - 1):
        for i in range(offsets[j], offsets[j + 1]):
            if out[j] < 0 or counts[i] > counts[out[j]]:
                out[j] = i
    return out
