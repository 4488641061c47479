"""Compiled: extents of a column of numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]


@compiled
def extent(values: Ints) -> tuple[int, int, bool]:
    """Smallest and largest of at least one number, and whether they never decrease."""
    low = high = values[0]
    ordered = True
    for i in range(1, values.shape[0]):
        value = values[i]
        ordered &= value >= values[i - 1]
        low = min(low, value)
        high = max(high, value)
    return low, high, ordered


@compiled
def block_extents(values: Ints, begin: int, end: int, size: int, low: Ints, high: Ints) -> bool:
    """Smallest and largest of each block of `size` numbers; whether the numbers never decrease.

    Reads the blocks from `begin`, where one begins, to `end`.
    """
    ordered = begin == 0 or values[begin] >= values[begin - 1]
    for start in range(begin, end, size):
        block = values[start : min(start + size, end)]
        least, most, in_order = extent(block)
        low[start // size], high[start // size] = least, most
        ordered &= in_order and (start == begin or block[0] >= values[start - 1])
    return ordered
