"""Compiled: the cost of walking over the slices of windows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]


@compiled
def walk(lo: Ints, hi: Ints) -> tuple[int, int]:
    """Combines if each window is combined on its own; and the slices from the first to the last of any."""
    combines = 0
    low, high = (lo[0], hi[0]) if lo.shape[0] else (0, 0)
    for j in range(lo.shape[0]):
        combines += max(hi[j] - lo[j] - 1, 0)
        low, high = min(low, lo[j]), max(high, hi[j])
    return combines, high - low
