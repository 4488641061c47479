"""Compiled counts per bin."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Bools, Floats, Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled


@compiled
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


@compiled
def add_bin_rows(state: Ints, rows: Ints | None, lo: Ints, hi: Ints, out: Ints) -> None:
    """Sum of a range of rows, for each output row."""
    for j in range(lo.size):
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            for k in range(state.shape[1]):
                out[j, k] += state[r, k]


@compiled
def _finite(values: Floats, a: int, b: int) -> tuple[int, int]:
    """The part of the sorted values a:b without infinities and NaN."""
    while a < b and not np.isfinite(values[a]):
        a += 1
    while a < b and not np.isfinite(values[b - 1]):
        b -= 1
    return a, b


@compiled
def _count_slice(values: Floats, upto: Ints, first: int, a: int, b: int, edges: Floats, out: Ints) -> None:
    """Count the values a:b of a run that begins at `first`, by binary search for each edge."""
    before = upto[a - 1] if a > first else 0
    for k in range(out.size):
        c = a
        d = b
        if k + 1 == out.size:
            c = b  # the last bin holds its end, too
        while c < d:
            middle = (c + d) >> 1
            if values[middle] < edges[k + 1]:
                c = middle + 1
            else:
                d = middle
        if c > a:
            out[k] += upto[c - 1] - before
            before = upto[c - 1]
            a = c


@compiled
def equal_bins(
    offsets: Ints, values: Floats, upto: Ints, rows: Ints | None, lo: Ints, hi: Ints, bins: int
) -> tuple[Floats, Ints]:
    """Edges and counts of equally wide bins between the smallest and largest finite value of each range.

    The rows of a range are sorted runs. A range without a finite value has NaN for edges.
    """
    edges = np.full((lo.size, bins + 1), np.nan)
    counts = np.zeros((lo.size, bins), np.int64)
    for j in range(lo.size):
        low = np.inf
        high = -np.inf
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            a, b = _finite(values, offsets[r], offsets[r + 1])
            if a < b:
                low = min(low, values[a])
                high = max(high, values[b - 1])
        if low > high:
            continue
        if low == high:  # as NumPy does: one value, in the middle of a range of 1
            low -= 0.5
            high += 0.5
        width = high / bins - low / bins  # high - low may be infinite
        for k in range(bins):
            edges[j, k] = low + k * width
        edges[j, bins] = high
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            a, b = _finite(values, offsets[r], offsets[r + 1])
            if a < b:
                _count_slice(values, upto, offsets[r], a, b, edges[j], counts[j])
    return edges, counts
