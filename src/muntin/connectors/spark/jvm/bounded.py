"""A query over a bounded DataFrame in the JVM: tuples to slices, slices to windows.

The input is read once for all windows: tuples are grouped by (key, slice), where slices are cut at the edges
of all windows. Then each slice is assigned to the windows that hold it; overlapping windows copy slices, not
tuples. A single window type without overlap needs no second step: its windows are the slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.connectors.spark.jvm.blocks import LEVEL, with_blocks
from muntin.connectors.spark.jvm.query_columns import MARK, TIME, QueryColumns, with_time
from muntin.connectors.spark.jvm.slice_assignment import (
    NUMBER,
    assignment_rows,
    assignments_to,
    first_and_last_mark,
)
from muntin.connectors.spark.jvm.window_columns import (
    FIRST,
    LAST,
    SLICE,
    at_most_one,
    edges_of,
    marks_of,
    slice_start,
    with_sessions,
)
from muntin.query import QuerySpec
from muntin.slicing.binding import Binding
from muntin.windows.bands import FixedBand
from muntin.windows.base import Window
from muntin.windows.periodic import Periodic
from muntin.windows.session import Session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["bounded_in_jvm", "is_one_slice"]


def is_one_slice(query: QuerySpec) -> bool:
    """Whether each window is a slice, so that nothing is combined."""
    return len(query.windows) == 1 and at_most_one(query.windows[0][1])


def bounded_in_jvm(query: QuerySpec, binding: Binding, frame: DataFrame) -> DataFrame:
    """The window results of a bounded DataFrame."""
    tuples, time = with_time(query, frame)
    columns = QueryColumns.of(query, binding)
    windows = [window for _, window in query.windows]
    tuples = tuples.select(*columns.keys, time.alias(TIME), *columns.inputs)
    if not is_one_slice(query):
        combined = _windows(columns, _slices(columns, tuples, windows), windows)
        return columns.rows(combined, *_names_and_edges(query))
    ((name, window),) = query.windows
    marks = marks_of(window, f.col(TIME))
    tuples = tuples if marks.always else tuples.filter(marks.low <= marks.high)
    lifted = tuples.groupBy(*columns.names, marks.high.alias(MARK)).agg(*columns.partials.lifts)
    return columns.rows(lifted, f.lit(name), *edges_of(window, f.col(MARK)))


def _slices(columns: QueryColumns, tuples: DataFrame, windows: list[Window]) -> DataFrame:
    """Partials by (key, slice); for session windows, each slice has the starts of its sessions."""
    gaps = [int(window.gap) for window in windows if isinstance(window, Session)]
    fixed = [window for window in windows if not isinstance(window, Session)]
    grouped = tuples.groupBy(*columns.names, slice_start(fixed, gaps, f.col(TIME)).alias(SLICE))
    if not gaps:
        return grouped.agg(*columns.partials.lifts)
    ends = f.min(TIME).alias(FIRST), f.max(TIME).alias(LAST)
    return with_sessions(grouped.agg(*columns.partials.lifts, *ends), columns.names, gaps)


def _windows(columns: QueryColumns, slices: DataFrame, windows: list[Window]) -> DataFrame:
    """Partials by (key, window type, mark): the combined slices of each window."""
    combined = columns.partials.combined()
    if any(isinstance(window, Session) for window in windows):
        combined.append(f.max(LAST).alias(LAST))
    assigned, always = _assigned(slices, columns, windows)
    if all(isinstance(window, Session) or at_most_one(window) for window in windows):
        each = assigned if always else assigned.filter("low <= high")
        each = each.withColumnRenamed("high", MARK)
    else:
        # Null where there are none: a filter in front of it would compute the marks once more.
        marks = f.when(f.col("low") <= f.col("high"), f.sequence("low", "high", "step"))
        each = assigned.select("*", f.explode_outer(marks).alias(MARK)).filter(f.col(MARK).isNotNull())
    return each.groupBy(*columns.names, NUMBER, MARK).agg(*combined)


def _assigned(slices: DataFrame, columns: QueryColumns, windows: list[Window]) -> tuple[DataFrame, bool]:
    """A row for each slice, or block, and window type, with the marks of the windows that hold it.

    The second value is whether there always is one.
    """
    assignments = assignments_to(windows)
    if blocked := {one.number: one.window for one in assignments if one.of_blocks}:
        slices = with_blocks(slices, columns, blocked)
    # Outer, since otherwise Spark makes each array once more, to see whether it is empty.
    rows = slices.select("*", f.inline_outer(assignment_rows(assignments)))
    low, high = first_and_last_mark(assignments)
    # The number of an only window type is a constant, and so no part of the group.
    number = f.col(NUMBER) if len(windows) > 1 else f.lit(0)
    carried = [name for name in slices.columns if name not in (SLICE, FIRST, LEVEL)]
    rows = rows.select(*carried, number.alias(NUMBER), low.alias("low"), high.alias("high"), "step")
    return rows, all(one.always for one in assignments)


def _names_and_edges(query: QuerySpec) -> tuple[Column, Column, Column]:
    """The name, the start and the end of a window from its number and its mark."""
    number, mark = f.col(NUMBER), f.col(MARK)
    name = f.array(*(f.lit(name) for name, _ in query.windows))[number]
    lengths = f.array(*(f.lit(int(getattr(window, "length", 0))) for _, window in query.windows))
    start, end = mark, mark + lengths[number].cast("bigint")
    for i, (_, window) in enumerate(query.windows):
        if not isinstance(window, Periodic | FixedBand):  # their end is a fixed length after the mark
            own = edges_of(window, mark)
            start = f.when(number == i, own[0]).otherwise(start)
            end = f.when(number == i, own[1]).otherwise(end)
    return name, start, end
