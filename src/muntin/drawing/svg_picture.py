"""A run as an SVG picture: windows above, tuples on their time axis, slices below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from muntin.drawing.lanes import Scale, lanes
from muntin.drawing.observed_run import DrawnSlice, DrawnTuple, DrawnWindow, ObservedRun
from muntin.drawing.svg_elements import STYLE, element, text, titled

__all__ = ["COLOURS", "LEFT", "RIGHT", "UNSEEN", "WIDTH", "Shape", "rows_of_slices", "svg"]

WIDTH, LEFT, RIGHT = 760, 108, 16
CHARACTER = 7.2
"""The width of a character, at most."""
COLOURS = 4
UNSEEN = 200
"""An overlap of slices is too short for a picture where it is less than this share of its time."""
ROOM = 95
"""The width of the word "watermark", with the label of a tick."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a picture in pixels; a `dense` one has room for hundreds of tuples and windows."""

    width: int = WIDTH
    left: int = LEFT
    right: int = RIGHT
    bar: int = 22
    lane: int = 26
    group: int = 10
    """The room between windows of different names."""
    tuples: int = 34
    """The height of the row of tuples."""
    radius: float = 8.5
    labelled: bool = True
    """Whether tuples have labels."""
    long_edges: bool = False
    """Whether the edges of slices go up through all windows."""
    styled: bool = True
    """Whether the picture has its style sheet; without, that of the page around it counts."""
    lanes: Mapping[str, int] = field(default_factory=dict)
    """The names of windows that have a row even when none is there, with the least number of lanes of each,
    so that nothing jumps in a picture that changes."""
    slice_rows: int = 1
    """The least number of rows of slices."""

    @classmethod
    def roomy(cls, width: int) -> Shape:
        """For a page of this width, which has the style sheet."""
        return cls(width, 64 if width < 600 else 84, 12, long_edges=True, styled=False)

    @classmethod
    def dense(cls, width: int) -> Shape:
        """The same for hundreds of tuples, without labels."""
        left = 64 if width < 600 else 84
        return cls(width, left, 12, 15, 17, 8, 26, 2.6, labelled=False, long_edges=True, styled=False)


def svg(
    run: ObservedRun,
    *,
    title: str = "Tuples, slices and windows",
    ticks: Sequence[tuple[int, str]] | None = None,
    extent: tuple[int, int] | None = None,
    describe: Callable[[object], str] = str,
    shape: Shape | None = None,
) -> str:
    """The picture of a run, as the text of an SVG file that refers to no other file.

    Args:
        run: What to draw.
        title: What a screen reader says.
        ticks: Times on the axis with their labels, by default up to ten round numbers.
        extent: The first and the last time of the picture, by default those of the run.
        describe: The text of a value.
        shape: The sizes.
    """
    shape = Shape() if shape is None else shape
    scale = Scale(*(extent or run.extent), shape.left, shape.width - shape.right)
    elements: list[str] = []
    top, margin = 6.0, shape.left - 10
    for number, name in enumerate(dict.fromkeys((*shape.lanes, *run.names))):
        rows = lanes([window for window in run.windows if window.name == name])
        rows += [[]] * (shape.lanes.get(name, 1) - len(rows))
        middle = top + (len(rows) - 1) * shape.lane / 2 + shape.bar / 2
        elements.append(text(name, margin, middle + 4, f"right strong w{number % COLOURS}"))
        for lane in rows:
            elements.extend(
                _window(window, scale, top, f"w{number % COLOURS}", describe, shape) for window in lane
            )
            top += shape.lane
        top += shape.group
    tuples, slices = top, top + shape.tuples
    bottom = slices + shape.bar
    line = tuples + 12.5  # where tuples lie
    elements.append(text("tuples", margin, line + 4, "right ink"))
    elements.append(text("slices", margin, slices + shape.bar / 2 + 4, "right slice"))
    elements.extend(_edges(run, scale, 2 if shape.long_edges else tuples - shape.group, slices))
    elements.extend(_tuples(run.tuples, scale, line, slices, shape))
    slice_rows = rows_of_slices(run.slices, (scale.high - scale.low) // UNSEEN if shape.long_edges else 0)
    bottom += shape.lane * (max(len(slice_rows), shape.slice_rows) - 1)
    for number, row in enumerate(slice_rows):
        top = slices + number * shape.lane
        elements.extend(_slice(slice_, scale, top, describe, shape) for slice_ in row)
    ticks = _round_ticks(scale) if ticks is None else ticks
    if run.watermark is not None and scale.low <= run.watermark <= scale.high:
        x = scale.place(run.watermark)
        ticks = [(time, words) for time, words in ticks if not x - ROOM < scale.place(time) < x + ROOM / 4]
        elements.extend(_watermark(x, bottom + 8))
    elements.extend(_axis(ticks, scale, bottom + 8))
    height = int(bottom + 30)
    style = [element("style", STYLE)] if shape.styled else []
    return (
        element(
            "svg",
            [titled(title), *style, *elements],
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {shape.width} {height}",
            width=shape.width,
            height=height,
            role="img",
        )
        + "\n"
    )


def rows_of_slices(slices: Sequence[DrawnSlice], unseen: int) -> list[list[DrawnSlice]]:
    """Slices in rows without overlap: late tuples may lie in slices of their own, over the others.

    An overlap of `unseen` is too short for the picture.
    """
    rows: list[list[DrawnSlice]] = [[]]
    for one in slices:
        row = next((row for row in rows if not row or row[-1].end <= one.start + unseen), None)
        if row is None:
            rows.append([one])
        else:
            row.append(one)
    return rows


def _watermark(x: float, bottom: float) -> Iterator[str]:
    yield element("line", x1=x, y1=2, x2=x, y2=bottom, class_="watermark")
    yield text("watermark", x - 4, bottom + 16, "right small strong watermark")


def _window(
    window: DrawnWindow,
    scale: Scale,
    top: float,
    colour: str,
    describe: Callable[[object], str],
    shape: Shape,
) -> str:
    left, right = scale.inside(window.start), scale.inside(window.end)
    colour = "late" if window.changed else colour
    marks = (" gone" if window.retracted else "") + (" open" if window.is_open else "")
    box = element(
        "rect", x=left + 1, y=top, width=round(max(right - left - 2, 1), 1), height=shape.bar, rx=4,
        class_=colour + marks,
    )  # fmt: skip
    words = _change(window.before, window.value, window.retracted, right - left, describe)
    style = (
        f"middle {colour}" + (" strong" if window.changed else "") + (" struck" if window.retracted else "")
    )
    label = text(words, round((left + right) / 2, 1), top + shape.bar / 2 + 4, style) if words else ""
    return element(
        "g", [box, label], class_="window", data_name=window.name, data_start=window.start,
        data_end=window.end, data_value=window.value,
        data_kind="retracted" if window.retracted else "changed" if window.changed else "unchanged",
    )  # fmt: skip


def _slice(
    slice_: DrawnSlice, scale: Scale, top: float, describe: Callable[[object], str], shape: Shape
) -> str:
    left, right = scale.inside(slice_.start), scale.inside(slice_.end)
    colour = "late" if slice_.changed else "slice"
    box = element(
        "rect", x=left + 1, y=top, width=round(max(right - left - 2, 1), 1), height=shape.bar, rx=2,
        class_=colour,
    )  # fmt: skip
    words = _change(slice_.before, slice_.value, False, right - left, describe)
    middle = top + shape.bar / 2 + 4
    label = text(words, round((left + right) / 2, 1), middle, f"middle {colour}") if words else ""
    return element(
        "g",
        [box, label],
        class_="slice",
        data_start=slice_.start,
        data_end=slice_.end,
        data_value=slice_.value,
    )


def _change(
    before: object, value: object, retracted: bool, width: float, describe: Callable[[object], str]
) -> str:
    """The value, and where there is room the one that it replaces; nothing where there is no room."""
    if value is None:
        return ""
    short = describe(value)
    long = f"{describe(before)} → {short}" if before not in (None, value) and not retracted else short
    return next((words for words in (long, short) if len(words) * CHARACTER <= width - 2), "")


def _tuples(
    tuples: Sequence[DrawnTuple], scale: Scale, y: float, slices: float, shape: Shape
) -> Iterator[str]:
    if shape.labelled:
        for tuple_ in tuples:
            yield _labelled(tuple_, scale.place(tuple_.time), y, shape)
        return
    # One path for all dots: a browser draws it faster than an element for each.
    if on_time := [scale.place(tuple_.time) for tuple_ in tuples if not tuple_.late]:
        yield element("path", d="".join(f"M{x:g} {y:g}h0" for x in on_time), class_="dots ink")
    for tuple_ in tuples:
        if tuple_.late:
            x = scale.place(tuple_.time)
            # Where a late tuple lands: a line down into its slice.
            lands = element("line", x1=x, y1=y, x2=x, y2=slices, class_="late lands")
            circle = element("circle", cx=x, cy=y, r=shape.radius, class_="late")
            yield element("g", [lands, circle], class_="tuple late", data_time=tuple_.time)


def _labelled(tuple_: DrawnTuple, x: float, y: float, shape: Shape) -> str:
    colour = "late" if tuple_.late else "ink"
    circle = element("circle", cx=x, cy=y, r=shape.radius, class_=colour)
    label = text(tuple_.label, x, y + 4, f"middle small {colour}" + (" strong" if tuple_.late else ""))
    late = [text("late", x, y - shape.radius - 3, "middle small strong late")] if tuple_.late else []
    return element("g", [circle, label, *late], class_="tuple", data_time=tuple_.time)


def _edges(run: ObservedRun, scale: Scale, top: float, bottom: float) -> Iterator[str]:
    """A dashed line up from each edge of a slice: windows begin and end there."""
    kinds = {slice_.start: "fixed" for slice_ in run.slices}
    kinds |= {slice_.end: slice_.separator for slice_ in run.slices}
    for edge in sorted(kinds):
        if scale.low <= edge <= scale.high:
            x, kind = scale.place(edge), kinds[edge]
            class_ = "line edge" if kind == "fixed" else f"line edge {kind}"
            yield element("line", x1=x, y1=top, x2=x, y2=bottom, class_=class_)


def _axis(ticks: Sequence[tuple[int, str]], scale: Scale, y: float) -> Iterator[str]:
    yield element("line", x1=scale.left, y1=y, x2=scale.right, y2=y, class_="line")
    for time, words in ticks:
        x = scale.place(time)
        yield element("line", x1=x, y1=y, x2=x, y2=y + 4, class_="line")
        yield text(words, x, y + 16, "middle small quiet")


def _round_ticks(scale: Scale) -> list[tuple[int, str]]:
    """Multiples of 1, 2 or 5 times a power of ten, at most ten of them."""
    span = scale.high - scale.low
    step = next(s * 10**p for p in range(20) for s in (1, 2, 5) if span <= 10 * s * 10**p)
    return [(tick, str(tick)) for tick in range(-(-scale.low // step) * step, scale.high + 1, step)]
