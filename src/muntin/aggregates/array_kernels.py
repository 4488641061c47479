"""Compiled passes over the columns of a batch."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Ints
from muntin.compiled_kernels import compiled

_MAGNITUDE = 0x7FFFFFFFFFFFFFFF
_INFINITY = 0x7FF0000000000000
_NAN = 0x7FF8000000000000


@compiled
def float_keys(bits: Ints) -> Ints:
    """Order keys of floats given as their bits: sign and magnitude become two's complement."""
    out = np.empty(bits.size, np.int64)
    for i in range(bits.size):
        b = bits[i]
        magnitude = b & _MAGNITUDE
        key = -magnitude if b < 0 else b
        out[i] = _NAN if magnitude > _INFINITY else key
    return out


@compiled
def find_runs(group: Ints) -> tuple[Ints, Ints, Ints]:
    """Begin, end and group of each longest run of one group; runs of -1 are left out."""
    changes = 1
    left = group[:-1]
    right = group[1:]
    for i in range(right.size):
        changes += left[i] != right[i]
    begin = np.empty(changes, np.int64)
    end = np.empty(changes, np.int64)
    which = np.empty(changes, np.int64)
    k = -1
    previous = -1
    for i in range(group.size):
        g = group[i]
        if g != previous:
            if previous >= 0:
                end[k] = i
            if g >= 0:
                k += 1
                begin[k] = i
                which[k] = g
        previous = g
    if previous >= 0:
        end[k] = group.size
    return begin[: k + 1], end[: k + 1], which[: k + 1]


@compiled
def group_sizes(group: Ints, n: int) -> Ints:
    """How many tuples each of n groups has."""
    sizes = np.zeros(n, np.int64)
    for g in group:
        if g >= 0:
            sizes[g] += 1
    return sizes
