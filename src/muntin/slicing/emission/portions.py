"""Very many windows are emitted in portions, one after the other.

The intermediate columns of a window take more memory than its row of results. Portions use the same
memory again and again: to clear fresh memory takes as long as the work that is done in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muntin.slicing.served import ServedWindows
from muntin.timeline import LIMIT

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.slice_table import SliceTable
    from muntin.slicing.state import State

__all__ = ["are_independent", "portions", "stops"]

PORTION = 1 << 20
"""Windows of one portion, about."""
LEAST = 4096
"""Over fewer slices there are rarely enough windows for two portions, and the search would cost time."""
OF_KEY = 32
"""The least windows of each key in a portion: each portion searches the first slice of each key."""


def are_independent(plan: BoundPlan, state: State) -> bool:
    """Whether windows may be emitted apart from others: for the first time, and with the same values.

    Only for windows that end at known edges: sessions and tuple-driven windows are complete later than
    they end, so their order would depend on the portions.
    """
    unchanged = not state.has_late_change and not state.late_tuples
    return plan.served.only_edges and plan.adds_up_alike and not plan.shows_early and unchanged


def portions(plan: BoundPlan, state: State, watermark: int) -> list[int]:
    """Watermarks on the way to one that completes very many windows; none otherwise."""
    slices = state.slices
    if len(slices.fresh) < LEAST or not are_independent(plan, state):
        return []
    return stops(plan.served, slices, state.key_count, state.newest, state.watermark, watermark)


def stops(
    served: ServedWindows, slices: SliceTable, keys: int, newest: int, before: int, watermark: int
) -> list[int]:
    """Watermarks on the way from one to another; none where few windows lie over these slices."""
    if len(slices) * served.overlap < 2 * PORTION:
        return []
    series = served.series
    low = max(int(slices.first.min()), before, -LIMIT)
    high = min(newest + served.longest, watermark, LIMIT)
    each_key, each_slice = (high - low) / series.slide + 1.0, series.length // series.slide + 1.0
    most = float(np.minimum(keys * each_key, len(slices) * each_slice).sum())
    number = int(min(most / PORTION, most / (OF_KEY * keys)))
    return [low + (high - low) * i // number for i in range(1, number)]
