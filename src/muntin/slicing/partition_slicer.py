"""The slices of one partition of a stream; an operator combines those of all partitions.

A partition has no watermark: it decides neither which tuples are late nor which windows are complete. So it
needs edges, session gaps and partial aggregates, but no plan, no window manager and no results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.query import QuerySpec
from muntin.slicing.arrivals import Arrivals
from muntin.slicing.batch import Batch
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.edges import EdgeSet
from muntin.slicing.failing_tuples import without_failing
from muntin.slicing.keys import KeyTable
from muntin.slicing.live import LiveQuery, LiveSet
from muntin.slicing.routed import one_table
from muntin.slicing.slicer import slice_batch
from muntin.slicing.table import SliceTable, merge
from muntin.timeline import NEG_INF

__all__ = ["PartitionQuery", "PartitionSlicer"]

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PartitionQuery:
    """A query bound to the types of its input: the part of it that all partitions share."""

    binding: Binding
    edges: EdgeSet
    gap: int
    """The smallest session gap, -1 without sessions."""
    empty: SliceTable

    @classmethod
    def of(cls, query: QuerySpec, schema: pa.Schema) -> PartitionQuery:
        """Bind the query to these columns; an error where it does not fit them."""
        from muntin.compiling_kernels import announce_compiling

        announce_compiling()
        binding = Binding.of(query, tuple(window for _, window in query.windows), schema)
        live = LiveSet(tuple(LiveQuery(name, window) for name, window in query.windows))
        return cls(binding, live.edges, live.gap, SliceTable.empty(binding.partials))


class PartitionSlicer:
    """Separates bad tuples, numbers keys and combines tuples into slices, batch by batch.

    `table` has the slices so far, by the numbers of their keys in `keys`. `hidden` are columns of the
    connector, which no message and no bad tuple shows.
    """

    def __init__(self, query: PartitionQuery, hidden: tuple[str, ...] = (ARRIVAL,)) -> None:
        binding = query.binding
        self.query = query
        self.binding = binding
        self.table = query.empty
        self.keys = KeyTable(binding.keys)
        self.newest = NEG_INF
        self.arrivals = Arrivals(binding.spec.bad)
        self.arrivals.hidden = hidden
        self.arrivals.set_max_ahead(binding.spec, False, binding.time)
        self._seq = 0

    def add(self, data: pa.RecordBatch) -> tuple[Ids, pa.RecordBatch]:
        """Slice the good tuples of a batch; returns the numbers of their keys, and the tuples.

        A column ARRIVAL orders tuples of one time; without it, their order in the input does.
        """
        binding = self._binding_for(data.schema)
        data, times = self.arrivals.good(data, binding)
        if data.num_rows:
            data, times, values = without_failing(binding, self.arrivals, data, times)
        if not data.num_rows:
            return np.zeros(0, dtype=np.int64), data
        names = binding.spec.keys
        ids = self.keys.encode([data.column(name) for name in names]) if names else None
        ordered = data.schema.get_field_index(ARRIVAL) >= 0
        arrival = data.column(ARRIVAL).to_numpy() if ordered else self._seq
        batch = Batch(ids, times[0], arrival, values, known=times[1], among=len(self.keys))
        self._merge(batch)
        self._seq += len(batch)
        return batch.key, data

    def _binding_for(self, schema: pa.Schema) -> Binding:
        """The binding, which reads columns by position where it knows the schema of the batches."""
        if not self.binding.schema.equals(schema):
            self.binding = replace(self.binding, schema=schema)
        return self.binding

    def _merge(self, batch: Batch) -> None:
        query, table, partials = self.query, self.table, self.binding.partials
        low, high, *_ = batch.extent
        self.newest = max(self.newest, high)
        edges = query.edges.around(low, high, batch.time, table.first, table.last)
        rows = slice_batch(batch, edges, query.gap, partials)
        if not len(table) and query.gap < 0:
            self.table = rows  # each row is between two edges, and there is no gap that could close
        else:
            self.table, _ = merge(table, rows, edges, query.gap, partials)

    def notice(self, data: pa.RecordBatch) -> None:
        """Note the newest time of a batch whose tuples are neither judged nor sliced here."""
        binding, arrivals = self.binding, self.arrivals
        time, valid, _ = binding.time.to_internal(data.column(binding.spec.time), strict=False)
        time = time if valid is None else time[valid]
        if len(time) and arrivals.is_too_far_ahead(int(time.max())):
            time = time[time <= arrivals.latest_allowed]
        if len(time):
            self.newest = max(self.newest, int(time.max()))

    @property
    def bad_tuples(self) -> pa.Table:
        """The bad tuples with their reasons, where the query routes them."""
        return one_table(self.arrivals.routed) if self.arrivals.routed else pa.table({})
