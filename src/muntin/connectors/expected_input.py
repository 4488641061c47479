"""The columns and types of the input that an engine expects, as far as they are known."""

from __future__ import annotations

import pyarrow as pa

from muntin.connectors.embedded_snapshot import Connection
from muntin.connectors.files import Wanted
from muntin.connectors.tables import Expected
from muntin.slicing.binding import columns_read, kind_of_time
from muntin.slicing.operator import SlicingOperator


def bind_declared(engine: SlicingOperator, known: dict[str, pa.DataType]) -> None:
    """Fix the types of the input if the user's schema names all columns that the query reads."""
    columns = columns_read(engine.spec, (window for _, window in engine.spec.windows)) if known else None
    if columns is not None and columns <= known.keys():
        engine.bind(pa.schema(known))


def expected(engine: SlicingOperator, connection: Connection) -> Expected:
    """The columns of the next batch, as far as they are known."""
    time, windows = engine.spec.time, tuple(q.window for q in engine.served.all)
    kind = kind_of_time(engine.spec, windows, connection.lag)
    known = frozenset(connection.declared)
    if engine.binding is None:
        return Expected(
            time, kind, columns_read(engine.spec, windows), connection.declared, known, first=True
        )
    columns, unknown = engine.binding.columns(), engine.binding.unknown
    types = {f.name: f.type for f in engine.binding.schema if f.name in columns - unknown}
    return Expected(time, kind, columns, types, known.union(engine.binding.schema.names))


def wanted(engine: SlicingOperator, connection: Connection) -> Wanted:
    """The columns that a file must give, and their types."""
    spec, windows = engine.spec, (served.window for served in engine.served.all)
    routes = "route" in (spec.late, spec.bad)
    return Wanted(None if routes else columns_read(spec, windows), connection.declared)
