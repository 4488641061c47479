"""Prefix sums over slices: a window is the difference of two prefix sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.slicing.combining.base import Combiner, View
from muntin.slicing.combining.scanning import scan
from muntin.slicing.partials import PartialSet, States


class PrefixSums(Combiner):
    """Prefix sums of partials that can be inverted exactly: counts, sums of integers and decimals.

    They cost one combine per slice and one inversion per window, however many slices a window has. One
    sequence runs over all keys: earlier keys cancel out. It is built at each watermark.
    """

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        full = view.hi > view.lo
        if not full.any():
            return partials.reduce(states, view.rows, view.lo, view.hi), 0
        lo, hi = view.lo, view.hi
        if not full.all():
            # An empty window is the difference of any prefix sum and itself.
            any_position = lo[np.argmax(full)]
            lo, hi = np.where(full, lo, any_position), np.where(full, hi, any_position)
        base, end = int(lo.min()), int(hi.max())
        rows = partials.take(states, view.row(np.arange(base, end)))
        none = np.zeros(1, dtype=np.int64)
        sums, combines = _running(partials, rows, end - base)
        sums = partials.concat([partials.reduce(rows, None, none, none), sums])
        windows = partials.invert(partials.take(sums, hi - base), partials.take(sums, lo - base))
        return windows, (combines + int(full.sum())) * len(partials.partials)


def _running(partials: PartialSet, rows: States, count: int) -> tuple[States, int]:
    """Row i combines the rows up to i."""
    sums: list[Any] = [p.running(state) for p, state in zip(partials.partials, rows, strict=True)]
    if any(state is None for state in sums):
        return scan(partials, rows, np.array([0, count]))
    return tuple(sums), count - 1
