"""Intermediate watermarks, which divide the completion of millions of windows into steps.

The intermediate columns of a window take more memory than its row of results. Steps reuse that memory,
since clearing fresh memory takes as long as the computation in it (decision 57 in docs/decisions.md).
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

__all__ = ["are_independent", "intermediate_watermarks", "watermarks_between"]

WINDOWS_PER_STEP = 1 << 20
"""The approximate number of windows that an intermediate watermark completes."""
LEAST_SLICES = 4096
"""With fewer fresh slices there are rarely enough windows for two steps, and counting them costs time."""
WINDOWS_PER_KEY = 32
"""The least windows per key and step: each step searches the first slice of each key."""


def are_independent(plan: BoundPlan, state: State) -> bool:
    """Whether windows can be emitted in several steps with the same results as in one.

    Only for windows that end at known edges: sessions and tuple-driven windows are complete later than
    they end, so their order would depend on the steps.
    """
    unchanged = not state.has_late_change and not state.late_tuples
    return plan.served.only_edges and plan.combines_windows_alone and not plan.shows_early and unchanged


def intermediate_watermarks(plan: BoundPlan, state: State, watermark: int) -> list[int]:
    """Watermarks before one that completes millions of windows; none otherwise."""
    slices = state.slices
    if len(slices.fresh) < LEAST_SLICES or not are_independent(plan, state):
        return []
    return watermarks_between(plan.served, slices, state.key_count, state.newest, state.watermark, watermark)


def watermarks_between(
    served: ServedWindows, slices: SliceTable, keys: int, newest: int, before: int, watermark: int
) -> list[int]:
    """Watermarks between two, each of which completes about as many windows; none for few windows."""
    if len(slices) * served.overlap < 2 * WINDOWS_PER_STEP:
        return []
    series = served.series
    low = max(int(slices.first.min()), before, -LIMIT)
    high = min(newest + served.longest, watermark, LIMIT)
    each_key, each_slice = (high - low) / series.slide + 1.0, series.length // series.slide + 1.0
    most = float(np.minimum(keys * each_key, len(slices) * each_slice).sum())
    number = int(min(most / WINDOWS_PER_STEP, most / (WINDOWS_PER_KEY * keys)))
    return [low + (high - low) * i // number for i in range(1, number)]
