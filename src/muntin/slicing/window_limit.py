"""The limit of windows in one step: a step beyond it raises a DataError before it lists the windows.

One tuple in a year of windows that start every second lies in 31 million of them. Empty windows,
landmarks and the last N tuples every T follow the watermark: one tuple, or one watermark, in a wrong
year would make a row for each second until then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.errors import DataError
from muntin.query import MAX_WINDOWS
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_table import SliceTable
from muntin.timeline import INF, NEG_INF, Micros, format_instant
from muntin.windows.base import ContextFreeWindow
from muntin.windows.grids import count_unseen

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

MOST = MAX_WINDOWS
"""The default limit of windows of one name in a step."""
PER_INPUT = 1_000
"""The default limit rises to this many windows per slice, tuple or key, so that large tables pass."""


@dataclass(frozen=True, slots=True)
class WindowLimit:
    """The most windows of one name that a step may emit.

    `given`: the limit that the query sets. `shares`: the number of operators that share the stream.
    `integers`: whether the time column holds integers, for messages.
    """

    given: int | None = None
    shares: int = 1
    integers: bool = False

    def most(self, inputs: int) -> int:
        """The limit of a step over `inputs` slices, tuples or keys.

        >>> (
        ...     WindowLimit().most(inputs=1),
        ...     WindowLimit().most(inputs=50_000),
        ...     WindowLimit(given=2_000).most(inputs=50_000),
        ... )
        (10000000, 50000000, 2000)
        """
        if self.given is not None:
            return self.given // self.shares
        # The shares of all operators add up to no more than the limit of a single one.
        return (
            max(MOST, PER_INPUT * (inputs if self.shares == 1 else (inputs - 1) * self.shares)) // self.shares
        )

    def check(self, served: ServedWindow, number: int, inputs: int, newest: int) -> None:
        """Raise a DataError if `number` windows exceed the limit of a step over `inputs`."""
        if number <= self.most(inputs):
            return
        at = newest if self.integers or abs(newest) == INF else format_instant(Micros(newest))
        raise DataError(
            f'a step must not emit more than {self.most(inputs):,} windows: "{served.name}" '
            f"({served.window.describe()}) would emit {number:,}; the newest tuple is at {at}; "
            "correct a tuple or watermark that has a wrong time, advance the watermark in smaller steps, "
            "or allow more with .on(..., max_windows=...)"
        )


def check_unprompted(plan: BoundPlan, state: State, before: int, upto: int) -> None:
    """Check the windows that the watermark alone emits, on its way from `before` to `upto`.

    Costs O(keys) where empty windows are emitted, and O(slices) where the limit is within reach.
    """
    from muntin.slicing.emission.empty_windows import most_with_empty

    for served in plan.served.unprompted:
        period = served.window.period
        assert period is not None
        if served.window.unprompted:
            number = _endless(plan, state, served, before, upto) // period
        else:
            number = most_with_empty(plan, state, served, before, upto)
        plan.limit.check(served, number, state.key_count, state.newest)


def _endless(plan: BoundPlan, state: State, served: ServedWindow, before: int, upto: int) -> int:
    """Over all keys, the time whose windows are emitted.

    It ends with the newest tuple at the end of the stream, and where open windows are emitted early.
    """
    last = state.newest if upto == INF else upto
    if plan.shows_early:
        last = max(last, state.newest)
    begin = max(before, served.window.earliest)
    assert served.window.period is not None
    most = plan.limit.most(state.key_count)
    if (last - begin) // served.window.period * state.key_count <= most:  # as it is nearly always
        return 0
    begins = np.maximum(state.oldest(), begin)  # of each key
    return int(np.maximum(last - begins.astype(np.float64), 0.0).sum())


def check_overlapping(
    plan: BoundPlan, state: State, after: int, upto: int, driver: npt.NDArray[np.bool_] | None = None
) -> None:
    """Check context-free windows that contain a (driving) slice and end in (after, upto].

    Costs O(1), or O(slices) where slices are in enough windows to reach the limit.
    """
    rows = len(state.slices.key) if driver is None else int(np.count_nonzero(driver))
    most = plan.limit.most(rows)
    if rows * plan.served.most_overlapping <= most:
        return
    for served in plan.served.context_free:
        window, period = served.window, served.window.period
        if period is None or rows * window.per_tuple <= most:
            continue
        last = min(upto, state.newest + window.per_tuple * period)
        if ((last - after) // period + 1) * state.key_count > most:
            number = _number(served, state.slices, after, upto, driver)
            plan.limit.check(served, number, rows, state.newest)


def _number(
    served: ServedWindow, table: SliceTable, after: int, upto: int, driver: npt.NDArray[np.bool_] | None
) -> int:
    window = served.window
    assert isinstance(window, ContextFreeWindow)
    first, key = (table.first, table.key) if driver is None else (table.first[driver], table.key[driver])
    # The first instance of a window that was added later begins at `since`, and ends after it.
    numbers = window.numbers(first, first, max(after, served.after, served.since, NEG_INF), upto)
    if numbers is None:
        return 0
    return count_unseen(*numbers, np.flatnonzero(key[1:] != key[:-1]) + 1)
