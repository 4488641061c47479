"""Result tables with plain columns for the edges of windows, and their newest rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.query import EDGE_PREFIX, WINDOW_NAME


class Columns(NamedTuple):
    """The columns of a flat table by what they hold; before keys and behind aggregates there are none."""

    keys: list[str]
    edges: list[str]
    aggregates: list[str]

    @classmethod
    def of(cls, schema: pa.Schema) -> Columns:
        """Those of a table with the struct `window`."""
        names, edges = schema.names, schema.field("window").type
        at = names.index(WINDOW_NAME)
        return cls(names[:at], [EDGE_PREFIX + name for name in _edges(edges)], names[at + 2 : -2])


def _edges(window: pa.DataType) -> list[str]:
    # Before the types of the input are known, the column `window` has the type null.
    return [field.name for field in window] if pa.types.is_struct(window) else ["start", "end"]


def flat(table: pa.Table) -> pa.Table:
    """The table with `window_start`, `window_end` and the other edges in place of the struct `window`.

    >>> edges = pa.array([{"start": 0, "end": 10}])
    >>> flat(pa.table({"window_name": ["ten"], "window": edges, "n": [2]})).to_pylist()
    [{'window_name': 'ten', 'window_start': 0, 'window_end': 10, 'n': 2}]
    """
    at = table.schema.names.index("window")
    window, columns, fields = table.column(at), list(table.columns), list(table.schema)
    names = _edges(window.type)
    is_struct = pa.types.is_struct(window.type)
    columns[at : at + 1] = window.flatten() if is_struct else [window] * len(names)
    fields[at : at + 1] = [pa.field(EDGE_PREFIX + name, columns[at + i].type) for i, name in enumerate(names)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def latest_rows(table: pa.Table) -> pa.Table:
    """The row of the highest revision of each key and window, without windows that were retracted.

    The rows stay in their order.
    """
    if not table.num_rows or pc.max(table["revision"]).as_py() == 0:
        return table  # every window was emitted once
    columns = Columns.of(table.schema)
    identity = [*columns.keys, WINDOW_NAME, *columns.edges]
    plain = flat(table).select([*identity, "revision"])
    numbered = pa.table([*(_groupable(plain[name]) for name in identity)], names=_numbers(identity))
    numbered = numbered.append_column("revision", plain["revision"])
    numbered = numbered.append_column("row", pa.array(np.arange(table.num_rows)))
    by_revision = numbered.sort_by([("revision", "ascending"), ("row", "ascending")])
    groups = by_revision.group_by(_numbers(identity), use_threads=False)
    rows = table.take(groups.aggregate([("row", "last")])["row_last"].sort())
    return rows.filter(pc.not_equal(rows["kind"], "retract"))


def _numbers(names: list[str]) -> list[str]:
    """Names that no column of the user has."""
    return [str(i) for i in range(len(names))]


def _groupable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, or numbers of its values where Arrow cannot group by its type."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _groupable(pa.chunked_array([c.storage for c in column.chunks], kind.storage_type))
    if not pa.types.is_nested(kind):
        return column
    values: dict[str, int] = {}
    return pa.chunked_array([[values.setdefault(repr(value), len(values)) for value in column.to_pylist()]])
