"""Compiled removal of repeated items within rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from muntin.aggregates.arrays import Ints


@njit(cache=True, nogil=True)
def first_of_each(offsets: Ints, codes: Ints, size: int, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Offsets, places and summed counts of the first item of each code (0 to size - 1) in each row."""
    starts = np.zeros(offsets.size, np.int64)
    index = np.empty(codes.size, np.int64)
    summed = np.empty(codes.size, np.int64)
    found = np.full(size, -1, np.int64)  # where the code was last put out; before this row, it counts not
    k = 0
    for j in range(offsets.size - 1):
        for i in range(offsets[j], offsets[j + 1]):
            place = found[codes[i]]
            if place >= starts[j]:
                summed[place] += counts[i]
            else:
                found[codes[i]] = k
                index[k] = i
                summed[k] = counts[i]
                k += 1
        starts[j + 1] = k
    return starts, index[:k].copy(), summed[:k].copy()


@njit(cache=True, nogil=True)
def most_frequent(offsets: Ints, counts: Ints) -> Ints:
    """The place of the largest count of each row, the first of several; -1 for an empty row."""
    out = np.full(offsets.size - 1, -1, np.int64)
    for j in range(offsets.size - 1):
        for i in range(offsets[j], offsets[j + 1]):
            if out[j] < 0 or counts[i] > counts[out[j]]:
                out[j] = i
    return out
