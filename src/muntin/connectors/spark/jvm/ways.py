"""How slices are given to the windows of many types: with code that does not grow with their number.

The JVM compiles no method of more than 8,000 bytes. So the lengths of periodic windows are data, a constant
array that each slice is multiplied with, and one formula reads them; other windows have a case each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.connectors.spark.jvm.blocks import LEVEL, alone, block_size, together
from muntin.connectors.spark.jvm.sessions import session_start
from muntin.connectors.spark.jvm.windows import SLICE, Marks, last_multiple, marks_of
from muntin.windows import Cumulate, Periodic, Session
from muntin.windows.base import Window

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["NUMBER", "Way", "given", "marks_by_way", "ways_of"]

NUMBER = "number"
"""The column that holds the number of a window type in the query."""


class Part(IntEnum):
    """Which of the windows of a type that hold a slice; without blocks, all of them."""

    ALL = 0
    ENDING = 1
    """Those that end inside of the block of the slice."""
    STARTING = 2
    """Those that start inside of it."""
    WHOLE = 3
    """Those that hold the whole block."""


@dataclass(frozen=True)
class Way:
    """A way for slices, or blocks, into windows: the number of the window type, and which of its windows.

    `marks` are those of windows that are not periodic.
    """

    number: int
    window: Window
    part: Part
    marks: Marks | None = None
    of_blocks: bool = False

    @property
    def always(self) -> bool:
        """Whether each slice is held by one of the windows."""
        if self.marks is not None:
            return self.marks.always
        assert isinstance(self.window, Periodic)
        return self.part in (Part.ALL, Part.WHOLE) and self.window.slide <= self.window.length


def ways_of(windows: list[Window]) -> list[Way]:
    """All ways, those of slices first."""
    found = []
    for i, window in enumerate(windows):
        if not isinstance(window, Periodic):
            found.append(Way(i, window, Part.ALL, _own_marks(window)))
        elif block_size(window):
            found += [Way(i, window, Part.ENDING), Way(i, window, Part.STARTING)]
        else:
            found.append(Way(i, window, Part.ALL))
    for i, window in enumerate(windows):
        if block_size(window):
            own = together(window, f.col(SLICE)) if isinstance(window, Cumulate) else None
            found.append(Way(i, window, Part.WHOLE, own, of_blocks=True))
    return found


def _own_marks(window: Window) -> Marks:
    if isinstance(window, Session):
        start = session_start(window.gap)
        return Marks(start, start, 1)
    if isinstance(window, Cumulate) and block_size(window):
        return alone(window, f.col(SLICE))
    return marks_of(window, f.col(SLICE))


def given(ways: list[Way]) -> Column:
    """A constant array of ways; a slice gets a row for each of them, a block one for its own."""
    rows = [_row(i, way) for i, way in enumerate(ways)]
    array = f.array(*(row for row, way in zip(rows, ways, strict=True) if not way.of_blocks))
    if not any(way.of_blocks for way in ways):
        return array
    chosen = f.when(f.col(LEVEL) < 0, array)
    for row, way in zip(rows, ways, strict=True):
        if way.of_blocks:
            chosen = chosen.when(f.col(LEVEL) == way.number, f.array(row))
    return chosen


def _row(number: int, way: Way) -> Column:
    window = way.window
    spans = {"length": 0, "slide": 1, "offset": 0, "size": 1, "step": way.marks.step if way.marks else 1}
    if isinstance(window, Periodic):
        size = block_size(window) or window.slide
        spans = {"length": window.length, "slide": window.slide, "offset": window.offset, "size": size}
        spans["step"] = window.slide
    return f.struct(
        f.lit(number).alias("way"),
        f.lit(way.number).alias(NUMBER),
        f.lit(int(way.part)).alias("part"),
        *(f.lit(int(span)).cast("bigint").alias(name) for name, span in spans.items()),
    )


def marks_by_way(ways: list[Way]) -> tuple[Column, Column]:
    """The first and the last mark of the windows that hold a slice, for the way of its row."""
    low, high = _periodic_marks(blocks=any(way.of_blocks for way in ways))
    for i, way in enumerate(ways):
        if way.marks is not None:
            low = f.when(f.col("way") == i, way.marks.low).otherwise(low)
            high = f.when(f.col("way") == i, way.marks.high).otherwise(high)
    return low, high


def _periodic_marks(blocks: bool) -> tuple[Column, Column]:
    time, part = f.col(SLICE), f.col("part")
    length, slide, offset, size = map(f.col, ("length", "slide", "offset", "size"))
    low = last_multiple(time - length, offset, slide) + slide
    high = last_multiple(time, offset, slide)
    if not blocks:
        return low, high
    block = last_multiple(time, offset, size)
    # The first start whose window reaches the end of the block.
    reaching = last_multiple(block + size - length - 1, offset, slide) + slide
    return (
        f.when(part == Part.STARTING, block + slide).when(part == Part.WHOLE, reaching).otherwise(low),
        f.when(part == Part.ENDING, reaching - slide).when(part == Part.WHOLE, block).otherwise(high),
    )
