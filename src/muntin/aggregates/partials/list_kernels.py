"""Compiled grouping and joining of rows of items: row j is `offsets[j]:offsets[j + 1]`."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Bools, Ints
from muntin.compiled_kernels import compiled, inner


@inner
def row_at(rows: Ints | None, i: int) -> int:
    """The row at place i of a range: `rows[i]`, or i itself without `rows`."""
    return i if rows is None else rows[np.uint64(i)]


@compiled
def arrange(group: Ints, valid: Bools | None, n: int) -> tuple[Ints, Ints]:
    """Offsets of n groups, and the places of their valid tuples, in the order of the batch."""
    offsets = np.zeros(n + 1, np.int64)
    for i in range(group.size):
        if group[i] >= 0 and (valid is None or valid[i]):
            offsets[group[i] + 1] += 1
    for k in range(n):
        offsets[k + 1] += offsets[k]
    index = np.empty(offsets[n], np.int64)
    cursor = offsets[:n].copy()
    for i in range(group.size):
        g = group[i]
        if g >= 0 and (valid is None or valid[i]):
            index[cursor[g]] = i
            cursor[g] += 1
    return offsets, index


@compiled
def gather(offsets: Ints, rows: Ints | None, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Offsets of the joined rows of each range, and the places of their items, row after row."""
    joined = np.zeros(lo.size + 1, np.int64)
    for j in range(lo.size):
        size = 0
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            size += offsets[r + 1] - offsets[r]
        joined[j + 1] = joined[j] + size
    index = np.empty(joined[lo.size], np.int64)
    k = 0
    for j in range(lo.size):
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            for item in range(offsets[r], offsets[r + 1]):
                index[k] = item
                k += 1
    return joined, index
