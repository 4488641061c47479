"""Context-free windows over Spark's columns: where they cut, which of them hold a slice, their edges.

A window is known by its *mark*: its start or, of windows that grow from one start, its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f

from muntin.connectors.spark.jvm.calendar import next_period, period_of
from muntin.planning.progressions import Progression, fuse
from muntin.timeline import NEG_INF
from muntin.windows import Cumulate, Periodic
from muntin.windows.bands import FixedBand
from muntin.windows.base import Window
from muntin.windows.calendar import Calendar

__all__ = [
    "CONTEXT_FREE",
    "SLICE",
    "Marks",
    "at_most_one",
    "edges_of",
    "last_multiple",
    "marks_of",
    "slice_start",
]

SLICE = "slice"
"""The column that holds the start of a slice."""

CONTEXT_FREE = (Periodic, Cumulate, FixedBand, Calendar)
"""The windows that this file knows."""


@dataclass(frozen=True)
class Marks:
    """The windows that hold a slice: marks from `low` to `high`, `step` apart; none if low > high."""

    low: Column
    high: Column
    step: int
    always: bool = True
    """Whether there always is one."""


def slice_start(windows: list[Window], gaps: list[int], time: Column) -> Column:
    """Where the slice starts that holds a tuple: at the last edge of any window.

    Beside sessions slices are no longer than the smallest gap, so no session ends inside of one.
    """
    found: list[Progression] = [(0, gap) for gap in sorted(gaps)[:1]]
    found += [progression for window in windows for progression in window.progressions()]
    cuts = [last_multiple(time, int(offset), int(period)) for offset, period in fuse(found)] if found else []
    for window in windows:
        if isinstance(window, Calendar):
            cuts.append(period_of(window, time))
        elif isinstance(window, FixedBand):
            within = f.when(time >= window.start, f.lit(int(window.start))).otherwise(f.lit(NEG_INF))
            cuts.append(f.when(time >= window.end, f.lit(window.end)).otherwise(within))
    return cuts[0] if len(cuts) == 1 else f.greatest(*cuts)


def marks_of(window: Window, time: Column) -> Marks:
    """The windows that hold what starts at this time, and reaches over no edge."""
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
            start = period_of(window, time)
            return Marks(start, start, 1)
    raise AssertionError(f"{window.describe()} is not context free")


def at_most_one(window: Window) -> bool:
    """Whether no two windows hold the same tuple."""
    if isinstance(window, Periodic):
        return window.slide >= window.length
    return isinstance(window, FixedBand | Calendar)


def edges_of(window: Window, mark: Column) -> tuple[Column, Column]:
    """The start and the end of the window of this mark."""
    match window:
        case Cumulate(length=length, step=step, offset=offset):
            return last_multiple(mark - int(step), int(offset), int(length)), mark
        case Calendar():
            return mark, next_period(window, mark)
        case Periodic(length=length) | FixedBand(length=length):
            return mark, mark + int(length)
    raise AssertionError(f"{window.describe()} is not context free")


def last_multiple(time: Column, offset: Column | int, period: Column | int) -> Column:
    """The last offset + k * period at or before a time."""
    shifted = time if isinstance(offset, int) and not offset else time - offset
    return time - f.pmod(shifted, f.lit(period) if isinstance(period, int) else period)
