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
from muntin.slicing.live import LiveQuery
from muntin.slicing.table import SliceTable
from muntin.timeline import INF, NEG_INF, Micros, format_instant
from muntin.windows.base import ContextFreeWindow
from muntin.windows.grids import count_unseen

if TYPE_CHECKING:
    from muntin.slicing.manager import SliceManager
    from muntin.slicing.operator import SlicingOperator

MOST = MAX_WINDOWS
"""The default limit of windows of one name in a step."""
PER_INPUT = 1_000
"""The default limit rises to this many windows per slice, tuple or key, so that large tables pass."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most windows of one name that a step may emit.

    `given`: the limit that the query sets. `shares`: the number of operators that share the stream.
    `integers`: whether the time column holds integers, for messages.
    """

    given: int | None = None
    shares: int = 1
    integers: bool = False

    def most(self, inputs: int) -> int:
        """The limit of a step over `inputs` slices, tuples or keys.

        >>> Limit().most(inputs=1), Limit().most(inputs=50_000), Limit(given=2_000).most(inputs=50_000)
        (10000000, 50000000, 2000)
        """
        if self.given is not None:
            return self.given // self.shares
        # The shares of all operators add up to no more than the limit of a single one.
        return (
            max(MOST, PER_INPUT * (inputs if self.shares == 1 else (inputs - 1) * self.shares)) // self.shares
        )

    def check(self, query: LiveQuery, number: int, inputs: int, newest: int) -> None:
        """Raise a DataError if `number` windows exceed the limit of a step over `inputs`."""
        if number <= self.most(inputs):
            return
        at = newest if self.integers or abs(newest) == INF else format_instant(Micros(newest))
        raise DataError(
            f'a step must not emit more than {self.most(inputs):,} windows: "{query.name}" '
            f"({query.window.describe()}) would emit {number:,}; the newest tuple is at {at}; "
            "correct a tuple or watermark that has a wrong time, advance the watermark in smaller steps, "
            "or allow more with .on(..., max_windows=...)"
        )


def check_unprompted(operator: SlicingOperator, before: int, upto: int) -> None:
    """Check the windows that the watermark alone emits, on its way from `before` to `upto`.

    Costs O(keys) where empty windows are emitted, and O(slices) where it may be a flood.
    """
    slices = operator.slices
    for query in slices.live.unprompted:
        period = query.window.period
        assert period is not None
        if query.window.unprompted:
            number = _endless(operator, query, before, upto) // period
        else:
            number = operator.windows.spanned(query, before, upto)
        slices.limit.check(query, number, slices.keys, slices.newest)


def _endless(operator: SlicingOperator, query: LiveQuery, before: int, upto: int) -> int:
    """Over all keys, the time whose windows come out.

    It ends with the newest tuple at the end of the stream, and where open windows are shown.
    """
    slices = operator.slices
    last = slices.newest if upto == INF else upto
    if operator.windows.early:
        last = max(last, slices.newest)
    begin = max(before, query.window.earliest)
    assert query.window.period is not None
    most = slices.limit.most(slices.keys)
    if (last - begin) // query.window.period * slices.keys <= most:  # as it is nearly always
        return 0
    begins = np.maximum(slices.oldest(), begin)  # of each key
    return int(np.maximum(last - begins.astype(np.float64), 0.0).sum())


def check_overlapping(
    slices: SliceManager, after: int, upto: int, driver: npt.NDArray[np.bool_] | None = None
) -> None:
    """Check context-free windows that hold a (driving) row and end in (after, upto].

    Costs O(1), or O(rows) where a row lies in so many windows that the limit is within reach.
    """
    rows = len(slices.table.key) if driver is None else int(np.count_nonzero(driver))
    most = slices.limit.most(rows)
    if rows * slices.live.most_overlapping <= most:
        return
    for query in slices.live.free:
        window, period = query.window, query.window.period
        if period is None or rows * window.per_tuple <= most:
            continue
        last = min(upto, slices.newest + window.per_tuple * period)
        if ((last - after) // period + 1) * slices.keys > most:
            number = _number(query, slices.table, after, upto, driver)
            slices.limit.check(query, number, rows, slices.newest)


def _number(
    query: LiveQuery, table: SliceTable, after: int, upto: int, driver: npt.NDArray[np.bool_] | None
) -> int:
    window = query.window
    assert isinstance(window, ContextFreeWindow)
    first, key = (table.first, table.key) if driver is None else (table.first[driver], table.key[driver])
    # Added on the fly, its first window begins at `since`, and ends later.
    numbers = window.numbers(first, first, max(after, query.after, query.since, NEG_INF), upto)
    if numbers is None:
        return 0
    return count_unseen(*numbers, np.flatnonzero(key[1:] != key[:-1]) + 1)
