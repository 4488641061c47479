"""Blocks of slices, for windows of many slices: a window takes each block that it holds as a whole.

Without blocks, each slice of a window of n slices is copied n times. With blocks of about √n slices it is
copied √n times, for the windows that begin or end inside of its block, and the block √n times per slice. It
is one level of a tree over the slices, as in [reactive §4], for grouped rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.connectors.spark.jvm.query_columns import QueryColumns
from muntin.connectors.spark.jvm.window_columns import SLICE, Marks, last_multiple
from muntin.windows.base import Window
from muntin.windows.cumulate import Cumulate
from muntin.windows.periodic import Periodic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["LEVEL", "block_size", "marks_of_block", "marks_of_part", "with_blocks"]

LEVEL = "level"
"""The column that is -1 in the row of a slice, and the number of the window type in the row of a block."""

_FEWEST = 16
"""The fewest slices of a window for which blocks save more time than they cost."""


def block_size(window: Window) -> int:
    """The length of a block; 0 for windows that need none."""
    if isinstance(window, Periodic | Cumulate):
        step = window.slide if isinstance(window, Periodic) else window.step
        if window.length >= _FEWEST * step:
            return int(isqrt(window.length // step) * step)
    return 0


def with_blocks(slices: DataFrame, query: QueryColumns, windows: Mapping[int, Window]) -> DataFrame:
    """The slices, and the blocks of these windows."""
    starts = {-1: f.col(SLICE)} | {i: _block_start(window, f.col(SLICE)) for i, window in windows.items()}
    levels = [f.struct(f.lit(i).alias(LEVEL), start.alias(SLICE)) for i, start in starts.items()]
    known = {*query.names, SLICE, *(f"p{i}" for i in range(len(query.partials.lifts)))}
    of_sessions = [name for name in slices.columns if name not in known]
    carried = [name for name in slices.columns if name != SLICE]
    return (
        slices.select(*carried, f.inline(f.array(*levels)))
        .groupBy(*query.names, LEVEL, SLICE)
        .agg(*query.partials.combined(), *(f.max(name).alias(name) for name in of_sessions))
    )


def marks_of_part(window: Cumulate, time: Column) -> Marks:
    """The growing windows that hold a slice, but not the whole of its block."""
    step = int(window.step)
    low = last_multiple(time, int(window.offset), step) + step
    return Marks(low, _block_end(window, _block_start(window, time)) - step, step)


def marks_of_block(window: Cumulate, start: Column) -> Marks:
    """The growing windows that hold the whole block which starts there."""
    end = last_multiple(start, int(window.offset), int(window.length)) + int(window.length)
    return Marks(_block_end(window, start), end, int(window.step))


def _block_start(window: Window, time: Column) -> Column:
    """The start of the block of a slice; the blocks of a growing window are inside of one period."""
    size = block_size(window)
    if isinstance(window, Cumulate):
        into = f.pmod(time - int(window.offset), f.lit(int(window.length)))
        return time - f.pmod(into, f.lit(size))
    assert isinstance(window, Periodic)
    return last_multiple(time, int(window.offset), size)


def _block_end(window: Cumulate, start: Column) -> Column:
    period = last_multiple(start, int(window.offset), int(window.length))
    return f.least(start + block_size(window), period + int(window.length))
