"""Lines over time as SVG: a chart of several series from M4 columns, and small lines without axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from muntin.drawing.lanes import Scale
from muntin.drawing.svg_elements import element, text, titled
from muntin.drawing.svg_picture import COLOURS

__all__ = ["Column", "Line", "chart", "small_line"]

LEFT, RIGHT, TOP, BOTTOM = 52, 12, 8, 22


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a line over the time from `start` to `end`, as the aggregate m4 gives them."""

    start: int
    end: int
    first: float
    least: float
    greatest: float
    last: float

    def points(self) -> Iterator[tuple[int, float]]:
        """The line through this column: m4 does not say which extreme came first.

        >>> list(Column(0, 8, 2.0, 1.0, 5.0, 3.0).points())
        [(2, 2.0), (4, 1.0), (4, 5.0), (6, 3.0)]
        >>> list(Column(0, 8, 2.0, 2.0, 2.0, 2.0).points())
        [(4, 2.0)]
        """
        quarter, middle = (self.end - self.start) // 4, (self.start + self.end) // 2
        if self.least == self.greatest:
            yield middle, self.last
            return
        yield self.start + quarter, self.first
        yield middle, self.least
        yield middle, self.greatest
        yield self.end - quarter, self.last

    def followed_by(self, later: Column) -> Column:
        """This column, with the values of the same time that come after its own."""
        least, greatest = min(self.least, later.least), max(self.greatest, later.greatest)
        return Column(self.start, self.end, self.first, least, greatest, later.last)


@dataclass(frozen=True, slots=True)
class Line:
    """A series; `number` chooses its colour."""

    name: str
    number: int
    columns: Sequence[Column]


def chart(
    lines: Sequence[Line],
    extent: tuple[int, int],
    ticks: Sequence[tuple[int, str]],
    *,
    title: str,
    width: int,
    height: int = 220,
    describe: Callable[[float], str] = "{:g}".format,
) -> str:
    """The lines on one pair of axes, without a style sheet; nothing of a column outside `extent`."""
    across = Scale(*extent, LEFT, width - RIGHT)
    shown = [(line, [c for c in line.columns if c.end > extent[0] and c.start < extent[1]]) for line in lines]
    values = [v for _, columns in shown for c in columns for v in (c.least, c.greatest)]
    least, greatest = (min(values), max(values)) if values else (0.0, 1.0)
    steps = list(_round_values(least, greatest))
    low, high = min(least, steps[0]), max(greatest, steps[-1])

    def up(value: float) -> float:
        return round(height - BOTTOM - (value - low) / (high - low) * (height - BOTTOM - TOP), 1)

    parts = [titled(title)]
    for value in steps:
        parts.append(
            element("line", x1=LEFT, y1=up(value), x2=width - RIGHT, y2=up(value), class_="line grid")
        )
        parts.append(text(describe(value), LEFT - 8, up(value) + 4, "right small quiet"))
    for time, words in ticks:
        x = across.place(time)
        parts.append(text(words, x, height - 5, "middle small quiet"))
    for line, columns in shown:
        places = [(across.inside(time), up(value)) for column in columns for time, value in column.points()]
        if len(places) == 1:
            (x, y), class_ = places[0], f"point w{line.number % COLOURS}"
            parts.append(element("circle", cx=x, cy=y, r=3, class_=class_, data_name=line.name))
        elif places:
            d = "M" + "L".join(f"{x:g} {y:g}" for x, y in places)
            dash = f" dash{line.number // COLOURS}" if line.number >= COLOURS else ""
            class_ = f"curve w{line.number % COLOURS}{dash}"
            parts.append(element("path", d=d, class_=class_, data_name=line.name, data_points=len(places)))
    return element(
        "svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width,
        height=height, role="img",
    )  # fmt: skip


def small_line(values: Iterable[float], width: int = 96, height: int = 24) -> str:
    """A line from zero upwards, without axes and text.

    >>> print(small_line([0, 2, 1], width=40, height=10))
    <svg xmlns="..." viewBox="0 0 40 10" ...><path d="M0 9L20 1L40 5" class="curve quiet"/></svg>
    """
    heights = list(values)
    top = max([*heights, 0]) or 1
    step = width / max(len(heights) - 1, 1)
    places = (
        f"{round(i * step, 1):g} {round(height - 1 - v / top * (height - 2), 1):g}"
        for i, v in enumerate(heights)
    )
    path = element("path", d="M" + "L".join(places), class_="curve quiet") if heights else ""
    return element(
        "svg", path, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width,
        height=height, preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip


def _round_values(low: float, high: float) -> Iterator[float]:
    """About four multiples of 1, 2 or 5 times a power of ten, from below `low` to above `high`."""
    if not low < high:
        low, high = low - 1, high + 1
    rough = (high - low) / 4
    step = next(s * 10.0**p for p in range(-12, 300) for s in (1, 2, 5) if s * 10.0**p >= rough)
    number = int(low // step)
    while True:
        yield round(number * step, 12)
        if number * step >= high:
            return
        number += 1
