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
from muntin.slicing.registry import KINDS, RETRACT_ROW
from muntin.windows.base import Window


class Results:
    """Makes result tables for a set of queries over input of known types."""

    def __init__(self, binding: Binding, queries: tuple[LiveQuery, ...]) -> None:
        self.binding = binding
        self.windows = tuple(q.window for q in queries)
        self.names = pa.array([q.name for q in queries])
        self.schema = binding.result_schema(self.windows)
        self.empty = self.schema.empty_table()

    def table(self, emissions: list[Emission], keys: KeyTable) -> pa.Table:
        """One row per emitted window: retractions first, then by end, start, query and key."""
        return _table(self, emissions, keys) if emissions else self.empty


def _table(shape: Results, emissions: list[Emission], keys: KeyTable) -> pa.Table:
    binding, windows, schema = shape.binding, shape.windows, shape.schema
    number, key, start, end, kind, revision = (
        np.concatenate(parts)
        for parts in zip(
            *(
                (e.windows.query, e.windows.key, e.windows.start, e.windows.end, e.kind, e.revision)
                for e in emissions
            ),
            strict=True,
        )
    )
    order = np.lexsort((key, number, start, end, kind != RETRACT_ROW))
    columns = keys.values(key[order])
    columns.append(shape.names.take(pa.array(number[order])))
    columns.append(_edges(emissions, windows, binding, start, end, order))
    for i in range(len(binding.spec.aggregates)):
        values = pa.chunked_array([e.values[i] for e in emissions], type=schema.field(len(columns)).type)
        columns.append(values.combine_chunks().take(pa.array(order)))
    columns.append(KINDS.take(pa.array(kind[order])))
    columns.append(pa.array(revision[order], pa.int64()))
    return pa.table(columns, schema=schema)


def _edges(
    emissions: list[Emission],
    windows: tuple[Window, ...],
    binding: Binding,
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
) -> pa.StructArray:
    fields = binding.edge_fields(windows)
    children = [
        binding.time.to_edges(start[order], ceil=False),
        binding.time.to_edges(end[order], ceil=True),
    ]
    for field in fields[2:]:
        parts = [_beside_time(e, windows, field) for e in emissions]
        children.append(pa.chunked_array(parts, type=field.type).combine_chunks().take(pa.array(order)))
    return pa.StructArray.from_arrays(children, fields=fields)


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
