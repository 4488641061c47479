"""Compiled choice of the few best items of each row."""

from __future__ import annotations

import numpy as np

from muntin.aggregates.arrays import Ints
from muntin.aggregates.partials.selection_kernels import better
from muntin.compiled_kernels import compiled


@compiled
def best_of_rows(
    offsets: Ints,
    index: Ints,
    keys: Ints | None,
    time: Ints,
    seq: Ints,
    k: int,
    largest: bool,
    latest: bool,
) -> tuple[Ints, Ints]:
    """Offsets, and the places of the at most k best items of each row of `index`, the best first."""
    rows = offsets.size - 1
    starts = np.zeros(rows + 1, np.int64)
    for j in range(rows):
        starts[j + 1] = starts[j] + min(k, offsets[j + 1] - offsets[j])
    out = np.empty(starts[rows], np.int64)
    for j in range(rows):
        first = starts[j]
        room = starts[j + 1] - first
        count = 0
        size = offsets[j + 1] - offsets[j]
        for i in range(size):
            # Items are mostly in order of time: for the newest, a scan from the end moves few entries.
            item = index[offsets[j + 1] - 1 - i if latest else offsets[j] + i]
            if count == room and not better(keys, time, seq, item, out[first + count - 1], largest, latest):
                continue
            at = first + min(count, room - 1)
            count = min(count + 1, room)
            while at > first and better(keys, time, seq, item, out[at - 1], largest, latest):
                out[at] = out[at - 1]
                at -= 1
            out[at] = item
    return starts, out
