"""The slices of one partition of a stream; an operator combines those of all partitions.

A partition has no watermark: it decides neither which tuples are late nor which windows are complete. So it
adds tuples to a state of its own, and emits nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.query import QuerySpec
from muntin.slicing.arrivals import Arrivals
from muntin.slicing.binding import ARRIVAL
from muntin.slicing.bound_plan import BoundPlan, Settings
from muntin.slicing.retyping import learned
from muntin.slicing.served import ServedWindow, ServedWindows
from muntin.slicing.side_outputs import one_table
from muntin.slicing.state import State
from muntin.slicing.step import add, take_in

__all__ = ["PartitionSlicer", "partition_plan"]

Ids = npt.NDArray[np.int64]


def partition_plan(query: QuerySpec, schema: pa.Schema) -> BoundPlan:
    """The plan that the slicers of all partitions share; an error where the query does not fit."""
    served = ServedWindows(tuple(ServedWindow(name, window) for name, window in query.windows))
    return BoundPlan.of(query, Settings(), served, schema)


class PartitionSlicer:
    """Separates bad tuples, numbers keys and combines tuples into slices, batch by batch.

    `hidden` are columns of the connector, which no message and no bad tuple shows.
    """

    def __init__(self, plan: BoundPlan, hidden: tuple[str, ...] = (ARRIVAL,)) -> None:
        self.plan, self.state = plan, State(plan)
        self.arrivals = Arrivals(plan.spec.bad)
        self.arrivals.hidden = hidden
        self.arrivals.set_max_ahead(plan.spec, False, plan.binding.time)

    def add(self, data: pa.RecordBatch) -> tuple[Ids, pa.RecordBatch]:
        """Slice the good tuples of a batch; returns the numbers of their keys, and the tuples.

        A column ARRIVAL orders tuples of one time; without it, their order in the input does.
        """
        if not self.plan.binding.schema.equals(data.schema):
            self.plan, self.state = learned(self.plan, self.state, data.schema)
        batch, good = take_in(self.plan, self.state, self.arrivals, data)
        if batch is None:
            return np.zeros(0, dtype=np.int64), good
        add(self.plan, self.state, batch)
        return batch.key, good

    def notice(self, data: pa.RecordBatch) -> None:
        """Note the newest time of a batch whose tuples are neither judged nor sliced here."""
        binding, arrivals = self.plan.binding, self.arrivals
        time, valid, _ = binding.time.to_internal(data.column(binding.spec.time), strict=False)
        time = time if valid is None else time[valid]
        if len(time) and arrivals.is_too_far_ahead(int(time.max())):
            time = time[time <= arrivals.latest_allowed]
        if len(time):
            self.state.newest = max(self.state.newest, int(time.max()))

    @property
    def bad_tuples(self) -> pa.Table:
        """The bad tuples with their reasons, where the query routes them."""
        return one_table(self.state.bad_output) if self.state.bad_output else pa.table({})
