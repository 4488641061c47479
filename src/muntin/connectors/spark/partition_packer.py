"""The map side: each partition slices its tuples, or packs them where windows depend on them.

Slices are combined before the shuffle. So the number of rows that cross it does not grow with the tuples of
a key: a single hot key, or no key at all, still scales with the partitions of the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from muntin.connectors.spark.packed_rows import GROUP, Payload, pack_bad, pack_rows, pack_slices, pack_tuples
from muntin.connectors.spark.query_changes import read_change, read_changes
from muntin.connectors.spark.workers import OncePerWorker, exempt_modules, message_first
from muntin.errors import MuntinError
from muntin.query import EachBatch, QuerySpec
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.partition_slicer import PartitionSlicer, partition_plan
from muntin.timeline import NEG_INF

__all__ = ["AT", "PartitionPacker"]

AT = "__at"
"""The column with the clock of the micro-batch, which decides which tuples are from the future."""

TUPLES_AT_ONCE = 1 << 19
"""Tuples that are sliced at once; Spark's own batches of 10,000 are too small for it."""
BYTES_AT_ONCE = 1 << 29
"""Bytes of one batch or one row; a column of Arrow holds 2 GB of text."""


class _Plan(NamedTuple):
    """The query with the windows of all change files, bound to the input."""

    bound: BoundPlan
    changes: tuple[str, ...] | None


@dataclass(frozen=True)
class PartitionPacker(OncePerWorker):
    """The function that `mapInArrow` calls for each partition.

    `schema` is that of the input, with ARRIVAL at its end. Batches have AT if they are `timed`, then GROUP,
    and ARRIVAL only where results depend on the order of tuples.

    Each partition sends its newest time to all groups. So all groups see every micro-batch, have the same
    watermark, and know the newest time of the stream.

    `control` is the directory of changes, if there is one. Tuples are cut by the edges of every window
    that a change ever added: operators can combine slices that are too fine, but not cut coarse ones.

    The query is bound once in each worker process. To unpickle a binding takes as long (49 µs and 53 µs
    with one sum), and functions that Numba has compiled need not be pickled.
    """

    query: QuerySpec
    groups: tuple[int, ...]
    schema: pa.Schema
    control: str | None = None
    timed: bool = False
    _plans: dict[tuple[tuple[str, str], ...] | None, _Plan] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of PACKED."""
        with message_first():
            newest, payloads = self.pack(batches)
        payloads += [(group, None) for group in self.groups]
        while payloads:
            sizes = np.cumsum([len(payload or b"") for _, payload in payloads])
            some = max(1, int(np.searchsorted(sizes, BYTES_AT_ONCE, side="right")))
            yield pack_rows(newest, payloads[:some])
            payloads = payloads[some:]
        exempt_modules()

    def pack(self, batches: Iterable[pa.RecordBatch]) -> tuple[int | None, list[Payload]]:
        """The newest time of a partition, and its payloads."""
        plan = self._plan()
        slicer = PartitionSlicer(plan.bound, hidden=(GROUP, ARRIVAL))
        pack = self._slices if plan.bound.decisions.sends_slices else self._tuples
        payloads = list(pack(plan, slicer, self._input(slicer, _combined(batches))))
        if slicer.state.metrics.bad:
            payloads.append((self.groups[0], pack_bad(slicer.state.metrics.bad, slicer.bad_tuples)))
        newest = slicer.state.newest
        if newest == NEG_INF and payloads and isinstance(self.query.early, EachBatch):
            # Sent without a time to the other groups: bad tuples alone trigger early results, too.
            told = {group for group, _ in payloads}
            payloads += [(group, pack_bad(0, pa.table({}))) for group in self.groups if group not in told]
        return (None if newest == NEG_INF else newest), payloads

    def _plan(self) -> _Plan:
        changes = None if self.control is None else tuple(read_changes(self.control))
        if changes not in self._plans:
            query = replace(
                self.query, aggregates=tuple((n, a.everywhere()) for n, a in self.query.aggregates)
            )
            query = _with_changes(query, changes or (), self.schema)
            names = None if changes is None else tuple(name for name, _ in changes)
            self._plans.clear()
            self._plans[changes] = _Plan(partition_plan(query, self.schema), names)
        return self._plans[changes]

    def _input(self, slicer: PartitionSlicer, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with the names of the input, without AT, which sets the clock of the slicer."""
        names = [*self.schema.names[:-1], *([AT] if self.timed else []), GROUP, ARRIVAL]
        for batch in batches:
            batch = batch.rename_columns(names[: batch.num_columns])
            if self.timed:
                now = batch.column(AT)[0].as_py() / 1_000_000
                slicer.arrivals.clock = lambda now=now: now  # type: ignore[misc]  # mypy cannot infer it
                batch = batch.drop_columns([AT])
            yield batch

    def _slices(
        self, plan: _Plan, slicer: PartitionSlicer, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[Payload]:
        group_of = np.zeros(0, dtype=np.int64)
        for data in batches:
            ids, good = slicer.add(data)
            group_of = np.pad(group_of, (0, slicer.state.key_count - len(group_of)))
            group_of[ids] = good.column(GROUP).to_numpy()
        for group in np.unique(group_of) if len(slicer.state.slices) else ():
            yield int(group), pack_slices(slicer, np.flatnonzero(group_of == group), plan.changes)

    def _tuples(
        self, plan: _Plan, slicer: PartitionSlicer, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[Payload]:
        for data in batches:
            slicer.notice(data)
            group = data.column(GROUP).to_numpy()
            order = np.argsort(group, kind="stable")
            numbers, begins = np.unique(group[order], return_index=True)
            tuples = pa.Table.from_batches([data]).drop_columns([GROUP]).take(pa.array(order))
            ends = [*begins[1:], len(group)]
            for number, begin, end in zip(numbers, begins, ends, strict=True):
                yield int(number), pack_tuples(tuples.slice(begin, end - begin))


def _with_changes(query: QuerySpec, changes: Iterable[tuple[str, str]], schema: pa.Schema) -> QuerySpec:
    """The query with every window that was ever added, except those that the operators will refuse."""
    for name, text in changes:
        try:
            added = read_change(text, name).windows
        except MuntinError:
            continue
        for key, window in added.items():
            try:
                more = replace(query, windows=(*query.windows, (f"{name}/{key}", window)))
                Binding.of(more, {name: window}, schema)
            except MuntinError:
                continue
            query = more
    return query


def _combined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same tuples in fewer, larger batches, none of them empty."""
    some: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        some.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= TUPLES_AT_ONCE or size >= BYTES_AT_ONCE:
            yield from pa.Table.from_batches(some).combine_chunks().to_batches()
            some, rows, size = [], 0, 0
    if some:
        yield from pa.Table.from_batches(some).combine_chunks().to_batches()
