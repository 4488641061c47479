"""Windows over Spark's columns: where they cut, which of them hold a slice, and their edges.

A window is identified by its *mark*: its start or, for windows that grow from one start, its end. Civil
periods are in the zone of the session, the only one that Spark's dates have.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Frames
from pyspark.sql import functions as f

from muntin.planning.progressions import Progression, fuse
from muntin.timeline import NEG_INF
from muntin.windows.bands import FixedBand
from muntin.windows.base import Window
from muntin.windows.calendar import Calendar
from muntin.windows.cumulate import Cumulate
from muntin.windows.periodic import Periodic
from muntin.windows.session import Session

__all__ = [
    "FIRST", "LAST", "SLICE", "TRANSLATED", "Marks", "at_most_one", "edges_of", "has_other_periods",
    "is_tumbling", "last_multiple", "marks_of", "slice_start", "with_sessions",
]  # fmt: skip

SLICE = "slice"
"""The column with the start of a slice."""
FIRST, LAST = "first", "last"
"""The columns with the times of the first and the last tuple of a slice."""

TRANSLATED = (Periodic, Cumulate, FixedBand, Calendar, Session)
"""The windows that Spark's columns can express."""

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}


@dataclass(frozen=True)
class Marks:
    """The windows that hold a slice: marks from `low` to `high`, `step` apart; none if low > high."""

    low: Column
    high: Column
    step: int
    always: bool = True
    """Whether each slice has such a window."""


def slice_start(windows: list[Window], gaps: list[int], time: Column) -> Column:
    """The start of the slice that holds a tuple: the last edge of any window.

    With sessions, slices are at most as long as the smallest gap: no session ends inside of one.
    """
    periods: list[Progression] = [(0, gap) for gap in sorted(gaps)[:1]]
    periods += [progression for window in windows for progression in window.progressions()]
    fused = fuse(periods) if periods else []
    cuts = [last_multiple(time, int(offset), int(period)) for offset, period in fused]
    for window in windows:
        if isinstance(window, Calendar):
            cuts.append(_period_start(window, time))
        elif isinstance(window, FixedBand):
            within = f.when(time >= window.start, f.lit(int(window.start))).otherwise(f.lit(NEG_INF))
            cuts.append(f.when(time >= window.end, f.lit(window.end)).otherwise(within))
    return cuts[0] if len(cuts) == 1 else f.greatest(*cuts)


def marks_of(window: Window, time: Column) -> Marks:
    """The windows that hold a slice which starts at this time."""
    match window:
        case Periodic(length=length, slide=slide, offset=offset):
            low = last_multiple(time - int(length), int(offset), int(slide)) + int(slide)
            return Marks(low, last_multiple(time, int(offset), int(slide)), int(slide), slide <= length)
        case Cumulate(length=length, step=step, offset=offset):
            low = last_multiple(time, int(offset), int(step)) + int(step)
            return Marks(low, last_multiple(time, int(offset), int(length)) + int(length), int(step))
        case FixedBand():
            inside = (time >= int(window.start)) & (time < window.end)
            start = f.lit(int(window.start))
            return Marks(start, f.when(inside, start).otherwise(start - 1), 1, always=False)
        case Calendar():
            start = _period_start(window, time)
            return Marks(start, start, 1)
        case Session():
            start = f.col(_session_column(int(window.gap)))
            return Marks(start, start, 1)
    raise AssertionError(f"{window.describe()} has no marks in the JVM")


def at_most_one(window: Window) -> bool:
    """Whether no two windows of this context-free type hold the same tuple."""
    if isinstance(window, Periodic):
        return window.slide >= window.length
    return isinstance(window, FixedBand | Calendar)


def edges_of(window: Window, mark: Column) -> tuple[Column, Column]:
    """The start and the end of the window of this mark."""
    match window:
        case Cumulate(length=length, step=step, offset=offset):
            return last_multiple(mark - int(step), int(offset), int(length)), mark
        case Calendar():
            return mark, _next_period(window, mark)
        case Periodic(length=length) | FixedBand(length=length):
            return mark, mark + int(length)
        case Session():
            return mark, f.col(LAST) + int(window.gap)
    raise AssertionError(f"{window.describe()} has no edges in the JVM")


def last_multiple(time: Column, offset: Column | int, period: Column | int) -> Column:
    """The last offset + k * period at or before a time."""
    shifted = time if isinstance(offset, int) and not offset else time - offset
    return time - f.pmod(shifted, f.lit(period) if isinstance(period, int) else period)


def is_tumbling(window: Window) -> bool:
    """Whether Spark's own `window()` has the same windows."""
    return isinstance(window, Periodic) and window.slide == window.length


def has_other_periods(window: Window, zone: str) -> bool:
    """Whether civil periods differ from those of Spark's dates, which are in the zone of the session."""
    return isinstance(window, Calendar) and (window.tz != zone or bool(window.offset))


def _period_start(window: Calendar, time: Column) -> Column:
    # A date as a time is the first instant of that day, also where the clocks skip or repeat midnight.
    return _instant(_first_day(window, time))


def _next_period(window: Calendar, start: Column) -> Column:
    first = _first_day(window, start)
    if window.unit in _DAYS:
        return _instant(f.date_add(first, _DAYS[window.unit]))
    return _instant(f.add_months(first, _MONTHS[window.unit]))


def _first_day(window: Calendar, time: Column) -> Column:
    date = f.timestamp_micros(time).cast("date")
    return date if window.unit == "day" else f.trunc(date, window.unit)


def _instant(date: Column) -> Column:
    return f.unix_micros(date.cast("timestamp"))


def with_sessions(slices: DataFrame, keys: list[str], gaps: list[int]) -> DataFrame:
    """The slices, each with the start of its session for each of the gaps.

    A session is a run of slices without a longer silence between them [scotty §6.1]. The slices are sorted
    once for all gaps.
    """
    in_order = Frames.partitionBy(*keys).orderBy(FIRST)
    so_far = in_order.rowsBetween(Frames.unboundedPreceding, Frames.currentRow)
    slices = slices.withColumn("silence", f.col(FIRST) - f.lag(LAST).over(in_order))
    for gap in sorted(set(gaps)):
        opens = f.col("silence").isNull() | (f.col("silence") > gap)
        # Starts grow along the slices, so the last one up to a row is the largest.
        started = f.max(f.when(opens, f.col(FIRST))).over(so_far)
        slices = slices.withColumn(_session_column(gap), started)
    return slices


def _session_column(gap: int) -> str:
    return f"session_{gap}"
