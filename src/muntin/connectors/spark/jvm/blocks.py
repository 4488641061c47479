"""Blocks of slices, for windows of many slices: a window takes the blocks that it holds as a whole.

Given one by one, each slice of a window of n slices is copied n times. With blocks of about √n slices it
is copied √n times, for the windows that begin or end inside of its block, and the block √n times per
slice. It is one level of a tree over the slices, as in [reactive §4], for grouped rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.connectors.spark.jvm.translation import Translated
from muntin.connectors.spark.jvm.windows import SLICE, Marks, last_multiple
from muntin.windows import Cumulate, Periodic
from muntin.windows.base import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["LEVEL", "alone", "block_size", "together", "with_blocks"]

LEVEL = "level"
"""The column that says whether a row is a slice (-1) or a block, and of which window then."""

_FEWEST = 16
"""With fewer slices to a window, making blocks takes longer than they save."""


def block_size(window: Window) -> int:
    """The length of a block; 0 for windows that need none."""
    if isinstance(window, Periodic | Cumulate):
        step = _step(window)
        if window.length >= _FEWEST * step:
            return int(isqrt(window.length // step) * step)
    return 0


def with_blocks(slices: DataFrame, parts: Translated, windows: Mapping[int, Window]) -> DataFrame:
    """The slices, and beside them the blocks of these windows."""
    levels = [_row(-1, f.col(SLICE))]
    levels += [_row(i, _block_start(window, f.col(SLICE))) for i, window in windows.items()]
    known = {*parts.names, SLICE, *(f"p{i}" for i in range(len(parts.partials.lifts)))}
    others = [name for name in slices.columns if name not in known]  # which sessions read from slices
    carried = [name for name in slices.columns if name != SLICE]
    return (
        slices.select(*carried, f.inline(f.array(*levels)))
        .groupBy(*parts.names, LEVEL, SLICE)
        .agg(*parts.partials.combined(), *(f.max(name).alias(name) for name in others))
    )


def alone(window: Cumulate, time: Column) -> Marks:
    """The growing windows that hold a slice, but not the whole of its block."""
    step = int(window.step)
    low = last_multiple(time, int(window.offset), step) + step
    return Marks(low, _block_end(window, _block_start(window, time)) - step, step)


def together(window: Cumulate, start: Column) -> Marks:
    """The growing windows that hold the whole block that starts there."""
    end = last_multiple(start, int(window.offset), int(window.length)) + int(window.length)
    return Marks(_block_end(window, start), end, int(window.step))


def _step(window: Periodic | Cumulate) -> int:
    return int(window.slide if isinstance(window, Periodic) else window.step)


def _block_start(window: Window, time: Column) -> Column:
    """Where the block of a slice starts; the blocks of a growing window lie inside of one period."""
    size = block_size(window)
    if isinstance(window, Cumulate):
        into = f.pmod(time - int(window.offset), f.lit(int(window.length)))
        return time - f.pmod(into, f.lit(size))
    assert isinstance(window, Periodic)
    return last_multiple(time, int(window.offset), size)


def _block_end(window: Cumulate, start: Column) -> Column:
    period = last_multiple(start, int(window.offset), int(window.length))
    return f.least(start + block_size(window), period + int(window.length))


def _row(level: int, start: Column) -> Column:
    return f.struct(f.lit(level).alias(LEVEL), start.alias(SLICE))
