"""Compiled: ranges of slices, the cost of walking over them and their comparison."""

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


@compiled
def same_slices(first: Ints, n: Ints, mark: Ints, first_2: Ints, n_2: Ints, mark_2: Ints) -> bool:
    """Whether all slices are equal; NumPy takes ten times as long for the few slices of one of many keys."""
    for i in range(first.shape[0]):
        if first[i] != first_2[i] or n[i] != n_2[i] or mark[i] != mark_2[i]:
            return False
    return True
