"""Emitted windows as an Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from operator import call
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.binding import ORDINAL, Binding
from muntin.slicing.filling import Emission
from muntin.slicing.keys import KeyTable
from muntin.slicing.live import LiveQuery
from muntin.slicing.registry import FINAL_ROW, KINDS, RETRACT_ROW
from muntin.slicing.result_order import AS_IT_IS, Order
from muntin.slicing.sorting_kernels import merge_windows, sort_windows
from muntin.windows.base import Window

Column = npt.NDArray[np.int64]

Each = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]

FEW = 8
"""So many sorted runs are quicker merged than sorted again."""
MANY_ROWS = 65_536
"""So many are worth looking for ranges of rows that stay together."""
FEW_ROWS = 64
"""So many names are kept as they were made: the same queries come out together again and again."""
_MOST_BYTES = 2**31 - 1
"""Of the texts of one column."""
_KEPT = 256
"""Names that are kept, and numbers of rows whose kinds and revisions are."""


class Results:
    """Makes result tables for a set of queries over input of known types."""

    def __init__(self, binding: Binding, queries: tuple[LiveQuery, ...]) -> None:
        self.binding = binding
        self.windows = tuple(q.window for q in queries)
        self._names = pa.array([q.name for q in queries], pa.string())
        self.schema = binding.result_schema(self.windows)
        self.edge_fields = list(self.schema.field("window").type)
        self.empty = self.schema.empty_table()
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
        return _final(n) if kind is None else KINDS.take(pa.array(kind))

    def revisions(self, revision: Column | None, n: int) -> pa.Array:
        """How often each of n rows was revised; most often none was."""
        return _never(n) if revision is None else pa.array(revision)


def _kept_if_few(make: Callable[[int], pa.Array]) -> Callable[[int], pa.Array]:
    """The same array again for as many rows, if these are few."""
    again = lru_cache(_KEPT)(make)
    return lambda n: again(n) if n <= _KEPT else make(n)


@_kept_if_few
def _final(n: int) -> pa.Array:
    word = KINDS[FINAL_ROW].as_py().encode()
    if n * len(word) > _MOST_BYTES:
        return pa.repeat(KINDS[FINAL_ROW], n)
    # Some six times as fast, which tells where there are millions of rows.
    offsets = np.arange(0, n * len(word) + 1, len(word), dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(word * n)])


@_kept_if_few
def _never(n: int) -> pa.Array:
    return pa.array(np.zeros(n, dtype=np.int64))


def _table(shape: Results, emissions: list[Emission], keys: KeyTable, each: Each) -> pa.Table:
    windows = [e.windows for e in emissions]
    rows = sum(map(len, windows))
    final = all(e.ordered for e in emissions)  # for the first time, all of them
    order = _order(emissions, final)
    makers: list[Callable[[], Any]] = [
        lambda: shape.names(order.of([w.query for w in windows])),
        lambda: _edges(shape, emissions, order),
        *[partial(_values, emissions, i, b.type, order) for i, b in enumerate(shape.binding.partials.bound)],
        lambda: shape.kinds(None if final else order.of([e.kind for e in emissions]), rows),
        lambda: shape.revisions(None if final else order.of([e.revision for e in emissions]), rows),
    ]
    if shape.binding.keys:
        makers.append(lambda: keys.values(order.of([w.key for w in windows])))
    columns = list(each(call, makers))
    if shape.binding.keys:
        columns[:0] = columns.pop()
    return pa.Table.from_arrays(columns, schema=shape.schema)


def _order(emissions: list[Emission], final: bool) -> Order:
    """How the rows of all become one table: retractions first, then by end, start, query and key."""
    if len(emissions) == 1 and final:
        return AS_IT_IS
    if final and sum(len(e.windows) for e in emissions) >= MANY_ROWS:
        found = Order.in_turn([(e.windows.end, e.windows.start, e.windows.query) for e in emissions])
        if found is not None:
            return found
    columns = [(e.windows.end, e.windows.start, e.windows.query, e.windows.key) for e in emissions]
    end, start, query, key = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    if final and len(emissions) <= FEW:
        order = np.empty(len(end), dtype=np.int64)
        merge_windows(np.cumsum([0, *(len(e.windows) for e in emissions)]), end, start, query, key, order)
        return Order(order)
    order = sort_windows(end, start, query, key)
    if not final:
        retracted = np.concatenate([e.kind for e in emissions])[order] == RETRACT_ROW
        if retracted.any():
            order = np.concatenate([order[retracted], order[~retracted]])
    return Order(order)


def _values(emissions: list[Emission], i: int, kind: pa.DataType, order: Order) -> pa.Array:
    return order.of_arrays([e.values[i] for e in emissions], kind)


def _edges(shape: Results, emissions: list[Emission], order: Order) -> pa.StructArray:
    time = shape.binding.time
    start = order.of([e.windows.start for e in emissions])
    end = order.of([e.windows.end for e in emissions])
    children = [time.to_edges(start, ceil=False), time.to_edges(end, ceil=True)]
    for field in shape.edge_fields[2:]:
        parts = [_beside_time(e, shape.windows, field) for e in emissions]
        children.append(order.of_arrays(parts, field.type))
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
