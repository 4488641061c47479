"""Before the shuffle: each partition slices its tuples, or packs them where they must be kept.

Slices are combined here already, so that few rows cross the shuffle however many tuples a key has: a
single hot key, or no key at all, still scales with the partitions of the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.connectors.spark.changes import read_change
from muntin.connectors.spark.control import read_changes
from muntin.connectors.spark.payload import pack_bad, pack_slices, pack_tuples
from muntin.connectors.spark.workers import message_first
from muntin.errors import MuntinError
from muntin.query import QuerySpec
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.operator import SlicingOperator
from muntin.timeline import NEG_INF
from muntin.windows.tuple_driven import TupleDriven

__all__ = ["AT", "CHANGE", "CLOCK", "GROUP", "NEVER", "NEWEST", "PACKED", "PAYLOAD", "Packing", "can_slice"]

GROUP = "__group"
"""The column that says to which key group a tuple belongs."""
AT = "__at"
"""The column with the clock of the micro-batch, by which tuples from the future are found."""
NEWEST, PAYLOAD, CHANGE, CLOCK = "newest", "payload", "change", "clock"

PACKED = pa.schema(
    [
        pa.field(GROUP, pa.int32()),
        pa.field(NEWEST, pa.int64()),
        pa.field(PAYLOAD, pa.binary()),
        pa.field(CHANGE, pa.string()),
        pa.field(CLOCK, pa.int64()),
    ]
)
"""What crosses the shuffle: payloads, newest times of partitions, changes to the queries, the time of day."""

NEVER = NEG_INF
"""Where there is no newest time, or no time of day. Not null: pandas would make floats of such a column."""

TOGETHER = 1 << 19
"""Tuples that are sliced at once: Spark's own batches are too small for it."""
BYTES = 1 << 29
"""So many bytes are as much as goes into one batch or one row; a column of Arrow holds 2 GB of text."""

Ints = npt.NDArray[np.int64]


def can_slice(query: QuerySpec) -> bool:
    """Whether no window needs tuples, or their order, behind the shuffle."""
    driven = any(isinstance(window, TupleDriven) for _, window in query.windows)
    empty = any(getattr(window, "emit_empty", False) for _, window in query.windows)
    return not driven and not empty and query.late == "drop"


@dataclass(frozen=True, slots=True)
class Packing:
    """What `mapInArrow` runs for each partition; it goes to the workers as it is.

    `schema` is that of the input, with ARRIVAL at its end. Batches have AT if they are `timed`, then GROUP,
    and ARRIVAL only where the order of tuples counts.

    Every partition tells every group its newest time, be it without a payload: so all groups see
    every micro-batch, hold the same watermark, and know how far the stream has come.

    `control` is the directory of changes, if there is one. Tuples are cut by the edges of every window
    that was ever asked for there: finer slices than the operators need do no harm, coarser ones would.
    """

    query: QuerySpec
    groups: tuple[int, ...]
    schema: pa.Schema
    control: str | None = None
    timed: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of (group, newest time, payload)."""
        with message_first():
            newest, rows = self.packed(batches)
        rows += [(group, None) for group in self.groups]
        while rows:
            sizes = np.cumsum([len(payload or b"") for _, payload in rows])
            some = max(1, int(np.searchsorted(sizes, BYTES, side="right")))
            yield _as_batch(newest, rows[:some])
            rows = rows[some:]

    def packed(self, batches: Iterable[pa.RecordBatch]) -> tuple[int | None, list[tuple[int, bytes | None]]]:
        """The newest time of a partition, and its payloads with their groups."""
        query = replace(self.query, early=None)
        changes = None if self.control is None else read_changes(self.control)
        operator = SlicingOperator(_with_changes(query, changes or [], self.schema))
        operator.arrivals.hidden = (GROUP, ARRIVAL)
        names = [*self.schema.names[:-1], *([AT] if self.timed else []), GROUP, ARRIVAL]
        batches = (batch.rename_columns(names[: batch.num_columns]) for batch in batches)
        if self.timed:
            batches = _timed(operator, batches)
        rows: list[tuple[int, bytes | None]] = []
        if can_slice(operator.spec):
            known = None if changes is None else [name for name, _ in changes]
            rows += self._slices(operator, batches, known)
        else:
            rows += self._tuples(operator, batches)
        if operator.arrivals.bad:
            rows.append((self.groups[0], pack_bad(operator)))
        newest = NEVER if operator.binding is None else operator.slices.newest
        return (None if newest == NEVER else newest), rows

    def _slices(
        self, operator: SlicingOperator, batches: Iterable[pa.RecordBatch], changes: list[str] | None
    ) -> Iterator[tuple[int, bytes]]:
        group_of = np.zeros(0, dtype=np.int64)
        for data in _together(batches):
            batch, good = operator.take_in(data)
            if batch is None:
                continue
            missing = len(operator.keys) - len(group_of)
            group_of = np.concatenate([group_of, np.zeros(missing, dtype=np.int64)])
            group_of[batch.key] = good.column(GROUP).to_numpy()
        for group in np.unique(group_of):
            yield int(group), pack_slices(operator, np.flatnonzero(group_of == group), changes)

    def _tuples(
        self, operator: SlicingOperator, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[int, bytes]]:
        for data in _together(batches):
            operator.notice(data)
            group = data.column(GROUP).to_numpy()
            order = np.argsort(group, kind="stable")
            numbers, begins = np.unique(group[order], return_index=True)
            sorted_tuples = pa.Table.from_batches([data]).drop_columns([GROUP]).take(pa.array(order))
            ends = [*begins[1:], len(group)]
            for number, begin, end in zip(numbers, begins, ends, strict=True):
                yield int(number), pack_tuples(sorted_tuples.slice(begin, end - begin))


def _timed(operator: SlicingOperator, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches without the column AT, from which the operator's clock is set."""
    for batch in batches:
        if batch.num_rows:
            now = batch.column(AT)[0].as_py() / 1_000_000
            operator.arrivals.clock = lambda now=now: now  # type: ignore[misc]  # mypy cannot infer it
            yield batch.drop_columns([AT])


def _as_batch(newest: int | None, rows: list[tuple[int, bytes | None]]) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.array([group for group, _ in rows], pa.int32()),
            pa.array([NEVER if newest is None else newest] * len(rows), pa.int64()),
            pa.array([payload for _, payload in rows], pa.binary()),
            pa.nulls(len(rows), pa.string()),
            pa.array([NEVER] * len(rows), pa.int64()),
        ],
        schema=PACKED,
    )


def _with_changes(query: QuerySpec, changes: list[tuple[str, str]], schema: pa.Schema) -> QuerySpec:
    """The query with every window that was ever added; what the operators will refuse is left out."""
    for name, text in changes:
        try:
            added = read_change(text, name).add
        except MuntinError:
            continue
        for key, window in added.items():
            try:
                more = replace(query, windows=(*query.windows, (f"{name}/{key}", window)))
                Binding.of(more, (window,), schema)
            except MuntinError:
                continue
            query = more
    return query


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same tuples in fewer, larger batches."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= TOGETHER or size >= BYTES:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows, size = [], 0, 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
