"""Emitted windows as an Arrow table."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.memory import fresh
from muntin.query import EDGE_PREFIX, ORDINAL
from muntin.slicing.binding import Binding
from muntin.slicing.emission.emissions import Emission
from muntin.slicing.emission.emitted_windows import FINAL_ROW, KINDS, RETRACT_ROW
from muntin.slicing.emission.naming_kernels import runs_of, spell, spell_each
from muntin.slicing.emission.result_messages import MOST_ROWS, ResultMessages
from muntin.slicing.emission.result_order import AS_IT_IS, ByIndex, InTurn, Order
from muntin.slicing.keys import KeyTable
from muntin.slicing.parallel.threads import Threads
from muntin.slicing.served import ServedWindow
from muntin.slicing.shown_aggregates import ShownAggregates
from muntin.slicing.sorting_kernels import merge_windows, sort_windows
from muntin.windows.base import Window

Column = npt.NDArray[np.int64]

MOST_MERGED = 8
"""Up to this many sorted emissions, merging is faster than sorting."""
LEAST_FOR_RUNS = 65_536
"""The least rows for which runs of equal names are searched for."""
MOST_SPELLED = 1_024
"""The most rows whose names are spelled one by one: 2 to 16 us, where Arrow's `take` needs 9 to 19."""
_MOST_BYTES = 2**31 - 1
"""The most bytes of texts in one Arrow column with 32-bit offsets."""
_LEAST_RUN = 8
"""The least average length of runs of equal names for copying them run by run."""
_CACHE_SIZE = 256
"""The most rows of cached kinds and revisions."""


class ResultShape:
    """Makes result tables for a set of windows over input of known types."""

    def __init__(self, binding: Binding, served: tuple[ServedWindow, ...], shown: ShownAggregates) -> None:
        self.binding, self.shown = binding, shown
        self.windows = tuple(q.window for q in served)
        self.schema = binding.result_schema(self.windows)
        self.edge_type = self.schema.field("window").type
        self.edge_fields = list(self.edge_type)
        self.empty = pa.Table.from_batches([], self.schema)  # accepts lists of UUIDs
        self._texts = _Texts.of([q.name for q in served])

    def table(self, emissions: list[Emission], keys: KeyTable, threads: Threads | None = None) -> pa.Table:
        """One row per emitted window: retractions first, then by end, start, window and key.

        Each of several threads makes a chunk.
        """
        return _table(self, emissions, keys, threads) if emissions else self.empty

    @property
    def most_certain(self) -> int:
        """The most rows for which `first_rows` never fails."""
        return self._texts.most_spelled if self.binding.time.edges_always_fit else 0

    def in_one_message(self, windows: Column, keys: list[pa.Array], flat: bool) -> pa.Table | None:
        """As `first_rows`, or with plain columns for the edges (`flat`), of windows with their partials.

        A third of the time. None where a value must be null, or is not lowered in compiled code.
        """
        messages = self._messages
        if messages is None or not 0 < windows.shape[1] <= MOST_ROWS:
            return None
        return messages[flat].table(windows, keys, self._texts.begins, self._texts.bytes)

    @cached_property
    def _messages(self) -> tuple[ResultMessages, ResultMessages] | None:
        """With the struct of edges, and with plain columns for them."""
        codes, unit = self.binding.partials.value_codes(), self.binding.time.edge_unit
        if (
            not self.shown.everywhere
            or codes is None
            or unit is None
            or len(self.edge_fields) > len(("start", "end"))
        ):
            return None
        fields, at = list(self.schema), len(self.binding.keys) + 1
        edges = [pa.field(EDGE_PREFIX + field.name, field.type) for field in self.edge_fields]
        flat = pa.schema([*fields[:at], *edges, *fields[at + 1 :]])
        longest, keys = int(np.diff(self._texts.begins).max()), len(self.binding.keys)
        nested = ResultMessages(self.schema, keys, codes, longest, unit)
        return nested, ResultMessages(flat, keys, codes, longest, unit)

    def first_rows(self, windows: Column, values: list[pa.Array], keys: list[pa.Array]) -> pa.Table:
        """Rows of periodic windows that are emitted for the first time, in order.

        The columns of `windows` are start, end, and the number of the window.
        """
        rows, time = windows.shape[1], self.binding.time
        edges = [time.to_edges(windows[0], ceil=False), time.to_edges(windows[1], ceil=True)]
        edges += [pa.nulls(rows, field.type) for field in self.edge_fields[2:]]
        columns = [
            *keys,
            self._texts.at(windows[2]),
            pa.StructArray.from_buffers(self.edge_type, rows, [None], 0, children=edges),
            *values,
            _all_final(rows),
            _no_revisions(rows),
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def names(self, sources: list[Column], order: Order) -> pa.Array:
        """The names of the windows with these numbers, in this order."""
        known = order.edge_runs(sources)
        if known is not None:
            return _repeated(self._texts, *known)
        number = order.of(sources)
        if len(number) >= LEAST_FOR_RUNS:
            values, times = np.empty((2, len(number) // _LEAST_RUN), dtype=np.int64)
            runs = runs_of(number, values, times)
            if runs >= 0:
                return _repeated(self._texts, values[:runs], times[:runs])
        return self._texts.at(number)


class _Texts(NamedTuple):
    """Texts, their offsets with the end of the last, and their bytes."""

    words: pa.Array
    begins: Column
    bytes: npt.NDArray[np.uint8]
    most_spelled: int
    """The most rows that are spelled one by one."""

    @classmethod
    def of(cls, texts: list[str]) -> _Texts:
        words = [text.encode() for text in texts]
        begins, joined = np.cumsum([0, *map(len, words)]), np.frombuffer(b"".join(words), dtype=np.uint8)
        most = min(MOST_SPELLED, _MOST_BYTES // max(1, *map(len, words)))
        return cls(pa.array(texts, pa.string()), begins, joined, most)

    def at(self, number: Column) -> pa.Array:
        """The texts with these numbers."""
        if len(number) > self.most_spelled:
            return self.words.take(pa.array(number))  # raises an error where they have too many bytes
        return _strings(*spell_each(number, self.begins, self.bytes))


def _repeated(texts: _Texts, number: Column, sizes: Column) -> pa.Array:
    """Each text repeated by its size, in a fraction of the time that Arrow takes."""
    rows, size = int(sizes.sum()), int((np.diff(texts.begins)[number] * sizes).sum())
    if size > _MOST_BYTES:
        return texts.words.take(pa.array(np.repeat(number, sizes)))  # may raise an error of Arrow
    offsets, out = fresh(rows + 1, np.int32), fresh(size, np.uint8)
    spell(number, sizes, texts.begins, texts.bytes, offsets, out)
    return _strings(offsets, out)


def _strings(offsets: npt.NDArray[np.int32], out: npt.NDArray[np.uint8]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers, 0)


def _cached_if_short(make: Callable[[int], pa.Array]) -> Callable[[int], pa.Array]:
    """Cache the arrays of up to `_CACHE_SIZE` rows."""
    cached = lru_cache(_CACHE_SIZE)(make)
    return lambda n: cached(n) if n <= _CACHE_SIZE else make(n)


_FINAL = _Texts.of([KINDS[FINAL_ROW].as_py()])


@_cached_if_short
def _all_final(n: int) -> pa.Array:
    return _repeated(_FINAL, np.zeros(1, dtype=np.int64), np.array([n]))


@_cached_if_short
def _no_revisions(n: int) -> pa.Array:
    return pa.array(np.zeros(n, dtype=np.int64))


def _table(
    shape: ResultShape, emissions: list[Emission], keys: KeyTable, threads: Threads | None
) -> pa.Table:
    final = all(e.is_first for e in emissions)
    order = _order(emissions, final)
    rows = sum(len(e.windows.key) for e in emissions)
    other_edges = [_other_edges(emissions, shape.windows, field) for field in shape.edge_fields[2:]]
    if threads is None:
        return _chunk(shape, emissions, other_edges, keys, order, final, rows)

    def chunk(begin: int, end: int) -> pa.Table:
        return _chunk(shape, emissions, other_edges, keys, order.cut(begin, end), final, end - begin)

    bounds = [rows * i // threads.number for i in range(threads.number + 1)]
    return pa.concat_tables(threads.map(chunk, bounds[:-1], bounds[1:]))


def _chunk(
    shape: ResultShape,
    emissions: list[Emission],
    other_edges: list[list[pa.Array]],
    keys: KeyTable,
    order: Order,
    final: bool,
    rows: int,
) -> pa.Table:
    """A range of rows of the table, or all."""
    columns = [
        shape.names([e.windows.number for e in emissions], order),
        _edges(shape, emissions, other_edges, order),
        *[
            order.of_arrays([e.values[i] for e in emissions], b.type)
            for i, b in enumerate(shape.binding.results)
        ],
        _all_final(rows) if final else KINDS.take(pa.array(order.of([e.kinds for e in emissions]))),
        _no_revisions(rows) if final else pa.array(order.of([e.revisions for e in emissions])),
    ]
    if shape.binding.keys:
        columns[:0] = keys.values(order.of([e.windows.key for e in emissions]))
    return pa.Table.from_arrays(columns, schema=shape.schema)


def _order(emissions: list[Emission], final: bool) -> Order:
    """The order of the rows of all emissions: retractions first, then by end, start, window and key."""
    if len(emissions) == 1 and final:
        return AS_IT_IS
    runs = [e.runs for e in emissions if e.runs is not None] if final else []
    if len(runs) == len(emissions):
        return InTurn.of_sorted(runs)
    columns = [(e.windows.end, e.windows.start, e.windows.number, e.windows.key) for e in emissions]
    end, start, number, key = (np.concatenate(sources) for sources in zip(*columns, strict=True))
    if final and len(emissions) <= MOST_MERGED:
        order = np.empty(len(end), dtype=np.int64)
        merge_windows(np.cumsum([0, *(len(e.windows) for e in emissions)]), end, start, number, key, order)
        return ByIndex(order)
    order = sort_windows(end, start, number, key)
    if not final:
        retracted = np.concatenate([e.kinds for e in emissions])[order] == RETRACT_ROW
        if retracted.any():
            order = np.concatenate([order[retracted], order[~retracted]])
    return ByIndex(order)


def _edges(
    shape: ResultShape, emissions: list[Emission], other_edges: list[list[pa.Array]], order: Order
) -> pa.StructArray:
    time, fields = shape.binding.time, shape.edge_fields
    start = order.of_edges([e.windows.start for e in emissions])
    end = order.of_edges([e.windows.end for e in emissions])
    children = [time.to_edges(start, ceil=False), time.to_edges(end, ceil=True)]
    for sources, field in zip(other_edges, fields[2:], strict=True):
        children.append(order.of_arrays(sources, field.type))
    return pa.StructArray.from_arrays(children, fields=fields)


def _other_edges(emissions: list[Emission], windows: tuple[Window, ...], field: pa.Field) -> list[pa.Array]:
    """An edge on a measure, or the number among windows with the same edges; null where there is none."""
    side, _, measure = field.name.partition("_")
    columns = []
    for listing in [e.windows for e in emissions]:
        # Emissions of windows with edges on a measure, or with ordinals, have a single window.
        window = windows[listing.number[0]]
        values: Any = None
        if field.name == ORDINAL:
            values = listing.ordinal if window.repeats else None
        elif (window.measure or "rank") == measure:
            values = listing.low if side == "start" else listing.high
        absent = values is None
        columns.append(pa.nulls(len(listing), field.type) if absent else pa.array(values).cast(field.type))
    return columns
