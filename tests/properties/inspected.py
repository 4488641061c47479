"""An engine that is inspected after every step, beside an oracle that knows what it must show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa

from muntin.results import Rows
from muntin.testing.engines import EmbeddedEngine, OracleEngine, Record
from muntin.testing.oracle.aggregates import aggregate_value
from muntin.testing.oracle.emission import NamedWindow
from muntin.testing.oracle.tuples import Arrival, View
from muntin.testing.rows import Row, compare, same_value
from muntin.timeline import INF, Micros
from muntin.windows.tuple_driven import TupleDriven


class InspectedOracle(OracleEngine):
    """Says which windows are open now, and which tuples are in slices."""

    def __init__(self, query: Any, schema: pa.Schema) -> None:
        super().__init__(query, schema)
        self.too_late: set[int] = set()
        """The numbers of tuples that came too late to be ordered among the others."""

    def now(self) -> InspectedOracle:
        """A copy in which the tuples that wait were judged, as if the watermark moved now."""
        twin = copy(self)
        twin._windows = {name: _own(window) for name, window in self._windows.items()}
        twin._judged, twin.late = [], []
        twin._judge(twin._pending)
        return twin

    def open_windows(self) -> list[Row]:
        """The open windows; the revision is the number of tuples, an unknown end is INF."""
        if self._watermark == INF:
            return []
        twin, unit = self.now(), self._unit
        view = View(twin._upto, True, twin._newest)
        rows = []
        for named in twin._windows.values():
            for key in named.accepted:
                for identity, one in named.windows(key, view).items():
                    if not one.content or one.complete_at <= twin._watermark:
                        continue
                    values = {n: named._value(n, a, one) for n, a in twin._query.aggregates}
                    start = one.start // unit * unit
                    end = INF if one.complete_at == INF else -(-one.end // unit) * unit
                    measured = (one.low, one.high, identity[-1])
                    count = len(one.content)
                    rows.append(Row(key, named.name, start, end, values, "open", count, *measured))
        return rows

    def comparable(self, rows: list[Row]) -> list[Row]:
        """The rows, without what is open to choice where later tuples have ended the life of a key.

        In the engine, such a life has an end, and its count windows that are not full are not open.
        """
        found = []
        for row in rows:
            named = self._windows[row.window_name]
            never_full = not getattr(named.window, "emit_partial", True) and row.high is not None
            if not named.ends_with_key:
                found.append(row)
            elif not never_full or row.revision == row.high - row.low:
                found.append(row._replace(end=INF))
        return found

    def accepted(self) -> dict[tuple[Any, ...], list[Arrival]]:
        """The tuples of each key in order, without those that were late for all their windows."""
        twin = self.now()
        everything = [pair for _, pairs in (*self._judged, *twin._judged) for pair in pairs]
        lateness = int(self._query.allowed_lateness)
        for watermark, pairs in (*self._judged, *twin._judged):
            self.too_late |= {one.seq for _, one in pairs if one.time < watermark - lateness}
        taken = {one.seq for named in twin._windows.values() for t in named.accepted.values() for one in t}
        refused = {row["id"] for _, row in (*self.late, *twin.late)}
        found: dict[tuple[Any, ...], list[Arrival]] = {}
        for key, one in everything:
            if one.seq in taken or one.row["id"] not in refused:
                found.setdefault(key, []).append(one)
        return {key: sorted(tuples) for key, tuples in found.items()}


def _own(named: NamedWindow) -> NamedWindow:
    """A copy that may be changed; count windows that are not full are among its windows."""
    window = named.window
    if type(window).__name__ == "Count":
        window = replace(window, emit_partial=True)
    accepted = {key: list(tuples) for key, tuples in named.accepted.items()}
    in_time = {key: list(pairs) for key, pairs in named.in_time.items()}
    new = copy(named)
    new.window, new.accepted, new.in_time = window, accepted, in_time
    return new


class InspectedEngine(EmbeddedEngine):
    """After every step its open windows and slices are compared with those of the oracle."""

    def __init__(self, query: Any, schema: pa.Schema, **options: Any) -> None:
        super().__init__(query, schema, **options)
        self.oracle = InspectedOracle(query, schema)
        self.looks_at_slices = True
        self.look()

    def look(self) -> None:
        before = self._held()
        open_windows = self._operator.open_windows()
        rows = _open_rows(open_windows, self._query)
        difference = compare(*map(self.oracle.comparable, (rows, self.oracle.open_windows())))
        assert not difference, f"open windows\n{difference}"
        slices = self._operator.slices()
        if self.looks_at_slices:
            _check_slices(slices, self.oracle, self._query)
            self.look_at_ranges()
        assert str(self._operator.open_windows().to_pylist()) == str(open_windows.to_pylist())
        assert str(self._operator.slices().to_pylist()) == str(slices.to_pylist())
        after = self._held()
        assert all(one is other for one, other in zip(before, after, strict=True))

    def look_at_ranges(self) -> None:
        """Each range that is answered has the aggregates over all its tuples."""
        accepted = self.oracle.accepted()
        times = sorted({one.time for tuples in accepted.values() for one in tuples})
        timed = pa.types.is_timestamp(self._schema.field(self._query.time).type)
        for low, high in zip(times[::3], times[4::3], strict=False):
            begin, end = (Micros(low), Micros(high)) if timed else (low, high)
            for one in _records(self._operator.query(begin, end)):
                assert low <= one["range_start"] < one["range_end"] <= high, one
                key = [one[name] for name in self._query.keys]
                tuples = accepted[next(k for k in accepted if same_value(list(k), key))]
                content = [item for item in tuples if one["range_start"] <= item.time < one["range_end"]]
                assert one["range_count"] == len(content), (one, content)
                values = {name: aggregate_value(a, content) for name, a in computed(self._query)}
                assert same_value({name: one[name] for name in values}, values), (one, values)

    def _held(self) -> list[Any]:
        """The parts of the operator, which a look must not replace."""
        operator = self._operator
        buffer, engine = operator._buffer, operator._engine
        parts = [engine, engine.plan, engine.header, buffer, operator._connection, *buffer.records]
        return [*parts, *buffer.batches, *operator._connection.pending_results]

    def process(self, rows: Sequence[Record]) -> list[Row]:
        results = super().process(rows)
        self.oracle.process(rows)
        self.look()
        return results

    def advance(self, watermark: int) -> list[Row]:
        results = super().advance(watermark)
        self.oracle.advance(watermark)
        self.look()
        return results

    def finish(self) -> list[Row]:
        results = super().finish()
        self.oracle.finish()
        self.look()
        return results

    def add(self, name: str, window: Any, since: int | None) -> int:
        start = super().add(name, window, since)
        self.oracle.add(name, window, start)
        self.look()
        return start

    def remove(self, name: str) -> None:
        super().remove(name)
        self.oracle.remove(name)
        self.looks_at_slices = False  # slices may hold tuples that this window alone accepted
        self.look()

    def restored(self, data: bytes) -> EmbeddedEngine:
        self._operator = super().restored(data)._operator
        self.look()
        return self


def computed(query: Any) -> list[tuple[str, Any]]:
    """The aggregates that some window has; the others are null everywhere."""
    names = [name for name, _ in query.windows]
    return [(n, a) for n, a in query.aggregates if a.only is None or set(a.only) & set(names)]


def _records(rows: Rows) -> Iterator[dict[str, Any]]:
    """The rows with times as int, in microseconds where they are timestamps."""
    table = rows.to_arrow()
    for i, name in enumerate(table.column_names):
        if name.startswith(("window_", "slice_", "range_")) and pa.types.is_timestamp(
            table.schema.field(i).type
        ):
            column = table.column(i)
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
            table = table.set_column(i, name, column)
    yield from table.to_pylist()


def _open_rows(rows: Rows, query: Any) -> list[Row]:
    return [
        Row(
            keys=tuple(record[key] for key in query.keys),
            window_name=record["window_name"],
            start=record["window_start"],
            end=INF if record["window_end"] is None else record["window_end"],
            aggregates={name: record[name] for name, _ in query.aggregates},
            kind="open",
            revision=record["window_count"],
            low=_other(record, "start"),
            high=_other(record, "end"),
            ordinal=record.get("window_ordinal") or 0,
        )
        for record in _records(rows)
    ]


def _other(record: dict[str, Any], side: str) -> Any:
    begin = f"window_{side}_"
    return next((v for name, v in record.items() if name.startswith(begin) and v is not None), None)


def _check_slices(rows: Rows, oracle: InspectedOracle, query: Any) -> None:
    """Slices are disjoint, in order, and each has the aggregates over a run of the tuples of its key."""
    accepted = oracle.accepted()
    before: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in _records(rows):
        key = tuple(one[name] for name in query.keys)
        tuples = accepted[next(k for k in accepted if same_value(list(k), list(key)))]
        marked = tuple("nan" if part != part else part for part in key)
        last = before.get(marked)
        if last is not None:
            assert last["slice_first"] <= one["slice_first"], (last, one)
            if not oracle.too_late and not any(isinstance(each, TupleDriven) for _, each in query.windows):
                assert last["slice_last"] < last["slice_end"] <= one["slice_start"], (last, one)
        before[marked] = one
        if one["slice_start"] is not None:
            assert one["slice_start"] <= one["slice_first"], one
        assert (one["slice_end"] is None) == (one["slice_separator"] is None), one
        if one["slice_end"] is not None:
            tied = one["slice_separator"] == "flexible" and one["slice_end"] == one["slice_last"]
            assert one["slice_end"] > one["slice_last"] or tied, one
        if oracle.too_late:  # these may lie in slices between others, whose tuples are no run then
            between = [item for item in tuples if one["slice_first"] <= item.time <= one["slice_last"]]
            assert one["slice_count"] <= len(between), one
            continue
        runs = [
            tuples[i : i + one["slice_count"]]
            for i, item in enumerate(tuples)
            if item.time == one["slice_first"]
        ]
        runs = [run for run in runs if run[-1].time == one["slice_last"] and len(run) == one["slice_count"]]
        expected = [{name: aggregate_value(a, run) for name, a in computed(query)} for run in runs]
        values = {name: one[name] for name, _ in computed(query)}
        assert any(same_value(values, each) for each in expected), (one, expected)
