"""Very many windows come out in portions, one after the other.

What a window needs until it is a row of results takes more memory than the row. Portions use the same
memory again and again: to clear fresh memory takes as long as what is done in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.slicing.live import LiveSet
from muntin.slicing.manager import SliceManager
from muntin.timeline import LIMIT

__all__ = ["LEAST", "Held", "stops"]

PORTION = 1 << 20
"""So many windows, about, come out at once."""
LEAST = 4096
"""Over fewer slices there are seldom so many windows, and to look for them would take its time."""
OF_KEY = 32
"""So many of each key, or more: where they begin is looked for in each portion."""


class Held(NamedTuple):
    """How many slices there are, of how many keys, and the times of the first and the last tuple."""

    slices: int
    keys: int
    low: int
    high: int

    @classmethod
    def of(cls, manager: SliceManager) -> Held:
        """What a manager of slices has, if it has any."""
        table = manager.table
        return cls(len(table), manager.keys, int(table.first.min()), manager.newest)


def stops(live: LiveSet, held: Held, before: int, watermark: int) -> list[int]:
    """Watermarks on the way from one to another; none where few windows come out.

    For queries that only edges end: sessions, and windows that tuples cut, come out later than they end,
    so that their order would depend on the portions.
    """
    if not live.only_edges or held.slices * live.overlap < 2 * PORTION:
        return []
    grid = live.grid
    low = max(held.low, before, -LIMIT)
    high = min(held.high + live.longest, watermark, LIMIT)
    each_key, each_slice = (high - low) / grid.slide + 1.0, grid.length // grid.slide + 1.0
    most = float(np.minimum(held.keys * each_key, held.slices * each_slice).sum())
    number = int(min(most / PORTION, most / (OF_KEY * held.keys)))
    return [low + (high - low) * i // number for i in range(1, number)]
