"""Compiled: the columns of a small table of results, written into an Arrow message."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.partials.step_codes import (
    FLOAT_KEY,
    FLOAT_MEAN,
    FLOAT_TOTAL,
    INTEGER_MEAN,
    INTEGER_TOTAL,
)
from muntin.aggregates.partials.sum_kernels import float_means, float_totals
from muntin.compiled_kernels import compiled
from muntin.scalars import LIMB, SMALLEST_INTEGER

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

WORDS = 6
"""The columns of a window before its partials."""
NAMES, TEXTS, STARTS, ENDS, VALUES = 0, 1, 2, 3, 4
"""The places of the columns: offsets and bytes of the names, edges, and from here on the values."""


@compiled
def filled(
    template: Bytes, places: Ints, windows: Ints, lowered: Ints, begins: Ints, texts: Bytes, unit: int
) -> Bytes:
    """A copy of a message with these windows in it; empty where an aggregate has no value.

    The columns begin at `places`. A row of `lowered` says how an aggregate is lowered, and of which words.
    Text k is `texts[begins[k]:begins[k + 1]]`. Edges are rounded outwards to multiples of `unit`.
    """
    rows = windows.shape[1]
    for a in range(lowered.shape[0]):
        count = windows[WORDS + lowered[a, 1]]
        for j in range(rows if lowered[a, 1] != lowered[a, 2] else 0):
            if not count[j]:
                return np.empty(0, np.uint8)
    out = template.copy()
    starts, ends = words_at(out, places[STARTS], rows), words_at(out, places[ENDS], rows)
    for j in range(rows):
        starts[j], ends[j] = windows[0, j] // unit, -(-windows[1, j] // unit)
    spell_into(out, places, windows[2], begins, texts)
    for a in range(lowered.shape[0]):
        code, count, at = lowered[a, 0], WORDS + lowered[a, 1], WORDS + lowered[a, 2]
        lower_into(words_at(out, places[VALUES + a], rows), code, windows, count, at)
    return out


@compiled
def words_at(message: Bytes, place: int, rows: int) -> Ints:
    """A column of 64-bit words in a message."""
    return message[place : place + 8 * rows].view(np.int64)


@compiled
def spell_into(message: Bytes, places: Ints, numbers: Ints, begins: Ints, texts: Bytes) -> None:
    """Write the texts with these numbers, and where each begins."""
    rows, place = numbers.shape[0], places[NAMES]
    offsets, out = message[place : place + 4 * rows + 4].view(np.int32), message[places[TEXTS] :]
    at = 0
    for j in range(rows):
        offsets[j] = at
        for i in range(begins[numbers[j]], begins[numbers[j] + 1]):
            out[at] = texts[i]
            at += 1
    offsets[rows] = at


@compiled
def lower_into(out: Ints, code: int, windows: Ints, count: int, at: int) -> None:
    """Write the values of an aggregate, from the columns `count` and `at` of the windows.

    A float is written as its bits.
    """
    if code == FLOAT_TOTAL or code == FLOAT_MEAN:
        sums = np.empty((out.shape[0], 2), np.int64)
        sums[:, 0], sums[:, 1] = windows[at], windows[at + 1]
        if code == FLOAT_TOTAL:
            float_totals(sums.view(np.float64), out.view(np.float64))
        else:
            float_means(sums.view(np.float64), windows[count], out.view(np.float64))
        return
    floats = out.view(np.float64)
    for j in range(out.shape[0]):
        word = windows[at, j]
        if code == INTEGER_TOTAL:
            word |= windows[at + 1, j] << LIMB
        elif code == FLOAT_KEY and word < 0:
            word = -word | SMALLEST_INTEGER
        out[j] = word
        if code == INTEGER_MEAN:
            floats[j] = (float(windows[at + 1, j]) * float(1 << LIMB) + float(word)) / float(
                windows[count, j]
            )
