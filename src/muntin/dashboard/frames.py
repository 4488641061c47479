"""What a page receives: sections of plain values and SVG texts, of which only changed ones are sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from muntin.dashboard.history import History, Sample, of_key
from muntin.dashboard.shown_stream import ShownStream
from muntin.dashboard.slice_strip import Layout, Look, Strip, value_text
from muntin.dashboard.times import in_words, length_in_words
from muntin.dashboard.zoomed_lines import LEVELS, ZoomedLines
from muntin.drawing.line_picture import chart, small_line
from muntin.drawing.time_ticks import time_ticks
from muntin.timeline import INF

__all__ = ["Frames", "View"]

RESULTS_SHOWN = 14
NARROWEST, WIDEST = 280, 2400


@dataclass(frozen=True, slots=True)
class View:
    """How one page looks at the stream."""

    width: int = 900
    """Of the strip, in pixels."""
    chart: int = 600
    """Of the lines, in pixels."""
    level: int = 0
    """The zoom level of the lines."""
    scale: float = 1.0
    """The length of the strip."""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> View:
        """The view of an address; an invalid value becomes the nearest valid one.

        >>> View.of({"width": "99999", "level": "x"})
        View(width=2400, chart=600, level=0, scale=1.0)
        """

        def number(name: str, low: float, high: float, default: float) -> float:
            try:
                return min(max(float(parameters.get(name, default)), low), high)
            except ValueError:
                return default

        return cls(
            int(number("width", NARROWEST, WIDEST, 900)),
            int(number("chart", NARROWEST, WIDEST, 600)),
            int(number("level", 0, LEVELS - 1, 0)),
            number("scale", 0.125, 8, 1),
        )


class Frames:
    """The frames of one page: `next` gives the sections that have changed since the last call."""

    def __init__(self, stream: ShownStream, view: View) -> None:
        self.stream, self.view = stream, view
        self._sent: dict[str, str] = {}
        self._version = -1
        self._layout, self._laid_out = Layout(), (stream.history, stream.key)

    def next(self) -> dict[str, Any] | None:
        """The changed sections; None where nothing has changed."""
        if self.stream.version == self._version:
            return None
        with self.stream.lock:
            self._version = self.stream.version
            sections = self._sections()
        changed = {}
        for name, section in sections.items():
            text = json.dumps(section, default=str)
            if self._sent.get(name) != text:
                self._sent[name], changed[name] = text, section
        return changed or None

    def sections(self) -> dict[str, Any]:
        """All sections."""
        with self.stream.lock:
            return self._sections()

    def _sections(self) -> dict[str, Any]:
        stream = self.stream
        sections: dict[str, Any] = {"head": self._head(), "notes": self._notes(), "plan": self._plan()}
        look = stream.look() if stream.has_look else None
        key, aggregate = stream.key, stream.aggregate or next((n for n, _ in stream.query.aggregates), "")
        if self._laid_out != (stream.history, key):  # another key, or a restart
            self._layout, self._laid_out = Layout(), (stream.history, key)
        strip = (
            None if look is None or key is None else Strip(look, stream.history, key, aggregate, self._layout)
        )
        known = strip is not None and aggregate in strip.look.slices.column_names
        sections["strip"] = strip.picture(self.view.width, self.view.scale) if strip and known else ""
        sections["lines"] = self._lines()
        sections["numbers"] = self._numbers(look)
        sections["windows"] = self._windows(look, strip if known else None)
        sections["aggregates"] = [
            {"name": name, "what": one.describe(), "fixed": stream.aggregates_are_fixed}
            for name, one in stream.query.aggregates
        ]
        sections["results"] = self._results()
        return sections | dict(stream.extras())

    def _head(self) -> dict[str, Any]:
        stream, history = self.stream, self.stream.history
        return {
            "title": stream.title,
            "about": stream.about,
            "state": stream.state,
            "error": stream.error,
            "loading": stream.loading,
            "speed": stream.speed,
            "verbs": stream.verbs,
            "newest": in_words(history.newest, history.timed),
            "keys": [stream.label(key) for key in history.keys if key],
            "key_names": ", ".join(history.key_names),
            "key": stream.label(stream.key) if stream.key else "",
            "aggregates": stream.aggregates,
            "aggregate": stream.aggregate,
            "timed": history.timed,
        }

    def _notes(self) -> list[dict[str, Any]]:
        timed = self.stream.history.timed
        return [asdict(note) | {"at": in_words(note.at, timed)} for note in self.stream.notes]

    def _plan(self) -> dict[str, Any]:
        explanation = self.stream.explanation()
        return {
            "summary": explanation.summary,
            "decisions": [asdict(one) for one in explanation.plan.decisions],
            "details": explanation.details,
        }

    def _lines(self) -> dict[str, Any]:
        stream, lines = self.stream, self.stream.lines
        levels = [] if lines is None else [length_in_words(w, stream.history.timed) for w in lines.widths]
        if lines is None or stream.history.newest is None:
            return {"picture": "", "levels": levels, "level": self.view.level, "names": []}
        names = [name for name, _ in stream.query.windows]
        chosen_lines = lines.of_level(self.view.level, names)
        picture = self._chart(lines, chosen_lines) if chosen_lines else ""
        return {
            "picture": picture, "levels": levels, "level": self.view.level, "names": names,
            "shown": [line.name for line in chosen_lines],
        }  # fmt: skip

    def _chart(self, lines: ZoomedLines, chosen_lines: list[Any]) -> str:
        """The chart from the first column to the last, but no more than the page has room for."""
        width = lines.widths[self.view.level]
        high = max(line.columns[-1].end for line in chosen_lines)
        most = max(self.view.chart // 5, 40)
        low = max(min(line.columns[0].start for line in chosen_lines), high - most * width)
        low = min(low, high - 4 * width)
        ticks = time_ticks(low, high, max(self.view.chart // 90, 2), self.stream.history.timed)
        height = 320 if self.view.chart > 500 else 220
        title = f"{lines.aggregate} of the results of each window"
        return chart(
            chosen_lines,
            (low, high),
            ticks,
            title=title,
            width=self.view.chart,
            height=height,
            describe=value_text,
        )

    def _numbers(self, look: Look | None) -> list[dict[str, Any]]:
        history = self.stream.history
        samples = list(history.samples)
        counters = self.stream.counters() if look is not None else {}
        watermark = None if look is None or look.watermark <= -INF else look.watermark
        newest = history.newest
        lag = "-"
        if watermark is not None and newest is not None:
            lag = "0" if watermark >= newest else length_in_words(newest - watermark, history.timed)

        def tile(name: str, value: str, remark: str, line: Callable[[Sample], float]) -> dict[str, Any]:
            return {"name": name, "value": value, "remark": remark, "line": small_line(map(line, samples))}

        def counter(name: str) -> Callable[[Sample], float]:
            return lambda sample: sample.counters.get(name, 0)

        def counted(name: str) -> str:
            return f"{counters.get(name, 0):,}"

        rates = ("-",) * 3
        if samples:
            last = samples[-1]
            per_tuple = f"{last.combines_per_tuple:.1f}"
            rates = (f"{last.tuples_per_second:,.0f}", f"{last.results_per_second:,.0f}", per_tuple)
        # Where the page sees no tuples, it knows only those that the engine dropped.
        late = tile("late tuples", counted("late"), "too late for a window", counter("late"))
        if history.tuples:
            dropped = f"{counted('late')} too late"
            late = tile("late tuples", f"{history.late:,}", dropped, lambda one: one.late)
        combines = counters.get("update_combines", 0) + counters.get("merge_combines", 0)
        keys = _number_of(counters.get("keys", 0), "key")
        stored = f"{counted('kept_tuples')} tuples stored"
        return [
            tile("tuples/s", rates[0], f"{history.taken:,} in all", lambda one: one.tuples_per_second),
            tile("results/s", rates[1], f"{history.given:,} in all", lambda one: one.results_per_second),
            {"name": "watermark lag", "value": lag, "remark": in_words(watermark, history.timed), "line": ""},
            late,
            tile("slices", counted("slices"), f"of {keys}", counter("slices")),
            tile("state", _bytes(counters.get("state_bytes", 0)), stored, counter("state_bytes")),
            tile("combines per tuple", rates[2], f"{combines:,} in all", lambda one: one.combines_per_tuple),
            tile("updates", counted("updates"), f"{counted('retractions')} retractions", counter("updates")),
        ]

    def _windows(self, look: Look | None, strip: Strip | None) -> list[dict[str, Any]]:
        stream = self.stream
        late = stream.late_by_window() if look is not None else {}
        opened = [] if look is None else look.open_windows["window_name"].to_pylist()
        inside = {} if strip is None else strip.slices_in()
        return [
            {
                "name": name,
                "what": window.describe(),
                "results": f"{stream.history.rows_by_window.get(name, 0):,}",
                "open": f"{opened.count(name):,}",
                "slices": str(inside.get(name, "-")),
                "late": f"{late[name]:,}" if name in late else "-",
            }
            for name, window in stream.query.windows
        ]

    def _results(self) -> dict[str, Any]:
        stream = self.stream
        names = [name for name, _ in stream.query.aggregates]
        rows = _newest(stream.history, stream.key)
        head = ["window", "from", "to", *names, "kind"]
        timed = stream.history.timed
        return {
            "head": head,
            "rows": [
                [
                    row["window_name"],
                    *_edges(row["window_start"], row["window_end"], timed),
                    *(value_text(row.get(name)) for name in names),
                    row["kind"],
                ]
                for row in rows
            ],
            "numeric": [name in stream.aggregates for name in names],
        }


def _newest(history: History, key: Any) -> list[dict[str, Any]]:
    """The newest results of the key, newest first."""
    table = history.results.table()
    if table is None or key is None:
        return []
    mine: pa.Table = of_key(table, history.key_names, key)
    rows: list[dict[str, Any]] = mine.slice(max(0, mine.num_rows - RESULTS_SHOWN)).to_pylist()
    return rows[::-1]


def _number_of(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _bytes(count: float) -> str:
    """A number of bytes in words.

    >>> _bytes(176), _bytes(17_640)
    ('176 bytes', '17.6 KB')
    """
    if count < 1000:
        return f"{count:g} bytes"
    unit = next((unit for unit in ("KB", "MB") if (count := count / 1000) < 999.5), None)
    return f"{count:.3g} {unit}" if unit else f"{count / 1000:.3g} GB"


def _edges(start: Any, end: Any, timed: bool) -> tuple[str, str]:
    """Start and end; the end of a window within a day has no date."""
    if not (timed and hasattr(start, "strftime") and hasattr(end, "strftime")):
        return value_text(start), value_text(end)
    same_day = start.date() == end.date()
    return f"{start:%b %d %H:%M}", f"{end:%H:%M}" if same_day else f"{end:%b %d %H:%M}"
