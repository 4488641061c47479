"""Compiled numbering of equal integers: a hash table with linear probing."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Ints
from muntin.compiled_kernels import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: multiplication by it spreads neighbouring keys (Fibonacci hashing)."""


@compiled
def _slot(key: int, bits: int) -> np.int64:
    # Converted to a signed integer: Numba gives float64 for signed and unsigned operands.
    return np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(64 - bits))


@compiled
def _enlarged(table: Ints, bits: int) -> Ints:
    """The same entries in a table of 2**bits slots."""
    more = np.zeros((1 << bits, 2), np.int64)
    mask = (1 << bits) - 1
    for i in range(len(table)):
        if table[i, 1] > 0:
            slot = _slot(table[i, 0], bits)
            while more[slot, 1] > 0:
                slot = (slot + 1) & mask
            more[slot, 0] = table[i, 0]
            more[slot, 1] = table[i, 1]
    return more


@compiled
def number_equal(keys: Ints) -> tuple[Ints, int]:
    """Numbers from 0, by first occurrence, that are equal where keys are equal, and how many are distinct."""
    bits = 10
    table = np.zeros((1 << bits, 2), np.int64)  # a key and its number, counted from 1; 0 is a free slot
    out = np.empty(keys.size, np.int64)
    distinct = 0
    for i in range(keys.size):
        key = keys[i]
        mask = (1 << bits) - 1
        slot = _slot(key, bits)
        while table[slot, 1] > 0 and table[slot, 0] != key:
            slot = (slot + 1) & mask
        if table[slot, 1] == 0:
            distinct += 1
            table[slot, 0] = key
            table[slot, 1] = distinct
        out[i] = table[slot, 1] - 1
        if 2 * distinct > mask:
            bits += 2
            table = _enlarged(table, bits)
    return out, distinct
