"""What a picture shows: the tuples of a run, the slices that the engine holds, the windows that it emits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import QueryError
from muntin.query import WINDOW_NAME, QuerySpec
from muntin.slicing.operator import SlicingOperator

__all__ = ["DrawnSlice", "DrawnTuple", "DrawnWindow", "ObservedRun", "observe"]

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class DrawnTuple:
    """A tuple at its event time."""

    time: int
    label: str
    late: bool = False


@dataclass(frozen=True, slots=True)
class DrawnSlice:
    """A slice between the edges of windows around it, with its partial aggregate, lowered."""

    start: int
    end: int
    tuples: int
    value: object
    before: object = None
    """The value before the late tuples arrived."""
    separator: str = "fixed"
    """The kind of the separator that ends it: "fixed", "flexible" or "combined"."""

    @property
    def changed(self) -> bool:
        """Whether late tuples changed it."""
        return self.before != self.value


@dataclass(frozen=True, slots=True)
class DrawnWindow:
    """A window of the results, after the late tuples."""

    name: str
    start: int
    end: int
    value: object
    before: object = None
    """The value before the late tuples arrived; None where there was no such window."""
    retracted: bool = False
    is_open: bool = False
    """Whether it is not complete yet."""

    @property
    def changed(self) -> bool:
        """Whether late tuples changed it."""
        return self.retracted or self.before != self.value


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """The contents of a picture. Times are int64: microseconds, or units of an integer time column."""

    tuples: tuple[DrawnTuple, ...]
    slices: tuple[DrawnSlice, ...]
    windows: tuple[DrawnWindow, ...]
    watermark: int | None = None
    """Where the picture shows a watermark."""

    def _repr_svg_(self) -> str:
        """The picture, where a notebook shows the run."""
        from muntin.drawing.svg_picture import svg  # which draws runs

        return svg(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the windows, in the order of the query."""
        return tuple(dict.fromkeys(window.name for window in self.windows))

    @property
    def extent(self) -> tuple[int, int]:
        """From the first edge or tuple to the last."""
        bars: list[DrawnWindow | DrawnSlice] = [*self.windows, *self.slices]
        times = [tuple_.time for tuple_ in self.tuples]
        return min([bar.start for bar in bars] + times), max([bar.end for bar in bars] + times)


def observe(
    query: QuerySpec, tuples: Columns, late: Columns | None = None, label: str | None = None
) -> ObservedRun:
    """Run a query over these columns, and over `late` ones after every window was complete.

    Args:
        query: It has no keys, and its first aggregate is the value that slices and windows show. With
            `allowed_lateness` longer than the stream, the engine still holds all slices at its end.
        tuples: The columns of the tuples that arrive in time.
        late: The columns of tuples that arrive when the windows of the others are complete.
        label: The column that names tuples in the picture, by default the input of the first aggregate.
    """
    if query.keys:
        raise QueryError(f"a picture shows the tuples of one key: got .by{query.keys!r}; leave .by out")
    aggregate, first = query.aggregates[0]
    shown = label or next((name for name in tuples if name != query.time and name in str(first)), query.time)
    engine = SlicingOperator(query.validated())
    engine.process(pa.RecordBatch.from_pydict(dict(tuples)))
    rows = [*_rows(engine.advance(_newest(tuples, query.time) + 1), aggregate)]
    before = _slices(engine)
    changes: list[_Row] = []
    if late is not None:
        rows += _rows(engine.close_idle(), aggregate)
        engine.process(pa.RecordBatch.from_pydict(dict(late)))
        changes += _rows(engine.advance(engine.state.watermark + 1), aggregate)
    after = _slices(engine)
    (changes if late is not None else rows).extend(_rows(engine.finish(), aggregate))
    windows = _windows(rows, changes, [name for name, _ in query.windows])
    return ObservedRun(
        (*_tuples(tuples, query.time, shown, late=False), *_tuples(late or {}, query.time, shown, late=True)),
        _extended(before, after, windows),
        windows,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    identity: object
    start: int
    end: int
    value: object
    kind: str


def _rows(results: pa.Table, aggregate: str) -> Iterable[_Row]:
    window = results["window"]
    edges = [pc.struct_field(window, side).cast(pa.int64()).to_pylist() for side in ("start", "end")]
    columns = (window.to_pylist(), results[WINDOW_NAME].to_pylist(), results[aggregate].to_pylist())
    for start, end, fields, name, value, kind in zip(
        *edges, *columns, results["kind"].to_pylist(), strict=True
    ):
        # Windows on ranks or another measure keep their identity there while their times move.
        marks = tuple(fields[f] for f in fields if f.startswith("start_") and fields[f] is not None)
        yield _Row(name, (name, marks or (start, end, fields.get("ordinal"))), start, end, value, kind)


def _windows(rows: list[_Row], changes: list[_Row], names: list[str]) -> tuple[DrawnWindow, ...]:
    """The newest value of each window, with the one before the changes."""
    drawn = {row.identity: DrawnWindow(row.name, row.start, row.end, row.value, row.value) for row in rows}
    for row in changes:
        old = drawn.get(row.identity)
        new = DrawnWindow(row.name, row.start, row.end, row.value, None if old is None else old.before)
        drawn[row.identity] = replace(new, retracted=row.kind == "retract")
    return tuple(sorted(drawn.values(), key=lambda w: (names.index(w.name), w.start, w.end, not w.retracted)))


def _slices(engine: SlicingOperator) -> list[DrawnSlice]:
    """The rows of the slice table: from their first to their last tuple."""
    table = engine.state.slices
    values = table.partials.lower(table.states)[0].to_pylist()
    columns = (table.first.tolist(), table.last.tolist(), table.n.tolist(), values)
    return [DrawnSlice(*row, None) for row in zip(*columns, strict=True)]


def _extended(
    before: list[DrawnSlice], after: list[DrawnSlice], windows: tuple[DrawnWindow, ...]
) -> tuple[DrawnSlice, ...]:
    """Slices drawn up to the edges of windows around them, with the value before the late tuples."""
    edges = sorted({edge for window in windows for edge in (window.start, window.end)})

    def around(slice_: DrawnSlice) -> tuple[int, int]:
        right = bisect_right(edges, slice_.end)
        left = bisect_right(edges, slice_.start) - 1
        return (
            edges[left] if left >= 0 else slice_.start,
            edges[right] if right < len(edges) else slice_.end + 1,
        )

    old = {around(slice_): slice_.value for slice_ in before}
    return tuple(
        replace(slice_, start=start, end=end, before=old.get((start, end)))
        for slice_ in after
        for start, end in (around(slice_),)
    )


def _newest(columns: Columns, time: str) -> int:
    return int(pc.max(pa.array(list(columns[time]))).cast(pa.int64()).as_py())


def _tuples(columns: Columns, time: str, label: str, late: bool) -> Iterable[DrawnTuple]:
    if columns:
        times = pa.array(list(columns[time])).cast(pa.int64()).to_pylist()
        for moment, name in zip(times, columns[label], strict=True):
            yield DrawnTuple(moment, str(name), late)
