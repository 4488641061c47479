"""The Slice Manager adds tuples and slices to the slice table, as in [scotty §5.3, §6.2].

Tuples that every window can still take go into slices at once, or among the tuples in order where some
window is tuple-driven. Older ones wait until the watermark moves next: only then is it known which
sessions they touch, whatever the order in which they arrived. [scotty §8]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.batch import Batch
from muntin.slicing.late_tuples import LateTuples, RawTuples
from muntin.slicing.slice_table import SliceTable, merge
from muntin.slicing.slicer import slice_batch

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["add_slices", "add_tuples", "edges_around", "edges_of_rows", "insert", "mark_tuples", "settle"]

Column = npt.NDArray[np.int64]


def add_tuples(plan: BoundPlan, state: State, batch: Batch, raw: pa.RecordBatch | None = None) -> None:
    """Add tuples; `raw` are the same tuples as they arrived, for the late output."""
    if not len(batch.time):
        return
    extent, final = batch.extent, plan.final(state.watermark)
    if extent.low < final:
        old = batch.time < final
        late = np.flatnonzero(old)
        _set_aside(plan, state, batch.take(late), None if raw is None else raw.take(pa.array(late)))
        batch = batch.take(np.flatnonzero(~old))
        if not len(batch):
            return
        extent = batch.extent
    _notice(state, extent.low, extent.high)
    if state.tuples is not None:
        state.tuples.arrive(batch)
    else:
        state.metrics.lifted(len(batch.time), len(plan.partials.partials))
        edges = _edges_of(plan, state, batch)
        insert(plan, state, slice_batch(batch, edges, plan.served.gap, plan.partials), edges)


def add_slices(plan: BoundPlan, state: State, rows: SliceTable) -> None:
    """Add tuples that were sliced elsewhere, at the edges of the same windows."""
    state.metrics.lifted(int(rows.n.sum()), len(plan.partials.partials))
    old = rows.first < plan.final(state.watermark)
    if old.any():
        state.late_tuples += (LateTuples(rows.take(old)),)
        rows = rows.take(~old)
    if len(rows):
        _notice(state, int(rows.first.min()), int(rows.last.max()))
        insert(plan, state, rows, edges_of_rows(plan, state, rows))


def insert(plan: BoundPlan, state: State, rows: SliceTable, edges: Column) -> None:
    """Merge rows into the table; `edges` separate them from each other and from its rows."""
    gap = plan.served.gap
    if not len(state.slices.fresh) and gap < 0 and state.tuples is None:
        state.slices = rows  # each of them lies between two edges, and no gap could close
        return
    state.slices, combines = merge(state.slices, rows, edges, gap)
    state.metrics.merge_combines += combines * len(plan.partials.partials)


def edges_around(plan: BoundPlan, state: State, low: int, high: int, times: Column) -> Column:
    """The fixed edges that separate these times from each other and from the rows of the table."""
    return plan.served.edges.around(low, high, times, state.slices.first, state.slices.last)


def edges_of_rows(plan: BoundPlan, state: State, *tables: SliceTable) -> Column:
    """The fixed edges that separate the rows of these tables."""
    times = np.concatenate([column for rows in tables for column in (rows.first, rows.last)])
    return edges_around(plan, state, int(times.min()), int(times.max()), times)


def settle(state: State, shown: bool) -> None:
    """Windows were emitted; `shown`: every change of a window is in its last result, none is fresh."""
    state.has_late_change = False
    if shown:
        mark_tuples(state, fresh=False)


def mark_tuples(state: State, fresh: bool) -> None:
    """Count all tuples as fresh, or none: the next early look shows the windows with fresh ones."""
    slices = state.slices
    state.slices = slices.changed(fresh=slices.n.copy() if fresh else np.zeros(len(slices), dtype=np.int64))
    if state.tuples is not None:
        state.tuples.mark(fresh=fresh)


def _notice(state: State, low: int, high: int) -> None:
    # A tuple at the watermark itself may close a window that is complete already.
    state.has_late_change = state.has_late_change or low <= state.watermark
    state.newest = max(state.newest, high)


def _set_aside(plan: BoundPlan, state: State, batch: Batch, raw: pa.RecordBatch | None) -> None:
    """Let tuples before the final time wait for the next watermark."""
    state.metrics.lifted(len(batch.time), len(plan.partials.partials))
    rows = slice_batch(batch, _edges_of(plan, state, batch), plan.served.gap, plan.partials)
    tuples = None if raw is None else RawTuples(batch.key, batch.time, raw)
    state.late_tuples += (LateTuples(rows, tuples),)


def _edges_of(plan: BoundPlan, state: State, batch: Batch) -> Column:
    whole = batch if batch.whole is None else batch.whole
    extent = whole.extent
    return edges_around(plan, state, extent.low, extent.high, whole.time)
