"""Compiled: which combinations can be done at the same time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

FREE, FORTH, BACK = 0, 1, 2


@njit(cache=True, nogil=True)
def schedule(left: Ints, right: Ints, base: int, chains: bool) -> tuple[Ints, Ints, Flags]:
    """Level and chain of each combination, and for each chain whether it grows to the left.

    Combination i has number base + i; smaller numbers are there already. With `chains`, one that goes
    on from the newest of a chain joins it, if its other side is there before the chain's level: a chain is
    scanned as a whole, so a sum of n in a row takes 2 log2(n) steps and not n.
    """
    count = left.shape[0]
    level = np.zeros(count, np.int64)
    chain = np.empty(count, np.int64)
    newest = np.empty(count, np.int64)
    way = np.zeros(count, np.int64)
    for i in range(count):
        a = left[i] - base
        b = right[i] - base
        before_a = level[a] if a >= 0 else 0
        before_b = level[b] if b >= 0 else 0
        c = -1
        if chains and a >= 0 and newest[chain[a]] == a and before_b < before_a and way[chain[a]] != BACK:
            c = chain[a]
            way[c] = FORTH
        elif chains and b >= 0 and newest[chain[b]] == b and before_a < before_b and way[chain[b]] != FORTH:
            c = chain[b]
            way[c] = BACK
        if c < 0:
            c = i
            level[i] = 1 + max(before_a, before_b)
        else:
            level[i] = level[c]
        chain[i] = c
        newest[c] = i
    return level, chain, way == BACK
