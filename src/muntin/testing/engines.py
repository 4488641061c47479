"""One interface to the oracle and to engines, for tests that drive both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from muntin.errors import QueryError
from muntin.testing.oracle import Oracle
from muntin.testing.rows import Row
from muntin.timeline import Micros

if TYPE_CHECKING:
    import pyarrow as pa

    from muntin.results import Results

__all__ = ["EmbeddedEngine", "Engine", "OracleEngine", "rows_of_table"]

Record = Mapping[str, Any]


class Engine(Protocol):
    """The operations of an engine that transcripts and property tests use. Times are int, as in `Row`."""

    def process(self, rows: Sequence[Record]) -> list[Row]:
        """Take rows that arrived; return early results."""

    def advance(self, watermark: int) -> list[Row]:
        """Raise the watermark and return the results that are complete."""

    def finish(self) -> list[Row]:
        """End the stream and return all remaining results."""

    def take_late(self) -> list[tuple[str, Record]]:
        """The (name of the window, row) pairs that were late since the last call."""

    def add(self, name: str, window: Any, since: int | None) -> int:
        """Start another window, or aggregate; returns the earliest start that its windows may have.

        For a window an engine decides that itself; the oracle takes the engine's decision as `since`.
        """

    def remove(self, name: str) -> None:
        """Stop a window, or an aggregate."""

    def snapshot(self) -> bytes:
        """The state as bytes."""

    def restored(self, data: bytes) -> Engine:
        """An engine that continues from a snapshot."""


class OracleEngine(Oracle):
    """The oracle behind the common interface."""

    def __init__(self, query: Any, schema: pa.Schema) -> None:
        super().__init__(query)
        self._unit = _unit_of_edges(query, schema)

    def _emit(self, before: int, early: bool) -> list[Row]:
        """Edges as the time column can hold them: starts rounded down, ends up."""
        rows, unit = super()._emit(before, early), self._unit
        return [row._replace(start=row.start // unit * unit, end=-(-row.end // unit) * unit) for row in rows]

    def take_late(self) -> list[tuple[str, Record]]:
        late, self.late = self.late, []
        return late

    def snapshot(self) -> bytes:
        return b""

    def restored(self, data: bytes) -> OracleEngine:
        return self  # it has every tuple


class EmbeddedEngine:
    """The embedded operator behind the common interface; rows go in as record batches of the schema.

    `options` are those of the operator, such as `store="fiba"`.
    """

    def __init__(self, query: Any, schema: pa.Schema, **options: Any) -> None:
        self._query = query
        self._schema = schema
        self._options = options
        self._operator = query.operator(**options)

    def process(self, rows: Sequence[Record]) -> list[Row]:
        import pyarrow as pa

        batch = pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=self._schema)
        return self._rows(self._operator.process(batch))

    def advance(self, watermark: int) -> list[Row]:
        import pyarrow as pa

        timed = pa.types.is_timestamp(self._schema.field(self._query.time).type)
        return self._rows(self._operator.advance(Micros(watermark) if timed else watermark))

    def finish(self) -> list[Row]:
        return self._rows(self._operator.finish())

    def take_late(self) -> list[tuple[str, Record]]:
        return [(row.pop("window_name"), row) for row in self._operator.take_late().to_pylist()]

    def add(self, name: str, window: Any, since: int | None) -> int:
        added = self._operator.add(**{name: window})
        kind = "aggregates" if hasattr(window, "lift") else "windows"
        self._query = replace(self._query, **{kind: (*getattr(self._query, kind), (name, window))})
        return int(added.since[name])

    def remove(self, name: str) -> None:
        self._operator.remove(name)
        for kind in ("windows", "aggregates"):
            remaining = tuple(item for item in getattr(self._query, kind) if item[0] != name)
            self._query = replace(self._query, **{kind: remaining})

    def snapshot(self) -> bytes:
        return bytes(self._operator.snapshot())

    def restored(self, data: bytes) -> EmbeddedEngine:
        engine = EmbeddedEngine(self._query, self._schema, **self._options)
        try:
            self._query.to_toml()
        except QueryError:  # it holds code, which is not in a snapshot
            engine._operator = type(self._operator).restore(data, self._query)
        else:
            engine._operator = type(self._operator).restore(data)
        return engine

    def _rows(self, results: Results) -> list[Row]:
        return rows_of_table(results.to_arrow(nested=True), self._query.keys)


def _unit_of_edges(query: Any, schema: pa.Schema) -> int:
    """Microseconds in the unit in which results carry edges; 1 for an integer time column."""
    kind = schema.field(query.time).type
    unit = {"s": 1_000_000, "ms": 1_000}.get(getattr(kind, "unit", ""), 1)
    lengths = [length for _, window in query.windows if window.measure is None for length in window.spans()]
    return 1 if any(length % unit for length in lengths) else unit


def rows_of_table(table: pa.Table, keys: Sequence[str]) -> list[Row]:
    """The rows of a table with the struct `window`, window edges as int (timestamps in microseconds)."""
    windows = _windows(table)
    names = [
        name
        for name in table.column_names
        if name not in (*keys, "window_name", "window", "kind", "revision")
    ]
    return [
        Row(
            keys=tuple(record[key] for key in keys),
            window_name=record["window_name"],
            start=window["start"],
            end=window["end"],
            aggregates={name: record[name] for name in names},
            kind=record["kind"],
            revision=record["revision"],
            low=_other(window, "start"),
            high=_other(window, "end"),
            ordinal=window.get("ordinal") or 0,
        )
        for record, window in zip(table.drop_columns(["window"]).to_pylist(), windows, strict=True)
    ]


def _windows(table: pa.Table) -> list[dict[str, Any]]:
    import pyarrow as pa

    flat = pa.table({"window": table["window"]}).flatten()
    columns = {}
    for name in flat.column_names:
        column = flat[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns[name.removeprefix("window.")] = column.to_pylist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _other(window: Mapping[str, Any], side: str) -> Any:
    """The edge in ranks or on another measure: `start_rank`, `end_km`; None where a row has none."""
    edges = [value for name, value in window.items() if name.startswith(f"{side}_") and value is not None]
    return edges[0] if edges else None
