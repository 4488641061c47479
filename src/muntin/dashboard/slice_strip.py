"""The picture of a key: its slices, the tuples over them, and the windows that share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.dashboard.history import History, Key, identities, of_key
from muntin.dashboard.times import units
from muntin.drawing import DrawnSlice, DrawnTuple, DrawnWindow, ObservedRun, Shape, svg
from muntin.drawing.lanes import lanes
from muntin.drawing.svg_picture import UNSEEN, rows_of_slices
from muntin.drawing.time_ticks import time_ticks
from muntin.query import QuerySpec
from muntin.timeline import INF

__all__ = ["Layout", "Look", "Strip", "value_text"]

MOST_TUPLES, MOST_WINDOWS = 600, 250
LABEL = 30
"""The room that a tuple with a label takes, in pixels."""
SHORT = 60
"""A stream of no more tuples is shown from its beginning."""
NICE = tuple(s * 10**p for p in range(18) for s in (1, 2, 5))
HOURS = tuple(
    int(m * 60_000_000) for m in (1, 5, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 20160, 40320)
)


@dataclass(frozen=True, slots=True)
class Look:
    """What a stream holds at one moment: the tables of `op.slices()` and `op.open_windows()`."""

    query: QuerySpec
    slices: pa.Table
    open_windows: pa.Table
    watermark: int


@dataclass
class Layout:
    """The rows of a strip, of which a page only gets more, so that nothing jumps while the stream moves."""

    lanes: dict[str, int] = field(default_factory=dict)
    slice_rows: int = 1
    dense: bool = False

    def shape(self, run: ObservedRun, names: Sequence[str], extent: tuple[int, int], width: int) -> Shape:
        """The shape of the next picture, with a row for each of these windows."""
        for name in names:
            most = len(lanes([window for window in run.windows if window.name == name]))
            self.lanes[name] = max(self.lanes.get(name, 1), most)
        rows = rows_of_slices(run.slices, (extent[1] - extent[0]) // UNSEEN)
        self.slice_rows = max(self.slice_rows, len(rows))
        self.dense = self.dense or len(run.tuples) * LABEL > width
        shape = Shape.dense(width) if self.dense else Shape.roomy(width)
        return replace(shape, lanes={name: self.lanes[name] for name in names}, slice_rows=self.slice_rows)


@dataclass(frozen=True)
class Strip:
    """The strip of a key, from the present state of the stream and the history that the page has of it."""

    look: Look
    history: History
    key: Key
    aggregate: str
    layout: Layout = field(default_factory=Layout)

    def picture(self, width: int, scale: float = 1.0) -> str:
        """The strip as SVG, `scale` times as long as the time that open windows and slices take."""
        low, high = self.extent(scale)
        ticks = time_ticks(low, high, max(width // 90, 2), self.history.timed)
        title = f"Slices, tuples and windows of {', '.join(map(str, self.key)) or 'the stream'}"
        run = self.run(low, high)
        names = [name for name, _ in self.look.query.windows]
        shape = self.layout.shape(run, names, (low, high), width)
        return svg(run, title=title, ticks=ticks, extent=(low, high), describe=value_text, shape=shape)

    def extent(self, scale: float = 1.0) -> tuple[int, int]:
        """A round length of time that ends a little after the newest tuple; a short stream is shown whole."""
        newest = self.history.newest or 0
        mine = [(self._mine(self.look.slices), "slice"), (self._mine(self.look.open_windows), "window")]
        results = self.history.results.table()
        short = self.history.taken <= SHORT
        if short and results is not None:
            mine.append((self._mine(results), "window"))
        starts = [pc.min(units(t[f"{one}_start"])).as_py() for t, one in mine if t.num_rows]
        ends = [pc.max(units(t[f"{one}_end"])).as_py() for t, one in mine if t.num_rows]
        oldest = min([newest, *(start for start in starts if start is not None)])
        if abs(self.look.watermark) < INF:
            ends.append(self.look.watermark)
        latest = max([newest + 1, *(end for end in ends if end is not None)])
        if short:
            margin = max((latest - oldest) // 30, 1)
            high = latest + margin
            return high - max(int((high - oldest + margin) * min(scale, 1)), 2), high
        needed = max(int((newest - oldest) * 1.15 * scale), 1)
        span = next((s for s in (HOURS if self.history.timed else NICE) if s >= needed), needed)
        return newest - span, min(max(latest, newest + span // 20), newest + span // 8)

    def run(self, low: int, high: int) -> ObservedRun:
        """Tuples, slices and windows from `low` to `high`."""
        tuples = self._tuples(low)
        late = [one.time for one in tuples if one.late]
        order = [name for name, _ in self.look.query.windows]
        windows = [w for w in self._windows if w.end > low and w.start < high]
        windows = _without_old_retractions(windows)[-MOST_WINDOWS:]
        windows.sort(key=lambda w: (order.index(w.name), w.start, w.end))
        slices = tuple(s for s in self._slices(late) if s.end > low and s.start < high)
        return ObservedRun(tuple(tuples[-MOST_TUPLES:]), slices, tuple(windows), self.look.watermark)

    def slices_in(self) -> dict[str, int]:
        """The number of slices in the open windows of each name."""
        numbers: dict[str, int] = {}
        slices = self._slices([])
        for one in self._windows:
            if one.is_open:
                inside = sum(one.start <= s.start and s.end <= one.end for s in slices)
                numbers[one.name] = max(numbers.get(one.name, 0), inside)
        return numbers

    def _mine(self, table: pa.Table) -> pa.Table:
        return of_key(table, self.history.key_names, self.key) if table.num_rows else table

    def _tuples(self, low: int) -> list[DrawnTuple]:
        tuples = self.history.tuples_of(self.key, low)
        if tuples is None:
            return []
        values = [
            n for n in tuples.column_names[:-3] if n not in (self.history.time, *self.history.key_names)
        ]
        rows = _rows(tuples, "at", "late", values[0] if values else "at")
        return [DrawnTuple(at, value_text(value), late) for at, late, value in rows if at is not None]

    def _slices(self, late: list[int]) -> list[DrawnSlice]:
        table = self._mine(self.look.slices)
        if not table.num_rows:
            return []
        times = [units(table[f"slice_{name}"]).to_pylist() for name in ("start", "end", "first", "last")]
        others = [table[name].to_pylist() for name in ("slice_count", "slice_separator", self.aggregate)]
        drawn = []
        for start, end, first, last, count, separator, value in zip(*times, *others, strict=True):
            begin, stop = first if start is None else start, last + 1 if end is None else end
            changed = any(begin <= time < stop for time in late)
            before = None if changed and value is not None else value
            drawn.append(DrawnSlice(begin, stop, count, value, before, separator or "fixed"))
        return sorted(drawn, key=lambda s: s.start)

    @cached_property
    def _windows(self) -> list[DrawnWindow]:
        """The newest row of each window: open ones with their value so far, complete ones as emitted."""
        newest = self.history.newest or 0
        drawn: dict[tuple[object, ...], DrawnWindow] = {}
        results = self.history.results.table()
        if results is not None:
            table = self._mine(results)
            table = table.filter(pc.not_equal(table["kind"], "early"))  # open windows show their values
            for (name, *rest, kind), identity, value in self._of(table, "kind"):
                start, end = rest
                before = drawn.get(identity)
                old = value if before is None else before.value
                drawn[identity] = DrawnWindow(name, start, end, value, old, kind == "retract")
        for (name, start, end, _), identity, value in self._of(
            self._mine(self.look.open_windows), "window_count"
        ):
            drawn[identity] = DrawnWindow(
                name, start, newest + 1 if end is None else end, value, value, is_open=True
            )
        served = {name for name, _ in self.look.query.windows}
        return [one for one in drawn.values() if one.name in served]

    def _of(self, table: pa.Table, extra: str) -> Any:
        """Name, start, end and the column `extra` of each row; what identifies its window; its value."""
        if not table.num_rows or self.aggregate not in table.column_names:
            return
        starts, ends = (units(table[f"window_{side}"]).to_pylist() for side in ("start", "end"))
        columns = _rows(table, "window_name", extra, self.aggregate)
        for start, end, identity, (name, other, value) in zip(
            starts, ends, identities(table), columns, strict=True
        ):
            yield (name, start, end, other), identity, value


def _without_old_retractions(windows: list[DrawnWindow]) -> list[DrawnWindow]:
    """Of withdrawn windows that overlap only the newest: a session that grows would fill the picture."""
    shown: list[DrawnWindow] = []
    for one in reversed([w for w in windows if w.retracted]):
        if not any(o.name == one.name and o.start < one.end and one.start < o.end for o in shown):
            shown.append(one)
    return [one for one in windows if not one.retracted or one in shown]


def _rows(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def value_text(value: object) -> str:
    """A value in few characters.

    >>> value_text(1234567), value_text(0.33333), value_text(None), value_text({"a": 1})
    ('1,234,567', '0.333', '-', "{'a': 1}")
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
