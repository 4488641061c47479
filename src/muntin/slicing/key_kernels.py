"""Compiled: codes of integers, in an open hash table or in a plain table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]

MIX = np.uint64(0x9E3779B97F4A7C15)


@compiled
def place(value: int, size: int) -> np.int64:
    """The first slot of a value in a table whose size is a power of two."""
    mixed = np.uint64(value) * MIX
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(size - 1))


@compiled
def fill(known: Ints, absent: int, slots: Ints) -> None:
    """Enter the codes of all values but the null, which has the code `absent`."""
    for code in range(known.shape[0]):
        if code != absent:
            at = place(known[code], slots.shape[0])
            while slots[at] >= 0:
                at = (at + 1) & (slots.shape[0] - 1)
            slots[at] = code


@compiled
def find_codes(
    values: Ints, known: Ints, absent: int, slots: Ints, begin: int, codes: Ints, first: Ints
) -> tuple[int, int]:
    """The code of each value from `begin` on; new values get the next codes, and `first` their positions.

    Stops when the table is half full. Returns the position after the last code, and the number of new values.
    """
    size = slots.shape[0]
    old = known.shape[0]
    added = 0
    room = size // 2 - old
    for i in range(begin, values.shape[0]):
        value = values[i]
        at = place(value, size)
        while True:
            code = slots[at]
            if code < 0:
                break
            if code != absent:
                entry = known[code] if code < old else values[first[code - old]]
                if entry == value:
                    break
            at = (at + 1) & (size - 1)
        if code < 0:
            if added >= room:
                return i, added
            code = old + added
            slots[at] = code
            first[added] = i
            added += 1
        codes[i] = code
    return values.shape[0], added


@compiled
def look_up(
    values: Ints, known: Ints, absent: int, low: int, table: Ints, codes: Ints, first: Ints
) -> tuple[int, int]:
    """As `find_codes`, with a place for each value from `low` on; stops at a value outside of the table."""
    size = np.uint64(table.shape[0])
    for code in range(known.shape[0]):
        at = np.uint64(known[code] - low)
        if code != absent and at < size:
            table[at] = code
    old = known.shape[0]
    added = 0
    for i in range(values.shape[0]):
        at = np.uint64(values[i] - low)
        if at >= size:
            return i, added
        code = table[at]
        if code < 0:
            code = old + added
            table[at] = code
            first[added] = i
            added += 1
        codes[i] = code
    return values.shape[0], added


@compiled
def select_keys(ids: Ints, begin: int, end: int, index: Ints) -> int:
    """Positions of the keys from `begin` to `end`; returns their number.

    Without branches, which would take longer than all the rest: `index` needs room for one position more.
    """
    at = np.uint64(0)
    for i in range(np.uint64(ids.shape[0])):
        index[at] = i
        at += np.uint64((ids[i] >= begin) & (ids[i] < end))
    return int(at)
