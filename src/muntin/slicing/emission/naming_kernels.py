"""Compiled: a column of texts with runs of equal texts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled_kernels import compiled

Ints = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


@compiled
def runs_of(numbers: Ints, values: Ints, sizes: Ints) -> int:
    """Run-length encoding: number and size of each run; returns the count of runs, -1 if there is no room."""
    count = -1
    previous = np.int64(-1)
    for number in numbers:
        if number != previous:
            count += 1
            if count == values.shape[0]:
                return -1
            values[count], sizes[count] = number, 0
            previous = number
        sizes[count] += 1
    return count + 1


@compiled
def spell_each(numbers: Ints, begins: Ints, texts: Bytes) -> tuple[Offsets, Bytes]:
    """The offsets and the bytes of the texts with these numbers. Text k is `begins[k]:begins[k + 1]`."""
    offsets = np.empty(numbers.shape[0] + 1, np.int32)
    offsets[0] = 0
    for i in range(numbers.shape[0]):
        offsets[i + 1] = offsets[i] + begins[numbers[i] + 1] - begins[numbers[i]]
    out = np.empty(offsets[-1], np.uint8)
    for i in range(numbers.shape[0]):
        begin = begins[numbers[i]] - offsets[i]
        for j in range(offsets[i], offsets[i + 1]):
            out[j] = texts[begin + j]
    return offsets, out


@compiled
def spell(values: Ints, sizes: Ints, begins: Ints, texts: Bytes, offsets: Offsets, out: Bytes) -> None:
    """The bytes and offsets of texts, each repeated by its size. Text k is `begins[k]:begins[k + 1]`.

    Within a run, the bytes written so far are copied, so that they double until the run is full.
    """
    at = row = 0
    for r in range(values.shape[0]):
        if not sizes[r]:
            continue
        text = texts[begins[values[r]] : begins[values[r] + 1]]
        run = out[at : at + text.shape[0] * sizes[r]]
        for i in range(sizes[r]):
            offsets[row + i] = at + i * text.shape[0]
        run[: text.shape[0]] = text
        written = text.shape[0]
        while written < run.shape[0]:
            more = min(written, run.shape[0] - written)
            source, target = run[:more], run[written : written + more]
            for i in range(more):
                target[i] = source[i]
            written += more
        at += run.shape[0]
        row += sizes[r]
    offsets[row] = at
