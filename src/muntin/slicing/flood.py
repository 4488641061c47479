"""Windows that come out without a tuple of their own: how many of them one step may bring.

Empty windows, landmarks and the last N tuples every T follow the watermark. One tuple, or one
watermark, in a wrong year would make a row for each second until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muntin.errors import DataError
from muntin.slicing.live import LiveQuery
from muntin.timeline import INF, Micros, format_instant
from muntin.windows import Landmark, Last

if TYPE_CHECKING:
    from muntin.slicing.operator import SlicingOperator

MOST = 10_000_000
"""Windows of one query in one step, or as many as PER_KEY allows with many keys."""
PER_KEY = 1_000


def refuse_flood(operator: SlicingOperator, before: int, upto: int) -> None:
    """A DataError if too many windows would come out when the watermark goes from `before` to `upto`.

    Costs O(keys) where empty windows are emitted, and O(slices) where it may be a flood.
    """
    for query in operator.slices.live.unprompted:
        period = query.window.period
        assert period is not None
        if isinstance(query.window, Landmark | Last):
            number = _endless(operator, query, before, upto) // period
        else:
            number = operator.windows.silent_time(query, before, upto) // period
        if number > _most(operator):
            raise _flood(operator, query, number)


def _most(operator: SlicingOperator) -> int:
    """Windows of one query in one step; for one of several parts so few that all together are not more."""
    keys, shares = operator.slices.keys, operator.shares
    return max(MOST, PER_KEY * (keys if shares == 1 else (keys - 1) * shares)) // shares


def _endless(operator: SlicingOperator, query: LiveQuery, before: int, upto: int) -> int:
    """Over all keys, the time whose windows come out.

    It ends with the newest tuple at the end of the stream, and where open windows are shown.
    """
    slices = operator.slices
    last = slices.newest if upto == INF else upto
    if operator.windows.early:
        last = max(last, slices.newest)
    begin = max(before, query.window.start) if isinstance(query.window, Landmark) else before
    assert query.window.period is not None
    if (
        last - begin
    ) // query.window.period * slices.keys <= MOST // operator.shares:  # as it is nearly always
        return 0
    begins = np.maximum(slices.oldest(), begin)  # of each key
    return int(np.maximum(last - begins.astype(np.float64), 0.0).sum())


def _flood(operator: SlicingOperator, query: LiveQuery, number: int) -> DataError:
    assert operator.binding is not None
    newest = operator.slices.newest
    at = newest if operator.binding.time.is_integer else format_instant(Micros(newest))
    return DataError(
        f"a step must not bring more than {MOST:,} windows without tuples of their own: "
        f'"{query.name}" ({query.window.describe()}) would bring {number:,}; the newest tuple is at {at}. '
        "Has a tuple or a watermark a wrong time? If not, advance the watermark in smaller steps"
    )
