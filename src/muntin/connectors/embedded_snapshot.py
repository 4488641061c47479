"""The snapshot of an embedded operator: the state of its engine, and what the connector holds besides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from muntin.errors import QueryError
from muntin.query import QuerySpec
from muntin.query.files import load_state_query, to_toml
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshots.archive import pack, reading, unpack
from muntin.slicing.snapshots.checks import COUNT, check_schema, check_value, refuse_unless
from muntin.slicing.snapshots.snapshot import assemble, current_spec, describe, dismantle, query_of
from muntin.timeline import Micros

__all__ = ["Connection", "restore", "snapshot"]


@dataclass(slots=True)
class Connection:
    """What an embedded operator holds besides the state of its engine."""

    lag: int | None = None
    """How far the watermark stays behind the newest tuple; None where `advance` sets it."""
    declared: dict[str, pa.DataType] = field(default_factory=dict)
    """The types that the user's schema gives to columns."""
    pending_results: list[pa.Table] = field(default_factory=list)
    """Results that an error prevented from being returned; the next call returns them."""


def snapshot(engine: SlicingOperator, connection: Connection) -> bytes:
    """The engine and its connection as bytes, with the query as TOML where it has such a form."""
    try:
        text = to_toml(current_spec(engine))
    except QueryError:
        text = None
    header, tables = dismantle(engine)
    lag = connection.lag
    header |= describe(engine, text)
    header["connection"] = {"lag": lag, "lag_is_time": isinstance(lag, Micros)}
    tables["declared"] = pa.schema(connection.declared).empty_table()
    pending = [results for results in connection.pending_results if results.num_rows]
    return pack(header, tables | {f"pending_results/{i}": results for i, results in enumerate(pending)})


def restore(data: bytes, query: QuerySpec | None) -> tuple[SlicingOperator, Connection]:
    """What `snapshot` was given. A query with Python functions is not in the bytes, and must be given."""
    header, tables = unpack(data)
    with reading():
        spec = query_of(header, lambda text: load_state_query(text, "snapshot"), query)
        connection = _connection(header, tables)
        engine = assemble(header, tables, spec, follows_data=connection.lag is not None)
        for results in connection.pending_results:
            if engine.plan is None:
                refuse_unless(False, "there are results before any tuple")
            else:
                check_schema("pending_results", results, engine.plan.results.schema)
    return engine, connection


def _connection(header: dict[str, Any], tables: dict[str, pa.Table]) -> Connection:
    known = header["connection"]
    check_value("connection", known, dict)
    lag, is_time = known["lag"], known["lag_is_time"]
    check_value("lag_is_time", is_time, bool)
    if lag is not None:
        check_value("lag", lag, COUNT)
        lag = Micros(lag) if is_time else lag
    declared = {column.name: column.type for column in tables["declared"].schema}
    pending = [table for path, table in tables.items() if path.startswith("pending_results/")]
    return Connection(lag, declared, pending)
