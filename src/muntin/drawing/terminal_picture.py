"""A run as lines of text: the same picture in a terminal, with colours."""

from __future__ import annotations

from rich.text import Text

from muntin.drawing.lanes import Scale, lanes
from muntin.drawing.observed_run import DrawnSlice, DrawnWindow, ObservedRun

__all__ = ["terminal"]

STYLES = ("cyan", "magenta", "blue", "green")
LATE, GONE = "bold yellow", "red"
MARGIN = 9


def terminal(run: ObservedRun, width: int = 80, ticks: int = 10) -> Text:
    """Windows above, tuples on their time axis, slices below; what late tuples changed is yellow.

    Args:
        run: What to draw.
        width: The number of columns.
        ticks: The distance of labels on the time axis.
    """
    scale = Scale(*run.extent, MARGIN, width - 3)
    picture: list[Text] = []
    for number, name in enumerate(run.names):
        for row, lane in enumerate(lanes([window for window in run.windows if window.name == name])):
            line = _line(name if not row else "", STYLES[number % len(STYLES)], width)
            for window in lane:
                style = GONE if window.retracted else LATE if window.changed else STYLES[number % len(STYLES)]
                _bar(line, window, scale, style, "├─┤" if not window.retracted else "╎╌╎")
            picture.append(line)
    picture.append(_tuples(run, scale, width))
    line = _line("slices", "white", width)
    for slice_ in run.slices:
        _bar(line, slice_, scale, LATE if slice_.changed else "white", "[ )")
    picture.append(line)
    picture.append(_axis(scale, width, ticks))
    return Text("\n").join(picture)


def _line(label: str, style: str, width: int) -> Text:
    line = Text(label[: MARGIN - 1].ljust(width))
    line.stylize(style, 0, MARGIN - 1)
    return line


def _bar(line: Text, part: DrawnWindow | DrawnSlice, scale: Scale, style: str, drawn: str) -> None:
    """A bar between two edges with its value in the middle, as far as there is room."""
    begin, end = (
        int(scale.place(part.start)),
        max(int(scale.place(part.end)), int(scale.place(part.start)) + 1),
    )
    size = end - begin
    gone = isinstance(part, DrawnWindow) and part.retracted
    value = "" if part.value is None else str(part.value)
    both = f"{part.before}→{value}" if part.before not in (None, part.value) and not gone else value
    words = next((text for text in (both, value) if len(text) <= size - 2), "")
    body = words.center(size - 2, drawn[1]) if size > 1 else ""
    _put(line, begin, (drawn[0] + body + drawn[2])[:size], style)


def _tuples(run: ObservedRun, scale: Scale, width: int) -> Text:
    line = _line("tuples", "white", width)
    for tuple_ in run.tuples:
        _put(line, int(scale.place(tuple_.time)), tuple_.label, LATE if tuple_.late else "bold")
    return line


def _axis(scale: Scale, width: int, ticks: int) -> Text:
    line = _line("", "dim", width)
    for time in range(-(-scale.low // ticks) * ticks, scale.high + 1, ticks):
        _put(line, int(scale.place(time)), str(time), "dim")
    return line


def _put(line: Text, begin: int, words: str, style: str) -> None:
    """Write over a part of the line."""
    width = len(line)
    plain = (line.plain[:begin] + words + line.plain[begin + len(words) :])[:width]
    line.plain = plain
    line.stylize(style, begin, min(begin + len(words), width))
