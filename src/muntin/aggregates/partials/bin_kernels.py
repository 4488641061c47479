"""Compiled counts per bin."""

from __future__ import annotations

import numpy as np
from numba import njit

from muntin.aggregates.arrays import Bools, Floats, Ints


@njit(cache=True, nogil=True)
def count_bins(values: Floats, valid: Bools | None, group: Ints, edges: Floats, out: Ints) -> None:
    """Count each value in its group and bin `edges[k] <= value < edges[k + 1]`; none outside, and no NaN."""
    last = edges.size - 1
    for i in range(values.size):
        x = values[i]
        if group[i] < 0 or not (edges[0] <= x < edges[last]):
            continue
        if valid is not None and not valid[i]:
            continue
        a = 0
        b = last
        while b - a > 1:
            middle = (a + b) >> 1
            if edges[middle] <= x:
                a = middle
            else:
                b = middle
        out[group[i], a] += 1


@njit(cache=True, nogil=True)
def add_bin_rows(state: Ints, rows: Ints | None, lo: Ints, hi: Ints, out: Ints) -> None:
    """Sum of a range of rows, for each output row."""
    for j in range(lo.size):
        for i in range(lo[j], hi[j]):
            r = i
            if rows is not None:
                r = rows[i]
            for k in range(state.shape[1]):
                out[j, k] += state[r, k]


@njit(cache=True, nogil=True)
def equal_bins(offsets: Ints, values: Floats, counts: Ints, bins: int) -> tuple[Floats, Ints]:
    """Edges and counts of equally wide bins between the smallest and largest finite value of each row.

    The values of a row are sorted. A row without a finite value has NaN for edges.
    """
    rows = offsets.size - 1
    edges = np.full((rows, bins + 1), np.nan)
    found = np.zeros((rows, bins), np.int64)
    for j in range(rows):
        a = offsets[j]
        b = offsets[j + 1]
        while a < b and not np.isfinite(values[a]):
            a += 1
        while a < b and not np.isfinite(values[b - 1]):
            b -= 1
        if a == b:
            continue
        low = values[a]
        high = values[b - 1]
        if low == high:  # as NumPy does: one value, in the middle of a range of 1
            low -= 0.5
            high += 0.5
        width = high / bins - low / bins  # high - low may be infinite
        for k in range(bins):
            edges[j, k] = low + k * width
        edges[j, bins] = high
        k = 0
        for i in range(a, b):
            while k < bins - 1 and values[i] >= edges[j, k + 1]:
                k += 1
            found[j, k] += counts[i]
    return edges, found
