"""Computes the values of emitted windows; one that fails is an error, or null with on_error="skip"."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import joining
from muntin.errors import PlacedError
from muntin.slicing.combining.base import Combiner, View, WalkedWindows, combine
from muntin.slicing.error_places import add_place, note_key_of_row
from muntin.slicing.partials import PartialSet
from muntin.slicing.shown_aggregates import StoresOfGroups

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["report_errors", "values_of"]

LOG = logging.getLogger("muntin")
SAMPLE = 3
"""Errors that one log message quotes."""

Column = npt.NDArray[np.int64]
WindowAt = Callable[[int], tuple[int, int, int]]
"""The number and the edges of the window of a row."""


def values_of(
    plan: BoundPlan, state: State, windows: View, start: Column, window_at: WindowAt
) -> tuple[list[pa.Array], int]:
    """One column of values per aggregate, and the number of combines.

    `start`: the start of each window, read where not all windows show all aggregates. Windows that show the
    same ones are combined together, from the partials of these only.
    """
    shown, store = plan.shown, state.combiner(plan)
    if shown.everywhere:
        return _values(plan, state, store, plan.partials, windows, window_at)
    assert isinstance(store, StoresOfGroups)
    groups, combines = [], 0
    for group, rows in shown.groups(windows.number, start):
        view = shown.view(windows, group, rows)
        place: WindowAt = lambda j, rows=rows: window_at(int(rows[j]))  # type: ignore[misc]  # noqa: E731
        values, more = _values(plan, state, store.of(group), view.table.partials, view, place)
        groups.append((group, rows, values))
        combines += more
    return shown.spread(len(windows), groups), combines


def _values(
    plan: BoundPlan, state: State, store: Combiner, partials: PartialSet, windows: View, window_at: WindowAt
) -> tuple[list[pa.Array], int]:
    """The values of the aggregates of these partials in windows that all show them.

    With on_error="skip", windows that fail are found by bisection. Each attempt combines its windows
    without the store, so that the store never holds a failed partial.
    """
    try:
        states, combines = combine(store, partials, windows)
        return partials.lower(states), combines
    except PlacedError as error:
        if not plan.skips_errors:
            note_key_of_row(error, lambda j: windows.key[j], window_at)
            raise
    store.reset()
    ranges = [(0, len(windows))]
    lowered: list[list[pa.Array]] = []
    while ranges:
        begin, end = ranges.pop()
        states, combines = combine(WalkedWindows(), partials, windows.between(begin, end))
        try:
            lowered.append(partials.lower(states))
        except PlacedError:
            middle = (begin + end) // 2
            if middle > begin:
                ranges += [(middle, end), (begin, middle)]
                continue
            values, errors = partials.lower_each(states)
            for each in errors:
                each.row, each.key, each.window = begin, int(windows.key[begin]), window_at(begin)
            state.failed += errors
            lowered.append(values)
    return [joining.concat(columns) for columns in zip(*lowered, strict=True)], windows.walked


def report_errors(plan: BoundPlan, state: State) -> None:
    """Count and log the errors that were skipped in this step."""
    failed, state.failed = state.failed, []
    if not failed:
        return
    state.metrics.errors += len(failed)
    sample = failed[:SAMPLE]
    for error in sample:
        error.cure = ""
        add_place(error, plan, state)
    LOG.warning('on_error="skip" skipped %d errors: %s', len(failed), "; ".join(map(str, sample)))
