"""Emitted windows as an Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import call
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.binding import ORDINAL, Binding
from muntin.slicing.emission import Emission
from muntin.slicing.keys import KeyTable
from muntin.slicing.live import LiveQuery
from muntin.slicing.registry import FINAL_ROW, KINDS, RETRACT_ROW
from muntin.slicing.sorting_kernels import merge_windows, sort_windows
from muntin.windows.base import Window

Column = npt.NDArray[np.int64]

Each = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]

FEW = 8
"""So many sorted runs are quicker merged than sorted again."""
FEW_ROWS = 64
"""So many names are kept as they were made: the same queries come out together again and again."""
_KEPT = 256


class Results:
    """Makes result tables for a set of queries over input of known types."""

    def __init__(self, binding: Binding, queries: tuple[LiveQuery, ...]) -> None:
        self.binding = binding
        self.windows = tuple(q.window for q in queries)
        self._names = pa.array([q.name for q in queries], pa.string())
        self.schema = binding.result_schema(self.windows)
        self.edge_fields = list(self.schema.field("window").type)
        self.empty = self.schema.empty_table()
        self._final = pa.array([], pa.string())
        self._first = pa.array([], pa.int64())
        self._made: dict[bytes, pa.Array] = {}

    def table(self, emissions: list[Emission], keys: KeyTable, each: Each = map) -> pa.Table:
        """One row per emitted window: retractions first, then by end, start, query and key.

        `each` makes the columns; they do not depend on each other.
        """
        return _table(self, emissions, keys, each) if emissions else self.empty

    def names(self, number: Column) -> pa.Array:
        """The names of these queries."""
        if len(number) > FEW_ROWS:
            return self._names.take(pa.array(number))
        alike = number.tobytes()
        if alike not in self._made:
            if len(self._made) >= _KEPT:
                self._made.clear()
            self._made[alike] = self._names.take(pa.array(number))
        return self._made[alike]

    def kinds(self, kind: Column | None, n: int) -> pa.Array:
        """The kinds of n rows in words; most often all of them are final."""
        if kind is not None:
            return KINDS.take(pa.array(kind))
        if len(self._final) < n:
            self._final = pa.repeat(KINDS[FINAL_ROW], 2 * n)
        return self._final.slice(0, n)

    def revisions(self, revision: Column | None, n: int) -> pa.Array:
        """How often each of n rows was revised; most often none was."""
        if revision is not None:
            return pa.array(revision)
        if len(self._first) < n:
            self._first = pa.array(np.zeros(2 * n, dtype=np.int64))
        return self._first.slice(0, n)


def _table(shape: Results, emissions: list[Emission], keys: KeyTable, each: Each) -> pa.Table:
    windows = [e.windows for e in emissions]
    number, key, start, end = _joined([(w.query, w.key, w.start, w.end) for w in windows])
    kind, revision, order = None, None, None
    if len(emissions) > 1 or not emissions[0].ordered:
        if not all(e.ordered for e in emissions):  # else all of them are final, for the first time
            kind, revision = _joined([(e.kind, e.revision) for e in emissions])
        order = _order(emissions, end, start, number, key)
        if kind is not None:
            retracted = kind[order] == RETRACT_ROW
            if retracted.any():
                order = np.concatenate([order[retracted], order[~retracted]])
    n = len(number)
    makers: list[Callable[[], Any]] = [
        lambda: shape.names(_at(number, order)),
        lambda: _edges(shape, emissions, start, end, order),
        *(partial(_values, emissions, i, b.type, order) for i, b in enumerate(shape.binding.partials.bound)),
        lambda: shape.kinds(None if kind is None else _at(kind, order), n),
        lambda: shape.revisions(None if revision is None else _at(revision, order), n),
    ]
    if shape.binding.keys:
        makers.append(lambda: keys.values(_at(key, order)))
    columns = list(each(call, makers))
    if shape.binding.keys:
        columns[:0] = columns.pop()
    return pa.Table.from_arrays(columns, schema=shape.schema)


def _values(emissions: list[Emission], i: int, kind: pa.DataType, order: Column | None) -> pa.Array:
    return _in_order([e.values[i] for e in emissions], kind, order)


def _at(column: Column, order: Column | None) -> Column:
    return column if order is None else column[order]


def _order(emissions: list[Emission], end: Column, start: Column, query: Column, key: Column) -> Column:
    """The order of the windows by end, start, query and key."""
    if len(emissions) <= FEW and all(e.ordered for e in emissions):
        bounds = np.cumsum([0, *(len(e.windows) for e in emissions)])
        order = np.empty(bounds[-1], dtype=np.int64)
        merge_windows(bounds, end, start, query, key, order)
        return order
    return sort_windows(end, start, query, key)


def _joined(parts: list[tuple[Column, ...]]) -> list[Column]:
    """Column by column the rows of all parts."""
    if len(parts) == 1:
        return list(parts[0])
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def _in_order(parts: list[pa.Array], kind: pa.DataType, order: Column | None) -> pa.Array:
    joined = parts[0] if len(parts) == 1 else pa.chunked_array(parts, type=kind).combine_chunks()
    return joined if order is None else joined.take(pa.array(order))


def _edges(
    shape: Results, emissions: list[Emission], start: Column, end: Column, order: Column | None
) -> pa.StructArray:
    time = shape.binding.time
    children = [time.to_edges(_at(start, order), ceil=False), time.to_edges(_at(end, order), ceil=True)]
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
