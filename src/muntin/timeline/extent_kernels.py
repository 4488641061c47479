"""Compiled: what one look at a column of numbers tells."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]


@compiled
def extent(values: Ints) -> tuple[int, int, bool]:
    """Smallest and largest of at least one number, and whether they never go back."""
    low = high = values[0]
    ordered = True
    for i in range(1, values.shape[0]):
        value = values[i]
        ordered &= value >= values[i - 1]
        low = min(low, value)
        high = max(high, value)
    return low, high, ordered
