"""The assignment of slices to the windows of many types, with code that does not grow with their number.

The JVM compiles no method of more than 8,000 bytes. So the lengths of periodic windows are data: each slice
is multiplied with a constant array of assignments, and one formula reads them. Others have a case each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.connectors.spark.jvm.blocks import LEVEL, block_size, marks_of_block, marks_of_part
from muntin.connectors.spark.jvm.window_columns import SLICE, Marks, last_multiple, marks_of
from muntin.windows.base import Window
from muntin.windows.cumulate import Cumulate
from muntin.windows.periodic import Periodic

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["NUMBER", "Assignment", "assignment_rows", "assignments_to", "first_and_last_mark"]

NUMBER = "number"
"""The column with the number of a window type in the query."""


class Which(IntEnum):
    """The windows of a type that a slice is assigned to; without blocks, all that hold it."""

    ALL = 0
    ENDING = 1
    """Those that end inside of the block of the slice."""
    STARTING = 2
    """Those that start inside of it."""
    WHOLE = 3
    """Those that hold the whole block."""


@dataclass(frozen=True)
class Assignment:
    """Slices, or blocks, become parts of windows: the number of the window type, and which of its windows.

    `marks` are those of windows that are not periodic.
    """

    number: int
    window: Window
    which: Which
    marks: Marks | None = None
    of_blocks: bool = False

    @property
    def always(self) -> bool:
        """Whether each slice is in one of the windows."""
        if self.marks is not None:
            return self.marks.always
        assert isinstance(self.window, Periodic)
        return self.which in (Which.ALL, Which.WHOLE) and self.window.slide <= self.window.length


def assignments_to(windows: list[Window]) -> list[Assignment]:
    """All assignments, those of slices first."""
    of_slices, of_blocks = [], []
    for i, window in enumerate(windows):
        blocks = block_size(window)
        if not isinstance(window, Periodic):
            if blocks and isinstance(window, Cumulate):
                marks = marks_of_part(window, f.col(SLICE))
            else:
                marks = marks_of(window, f.col(SLICE))
            of_slices.append(Assignment(i, window, Which.ALL, marks))
        elif blocks:
            of_slices += [Assignment(i, window, Which.ENDING), Assignment(i, window, Which.STARTING)]
        else:
            of_slices.append(Assignment(i, window, Which.ALL))
        if blocks:
            own = marks_of_block(window, f.col(SLICE)) if isinstance(window, Cumulate) else None
            of_blocks.append(Assignment(i, window, Which.WHOLE, own, of_blocks=True))
    return of_slices + of_blocks


def assignment_rows(assignments: list[Assignment]) -> Column:
    """A constant array: a slice gets a row for each of its assignments, a block a row for its own."""
    rows = [(_row(i, one), one) for i, one in enumerate(assignments)]
    array = f.array(*(row for row, one in rows if not one.of_blocks))
    if not any(one.of_blocks for one in assignments):
        return array
    chosen = f.when(f.col(LEVEL) < 0, array)
    for row, one in rows:
        if one.of_blocks:
            chosen = chosen.when(f.col(LEVEL) == one.number, f.array(row))
    return chosen


def _row(place: int, one: Assignment) -> Column:
    window = one.window
    spans = {"length": 0, "slide": 1, "offset": 0, "size": 1, "step": one.marks.step if one.marks else 1}
    if isinstance(window, Periodic):
        size = block_size(window) or window.slide
        spans = {"length": window.length, "slide": window.slide, "offset": window.offset, "size": size}
        spans["step"] = window.slide
    return f.struct(
        f.lit(place).alias("assignment"),
        f.lit(one.number).alias(NUMBER),
        f.lit(int(one.which)).alias("which"),
        *(f.lit(int(span)).cast("bigint").alias(name) for name, span in spans.items()),
    )


def first_and_last_mark(assignments: list[Assignment]) -> tuple[Column, Column]:
    """The first and the last mark of the windows that hold a slice, for the assignment of its row."""
    low, high = _periodic_marks(blocks=any(one.of_blocks for one in assignments))
    for i, one in enumerate(assignments):
        if one.marks is not None:
            low = f.when(f.col("assignment") == i, one.marks.low).otherwise(low)
            high = f.when(f.col("assignment") == i, one.marks.high).otherwise(high)
    return low, high


def _periodic_marks(blocks: bool) -> tuple[Column, Column]:
    time, which = f.col(SLICE), f.col("which")
    length, slide, offset, size = map(f.col, ("length", "slide", "offset", "size"))
    low = last_multiple(time - length, offset, slide) + slide
    high = last_multiple(time, offset, slide)
    if not blocks:
        return low, high
    block = last_multiple(time, offset, size)
    # The first start whose window reaches the end of the block.
    reaching = last_multiple(block + size - length - 1, offset, slide) + slide
    return (
        f.when(which == Which.STARTING, block + slide).when(which == Which.WHOLE, reaching).otherwise(low),
        f.when(which == Which.ENDING, reaching - slide).when(which == Which.WHOLE, block).otherwise(high),
    )
