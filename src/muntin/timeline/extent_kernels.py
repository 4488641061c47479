"""Compiled: extents of a column of numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]

BLOCK = 4_096
"""The numbers between two decisions whether all are in order."""


@compiled
def extent(values: Ints) -> tuple[int, int, bool]:
    """Smallest and largest of at least one number, and whether they never decrease."""
    last = values.shape[0] - 1
    begin = 0
    while begin < last:  # in order, only neighbours are compared
        block = values[begin : begin + BLOCK + 1]
        falls = False
        for i in range(1, block.shape[0]):
            falls |= block[i] < block[i - 1]
        if falls:
            break
        begin += BLOCK
    if begin >= last:
        return values[0], values[last], True
    low, high, rest = values[0], values[begin], values[begin:]
    for i in range(1, rest.shape[0]):
        low = min(low, rest[i])
        high = max(high, rest[i])
    return low, high, False


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
