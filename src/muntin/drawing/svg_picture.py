"""A run as an SVG picture: windows above, tuples on their time axis, slices below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from muntin.drawing.lanes import Scale, lanes
from muntin.drawing.observed_run import DrawnSlice, DrawnTuple, DrawnWindow, ObservedRun
from muntin.drawing.svg_elements import STYLE, element, text

__all__ = ["svg"]

WIDTH, LEFT, RIGHT = 760, 108, 16
BAR, STEP, GROUP, ROOM = 22, 26, 10, 34
"""Heights in pixels: a bar, a lane, the room between windows of different names, a row of tuples."""
RADIUS = 8.5
CHARACTER = 7.2
"""The width of a character, at most."""
COLOURS = 4


def svg(
    run: ObservedRun,
    *,
    title: str = "Tuples, slices and windows",
    ticks: Sequence[tuple[int, str]] | None = None,
    extent: tuple[int, int] | None = None,
    describe: Callable[[object], str] = str,
) -> str:
    """The picture of a run, as the text of an SVG file that refers to no other file.

    Args:
        run: What to draw.
        title: What a screen reader says.
        ticks: Times on the axis with their labels, by default up to ten round numbers.
        extent: The first and the last time of the picture, by default those of the run.
        describe: The text of a value.
    """
    scale = Scale(*(extent or run.extent), LEFT, WIDTH - RIGHT)
    parts: list[str] = []
    top = 6.0
    for number, name in enumerate(run.names):
        rows = lanes([window for window in run.windows if window.name == name])
        middle = top + (len(rows) - 1) * STEP / 2 + BAR / 2
        parts.append(text(name, LEFT - 10, middle + 4, f"right strong w{number % COLOURS}"))
        for lane in rows:
            parts.extend(_window(window, scale, top, f"w{number % COLOURS}", describe) for window in lane)
            top += STEP
        top += GROUP
    tuples, slices = top, top + ROOM
    bottom = slices + BAR
    parts.append(text("tuples", LEFT - 10, tuples + RADIUS + 8, "right ink"))
    parts.append(text("slices", LEFT - 10, slices + 15, "right slice"))
    parts.extend(_edges(run, scale, tuples - GROUP, slices))
    parts.extend(_tuple(tuple_, scale, tuples + RADIUS + 4) for tuple_ in run.tuples)
    parts.extend(_slice(found, scale, slices, describe) for found in run.slices)
    parts.extend(_axis(_round_ticks(scale) if ticks is None else ticks, scale, bottom + 8))
    height = int(bottom + 30)
    return (
        element(
            "svg",
            [element("title", title), element("style", STYLE), *parts],
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {height}",
            width=WIDTH,
            height=height,
            role="img",
        )
        + "\n"
    )


def _window(
    window: DrawnWindow, scale: Scale, top: float, colour: str, describe: Callable[[object], str]
) -> str:
    left, right = scale.place(window.start), scale.place(window.end)
    colour = "late" if window.changed else colour
    box = element(
        "rect", x=left + 1, y=top, width=round(max(right - left - 2, 1), 1), height=BAR, rx=4,
        class_=f"{colour} gone" if window.retracted else colour,
    )  # fmt: skip
    words = _change(window.before, window.value, window.retracted, right - left, describe)
    style = (
        f"middle {colour}" + (" strong" if window.changed else "") + (" struck" if window.retracted else "")
    )
    label = text(words, round((left + right) / 2, 1), top + 15, style) if words else ""
    return element(
        "g", [box, label], class_="window", data_name=window.name, data_start=window.start,
        data_end=window.end, data_value=window.value,
        data_kind="retracted" if window.retracted else "changed" if window.changed else "unchanged",
    )  # fmt: skip


def _slice(found: DrawnSlice, scale: Scale, top: float, describe: Callable[[object], str]) -> str:
    left, right = scale.place(found.start), scale.place(found.end)
    colour = "late" if found.changed else "slice"
    box = element(
        "rect", x=left + 1, y=top, width=round(max(right - left - 2, 1), 1), height=BAR, rx=2, class_=colour
    )
    words = _change(found.before, found.value, False, right - left, describe)
    label = text(words, round((left + right) / 2, 1), top + 15, f"middle {colour}") if words else ""
    return element(
        "g", [box, label], class_="slice", data_start=found.start, data_end=found.end, data_value=found.value
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


def _tuple(tuple_: DrawnTuple, scale: Scale, y: float) -> str:
    x = scale.place(tuple_.time)
    colour = "late" if tuple_.late else "ink"
    label = text(tuple_.label, x, y + 4, f"middle small {colour}" + (" strong" if tuple_.late else ""))
    late = [text("late", x, y - RADIUS - 3, "middle small strong late")] if tuple_.late else []
    return element(
        "g", [element("circle", cx=x, cy=y, r=RADIUS, class_=colour), label, *late],
        class_="tuple", data_time=tuple_.time,
    )  # fmt: skip


def _edges(run: ObservedRun, scale: Scale, top: float, bottom: float) -> Iterator[str]:
    """A dashed line up from each edge of a slice: windows begin and end there."""
    for edge in sorted({edge for found in run.slices for edge in (found.start, found.end)}):
        x = scale.place(edge)
        yield element("line", x1=x, y1=top, x2=x, y2=bottom, class_="line edge")


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
