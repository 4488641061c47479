"""Compiled counting of the keys of several runs, without merging them.

Equal keys have equal codes. An array over all codes has the last window of each code, so a window costs
one access per key, and the array is not cleared between windows.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Ints
from muntin.aggregates.partials.list_kernels import row_at
from muntin.compiled_kernels import compiled


@compiled
def count_codes(offsets: Ints, codes: Ints, size: int, rows: Ints | None, lo: Ints, hi: Ints) -> Ints:
    """The number of distinct codes (0 to size - 1) of each range of rows."""
    out = np.zeros(lo.size, np.int64)
    seen = np.full(size, -1, np.int64)
    for j in range(lo.size):
        distinct = 0
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            for code in codes[offsets[r] : offsets[r + 1]]:
                if seen[code] != j:
                    seen[code] = j
                    distinct += 1
        out[j] = distinct
    return out


@compiled
def most_frequent_codes(
    offsets: Ints, codes: Ints, keys: Ints, upto: Ints, size: int, rows: Ints | None, lo: Ints, hi: Ints
) -> Ints:
    """The place of the most frequent key of each range (the smallest of several); -1 for an empty range."""
    out = np.full(lo.size, -1, np.int64)
    seen = np.full((size, 2), -1, np.int64)  # the last window of each code, and its count there
    for j in range(lo.size):
        most = 0
        for i in range(lo[j], hi[j]):
            r = row_at(rows, i)
            before = 0
            for place in range(offsets[r], offsets[r + 1]):
                code = codes[place]
                count = upto[place] - before
                if seen[code, 0] == j:
                    count += seen[code, 1]
                seen[code, 0] = j
                seen[code, 1] = count
                before = upto[place]
                if count > most or (count == most and keys[place] < keys[out[j]]):
                    most = count
                    out[j] = place
    return out
