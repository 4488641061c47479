"""Compiled: which combinations can be done at the same time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

FREE, FORTH, BACK = 0, 1, 2


@compiled
def heirs(left: Ints, right: Ints, base: int) -> Ints:
    """For each combination the one that goes on from it with most still to come; -1 if none does."""
    count = left.shape[0]
    height = np.zeros(count, np.int64)
    heir = np.full(count, -1, np.int64)
    for i in range(count - 1, -1, -1):
        for number in (left[i], right[i]):
            a = number - base
            if a >= 0 and height[a] <= height[i]:
                height[a] = height[i] + 1
                heir[a] = i
    return heir


@compiled
def schedule(left: Ints, right: Ints, base: int, chains: bool) -> tuple[Ints, Ints, Flags]:
    """Level and chain of each combination, and for each chain whether it grows to the left.

    Combination i has number base + i; smaller numbers are there already. With `chains`, one that goes
    on from the last of a chain joins it, if its other side is there before the chain's level: a chain
    is scanned as a whole, so a sum of n in a row takes 2 log2(n) steps and not n.
    """
    count = left.shape[0]
    level = np.zeros(count, np.int64)
    chain = np.arange(count)
    way = np.zeros(count, np.int64)
    heir = heirs(left, right, base) if chains else np.full(count, -1, np.int64)
    for i in range(count):
        a = left[i] - base
        b = right[i] - base
        before_a = level[a] if a >= 0 else 0
        before_b = level[b] if b >= 0 else 0
        level[i] = 1 + max(before_a, before_b)
        if a >= 0 and heir[a] == i and before_b < before_a and way[chain[a]] != BACK:
            chain[i] = chain[a]
            way[chain[i]] = FORTH
            level[i] = before_a
        elif b >= 0 and heir[b] == i and before_a < before_b and way[chain[b]] != FORTH:
            chain[i] = chain[b]
            way[chain[i]] = BACK
            level[i] = before_b
    return level, chain, way == BACK
