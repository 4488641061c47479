"""Compiled: comparison of slices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]


@compiled
def same_slices(first: Ints, n: Ints, mark: Ints, first_2: Ints, n_2: Ints, mark_2: Ints) -> bool:
    """Whether all slices are equal; allocates nothing, since it runs at each watermark."""
    for i in range(first.shape[0]):
        if first[i] != first_2[i] or n[i] != n_2[i] or mark[i] != mark_2[i]:
            return False
    return True
