"""A query over a bounded DataFrame, all in the JVM: tuples to slices, slices to windows.

The input is read once, whatever the number of windows: tuples are grouped by (key, slice), where slices
are cut at the edges of all windows. Then each slice is given to the windows that hold it; so what is
copied for overlapping windows is slices, not tuples. A single window type without overlap needs no second
step: its windows are the slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.connectors.spark.jvm.blocks import LEVEL, with_blocks
from muntin.connectors.spark.jvm.sessions import FIRST, LAST, with_sessions
from muntin.connectors.spark.jvm.times import TIME, with_time
from muntin.connectors.spark.jvm.translation import MARK, Translated, results_of, translated
from muntin.connectors.spark.jvm.ways import NUMBER, given, marks_by_way, ways_of
from muntin.connectors.spark.jvm.windows import SLICE, at_most_one, edges_of, marks_of, slice_start
from muntin.query import QuerySpec
from muntin.slicing.binding import Binding
from muntin.windows import Periodic, Session
from muntin.windows.bands import FixedBand
from muntin.windows.base import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["is_one_slice", "whole_in_jvm"]


def is_one_slice(query: QuerySpec) -> bool:
    """Whether each window is a slice, so that nothing is combined."""
    return len(query.windows) == 1 and at_most_one(query.windows[0][1])


def whole_in_jvm(query: QuerySpec, binding: Binding, frame: DataFrame) -> DataFrame:
    """The window results of a bounded DataFrame."""
    tuples, time = with_time(query, frame)
    parts = translated(query, binding)
    windows = [window for _, window in query.windows]
    read = tuples.select(*parts.keys, time.alias(TIME), *parts.inputs)
    if is_one_slice(query):
        (window,) = windows
        marks = marks_of(window, f.col(TIME))
        held = read if marks.always else read.filter(marks.low <= marks.high)
        found = held.groupBy(*parts.names, marks.high.alias(MARK)).agg(*parts.partials.lifts)
        start, end = edges_of(window, f.col(MARK))
        return results_of(query, binding, parts, found, f.lit(query.windows[0][0]), start, end)
    found = _combined(parts, _sliced(parts, read, windows), windows)
    return results_of(query, binding, parts, found, *_described(query))


def _sliced(parts: Translated, read: DataFrame, windows: list[Window]) -> DataFrame:
    """Tuples by (key, slice); beside sessions each slice knows the sessions that it belongs to."""
    gaps = [int(window.gap) for window in windows if isinstance(window, Session)]
    fixed = [window for window in windows if not isinstance(window, Session)]
    start = slice_start(fixed, gaps, f.col(TIME)).alias(SLICE)
    if not gaps:
        return read.groupBy(*parts.names, start).agg(*parts.partials.lifts)
    ends = f.min(TIME).alias(FIRST), f.max(TIME).alias(LAST)
    slices = read.groupBy(*parts.names, start).agg(*parts.partials.lifts, *ends)
    return with_sessions(slices, parts.names, gaps)


def _combined(parts: Translated, slices: DataFrame, windows: list[Window]) -> DataFrame:
    """Each slice goes to the windows that hold it, and slices of one window are combined."""
    combined = parts.partials.combined()
    if any(isinstance(window, Session) for window in windows):
        combined.append(f.max(LAST).alias(LAST))
    held, always = _held(slices, parts, windows)
    if all(isinstance(window, Session) or at_most_one(window) for window in windows):
        each = held if always else held.filter("low <= high")
        each = each.withColumnRenamed("high", MARK)
    else:
        # Where there are none, null: a filter in front of it would compute the marks once more.
        marks = f.when(f.col("low") <= f.col("high"), f.sequence("low", "high", "step"))
        each = held.select("*", f.explode_outer(marks).alias(MARK)).filter(f.col(MARK).isNotNull())
    return each.groupBy(*parts.names, NUMBER, MARK).agg(*combined)


def _held(slices: DataFrame, parts: Translated, windows: list[Window]) -> tuple[DataFrame, bool]:
    """A row for each slice, or block of slices, and window type: the marks of the windows that hold it.

    And whether there is always one.
    """
    ways = ways_of(windows)
    if blocked := {way.number: way.window for way in ways if way.of_blocks}:
        slices = with_blocks(slices, parts, blocked)
    # Outer, since otherwise Spark makes each array once more, to see whether it is empty.
    held = slices.select("*", f.inline_outer(given(ways)))
    low, high = marks_by_way(ways)
    # The number of an only window type is a constant, and so no part of the group.
    number = f.col(NUMBER) if len(windows) > 1 else f.lit(0)
    kept = [name for name in slices.columns if name not in (SLICE, FIRST, LEVEL)]
    found = held.select(*kept, number.alias(NUMBER), low.alias("low"), high.alias("high"), "step")
    return found, all(way.always for way in ways)


def _described(query: QuerySpec) -> tuple[Column, Column, Column]:
    """The name, the start and the end of a window from its number and its mark."""
    number, mark = f.col(NUMBER), f.col(MARK)
    name = f.array(*(f.lit(name) for name, _ in query.windows))[number]
    lengths = f.array(*(f.lit(int(getattr(window, "length", 0))) for _, window in query.windows))
    start, end = mark, mark + lengths[number].cast("bigint")
    for i, (_, window) in enumerate(query.windows):
        if not isinstance(window, Periodic | FixedBand):  # whose end is no fixed length behind the mark
            own = _session_edges(window) if isinstance(window, Session) else edges_of(window, mark)
            start = f.when(number == i, own[0]).otherwise(start)
            end = f.when(number == i, own[1]).otherwise(end)
    return name, start, end


def _session_edges(window: Session) -> tuple[Column, Column]:
    return f.col(MARK), f.col(LAST) + int(window.gap)
