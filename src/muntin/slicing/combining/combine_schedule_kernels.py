"""Compiled: a schedule of combines by their dependencies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

UNSET, RIGHT, LEFT = 0, 1, 2


@compiled
def successors(left: Ints, right: Ints, base: int) -> Ints:
    """For each combine the one that uses its result and has the longest path behind it; -1 if none does."""
    count = left.shape[0]
    height = np.zeros(count, np.int64)
    successor = np.full(count, -1, np.int64)
    for i in range(count - 1, -1, -1):
        for number in (left[i], right[i]):
            a = number - base
            if a >= 0 and height[a] <= height[i]:
                height[a] = height[i] + 1
                successor[a] = i
    return successor


@compiled
def schedule(left: Ints, right: Ints, base: int, chains: bool) -> tuple[Ints, Ints, Flags]:
    """Level and chain of each combine, and for each chain whether it grows to the left.

    Combine i has number base + i; smaller numbers are rows that exist. With `chains`, a combine that uses
    the last result of a chain joins the chain if its other operand is ready before the chain's level. A
    chain is scanned as a whole, so a sum of n rows takes 2 log2(n) steps and not n.
    """
    count = left.shape[0]
    level = np.zeros(count, np.int64)
    chain = np.arange(count)
    direction = np.zeros(count, np.int64)
    successor = successors(left, right, base) if chains else np.full(count, -1, np.int64)
    for i in range(count):
        a = left[i] - base
        b = right[i] - base
        before_a = level[a] if a >= 0 else 0
        before_b = level[b] if b >= 0 else 0
        level[i] = 1 + max(before_a, before_b)
        if a >= 0 and successor[a] == i and before_b < before_a and direction[chain[a]] != LEFT:
            chain[i] = chain[a]
            direction[chain[i]] = RIGHT
            level[i] = before_a
        elif b >= 0 and successor[b] == i and before_a < before_b and direction[chain[b]] != RIGHT:
            chain[i] = chain[b]
            direction[chain[i]] = LEFT
            level[i] = before_b
    return level, chain, direction == LEFT
