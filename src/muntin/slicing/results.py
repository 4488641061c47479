"""Emitted windows as an Arrow table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.binding import ORDINAL, Binding
from muntin.slicing.emission import Emission
from muntin.slicing.keys import KeyTable
from muntin.slicing.live import LiveQuery
from muntin.slicing.registry import FINAL_ROW, KINDS, RETRACT_ROW
from muntin.windows.base import Window

Column = npt.NDArray[np.int64]


class Results:
    """Makes result tables for a set of queries over input of known types."""

    def __init__(self, binding: Binding, queries: tuple[LiveQuery, ...]) -> None:
        self.binding = binding
        self.windows = tuple(q.window for q in queries)
        self.names = pa.array([q.name for q in queries])
        self.schema = binding.result_schema(self.windows)
        self.edge_fields = list(self.schema.field("window").type)
        self.empty = self.schema.empty_table()
        self._final = pa.array([], pa.string())

    def table(self, emissions: list[Emission], keys: KeyTable) -> pa.Table:
        """One row per emitted window: retractions first, then by end, start, query and key."""
        return _table(self, emissions, keys) if emissions else self.empty

    def kinds(self, kind: Column) -> pa.Array:
        """The kinds of rows in words; most often all of them are final."""
        if kind.any():
            return KINDS.take(pa.array(kind))
        if len(self._final) < len(kind):
            self._final = pa.repeat(KINDS[FINAL_ROW], 2 * len(kind))
        return self._final.slice(0, len(kind))


def _table(shape: Results, emissions: list[Emission], keys: KeyTable) -> pa.Table:
    schema = shape.schema
    number, key, start, end, kind, revision = _joined(emissions)
    order = None
    if len(emissions) > 1 or not emissions[0].ordered:
        from muntin.slicing.sorting_kernels import sort_windows

        order = sort_windows(end, start, number, key)
        retracted = kind[order] == RETRACT_ROW
        if retracted.any():
            order = np.concatenate([order[retracted], order[~retracted]])
        number, key, start, end, kind, revision = (
            c[order] for c in (number, key, start, end, kind, revision)
        )
    columns = keys.values(key)
    columns.append(shape.names.take(pa.array(number)))
    columns.append(_edges(shape, emissions, start, end, order))
    for i in range(len(shape.binding.spec.aggregates)):
        columns.append(_in_order([e.values[i] for e in emissions], schema.field(len(columns)).type, order))
    columns.append(shape.kinds(kind))
    columns.append(pa.array(revision, pa.int64()))
    return pa.Table.from_arrays(columns, schema=schema)


def _joined(emissions: list[Emission]) -> list[Column]:
    parts = [
        (e.windows.query, e.windows.key, e.windows.start, e.windows.end, e.kind, e.revision)
        for e in emissions
    ]
    return (
        list(parts[0])
        if len(parts) == 1
        else [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    )


def _in_order(parts: list[pa.Array], kind: pa.DataType, order: Column | None) -> pa.Array:
    joined = parts[0] if len(parts) == 1 else pa.chunked_array(parts, type=kind).combine_chunks()
    return joined if order is None else joined.take(pa.array(order))


def _edges(
    shape: Results, emissions: list[Emission], start: Column, end: Column, order: Column | None
) -> pa.StructArray:
    time = shape.binding.time
    children = [time.to_edges(start, ceil=False), time.to_edges(end, ceil=True)]
    for field in shape.edge_fields[2:]:
        parts = [_beside_time(e, shape.windows, field) for e in emissions]
        children.append(_in_order(parts, field.type, order))
    return pa.StructArray.from_arrays(children, fields=shape.edge_fields)


def _beside_time(emission: Emission, windows: tuple[Window, ...], field: pa.Field) -> pa.Array:
    """An edge on a measure, or the number among windows with the same edges; null where there is none."""
    listing = emission.windows
    # Windows with edges on a measure, or with numbers, come from a single query.
    window = windows[listing.query[0]]
    values: Any = None
    if field.name == ORDINAL:
        values = listing.ordinal if window.repeats else None
    else:
        side, _, measure = field.name.partition("_")
        if (window.measure or "rank") == measure:
            values = listing.low if side == "start" else listing.high
    return pa.nulls(len(listing), field.type) if values is None else pa.array(values).cast(field.type)
