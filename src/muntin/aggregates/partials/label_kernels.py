"""Compiled numbering of the labels that occur in each group."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Ints
from muntin.compiled_kernels import compiled


@compiled
def number_cells(group: Ints, code: Ints, size: int, n: int) -> tuple[Ints, Ints, Ints]:
    """Number the pairs of a group (0 to n - 1) and a label (code 0 to size - 1) that occur, by group.

    The pairs themselves, as `group * size + code`, in order; a tuple of each; and for each tuple the
    number of its own pair, -1 for one without a group.
    """
    number_of = np.full(n * size, -1, np.int64)
    for i in range(group.size):
        if group[i] >= 0:
            number_of[group[i] * size + code[i]] = i
    present = np.empty(n * size, np.int64)
    one_of = np.empty(n * size, np.int64)
    k = 0
    for cell in range(n * size):
        if number_of[cell] >= 0:
            present[k] = cell
            one_of[k] = number_of[cell]
            number_of[cell] = k
            k += 1
    number = np.empty(group.size, np.int64)
    for i in range(group.size):
        number[i] = -1 if group[i] < 0 else number_of[group[i] * size + code[i]]
    return present[:k].copy(), one_of[:k].copy(), number
