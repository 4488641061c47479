"""Compiled: the fewest nodes of a binary tree that cover ranges of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]


@compiled
def count_nodes(lo: Ints, hi: Ints, out: Ints) -> int:
    """Number of nodes that cover each range, as offsets in `out`; returns the sum."""
    total = 0
    for j in range(lo.shape[0]):
        out[j] = total
        a, b = lo[j], hi[j]
        while a < b:
            if a & 1:
                total += 1
                a += 1
            if b & 1:
                total += 1
                b -= 1
            a >>= 1
            b >>= 1
    out[lo.shape[0]] = total
    return total


@compiled
def cover(lo: Ints, hi: Ints, base: Ints, offsets: Ints, nodes: Ints) -> None:
    """The nodes that cover each range, in the order of the rows; level k begins at base[k]."""
    for j in range(lo.shape[0]):
        a, b = lo[j], hi[j]
        front = offsets[j]
        back = offsets[j + 1] - 1
        level = 0
        while a < b:
            if a & 1:
                nodes[front] = base[level] + a
                front += 1
                a += 1
            if b & 1:
                b -= 1
                nodes[back] = base[level] + b
                back -= 1
            a >>= 1
            b >>= 1
            level += 1
