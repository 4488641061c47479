"""Slices that no window needs: they are dropped, and neighbours without an edge between them are folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.batch import distinct
from muntin.slicing.edges import NO_TIMES
from muntin.slicing.listing_kernels import starts_before
from muntin.slicing.slice_manager import edges_of_rows
from muntin.slicing.slice_table import combine_runs
from muntin.slicing.slice_table_kernels import needed_runs
from muntin.slicing.tuple_needs import commit, needed_cuts, needed_rows
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["evict", "merge_slices", "needed_from"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEAST_SLICES = 64
"""Below this many slices nothing is evicted or folded unless forced."""
ALWAYS_COPIED = 4096
"""In a table of fewer slices, dropping even one is worth the copy; otherwise a quarter must be gone."""


def needed_from(plan: BoundPlan, state: State) -> int:
    """Slices that begin before this time lie in no window that could still be emitted."""
    if state.tuples is not None or plan.served.sessions or not plan.served.context_free:
        return NEG_INF
    return plan.served.first_start(plan.final(state.watermark))


def evict(plan: BoundPlan, state: State, force: bool = False) -> None:
    """Drop the slices that lie in no window that could still be emitted, and fold what is left.

    Only when the table has doubled since the last time, unless forced: the search costs O(slices).
    """
    table, final = state.slices, plan.final(state.watermark)
    if not len(table) and (state.tuples is None or plan.forget is None):
        return
    if final == INF and plan.served.only_edges:
        state.drop_slices(plan)
        return
    if state.tuples is not None:
        commit(plan, state)
        table = state.slices
    elif len(table) <= state.evict_above and not force:
        return
    needed = table.level < len(plan.served.gaps)
    if plan.served.context_free:
        needed |= table.first >= plan.served.first_start(final)
    if state.tuples is not None:
        needed |= needed_rows(plan, state)
    dropped = len(needed) - int(needed.sum())
    if dropped and (force or dropped * 4 > len(needed) or len(needed) < ALWAYS_COPIED):
        state.retained_from = max(state.retained_from, int(table.last[~needed].max()) + 1)
        state.slices = table.take(needed)
    if len(state.slices) and (force or len(state.slices) > 2 * state.fold_above):
        _fold(plan, state)
    state.evict_above = max(LEAST_SLICES, 2 * len(state.slices))


def merge_slices(plan: BoundPlan, state: State) -> None:
    """Join all neighbouring slices between which no window has an edge, because the one that did was removed.

    Slices of tuples in order stay as they are: where tuples decide edges, they are cut anew.
    """
    evict(plan, state, force=True)
    if len(state.slices):
        edges, ranked = edges_of_rows(plan, state, state.slices), state.slices.rank >= 0
        _join(plan, state, edges, INF, ranked)


def _fold(plan: BoundPlan, state: State) -> None:
    """Join neighbouring slices where no window that is still alive begins or ends between them."""
    table, final = state.slices, plan.final(state.watermark)
    hard = np.zeros(len(table), dtype=np.bool_) if state.tuples is None else needed_cuts(plan, state)
    _join(plan, state, _needed_starts(plan, state, final), final, hard)
    state.fold_above = max(LEAST_SLICES, len(state.slices))


def _join(plan: BoundPlan, state: State, edges: Column, until: int, hard: Mask) -> None:
    """Join neighbours that begin by `until`, but not at these edges, at gaps, or before `hard` ones."""
    table = state.slices
    lo, hi = np.empty((2, len(table)), dtype=np.int64)
    count = needed_runs(
        table.key, table.first, table.last, table.level, table.rank,
        edges, plan.served.gaps, until, hard, lo, hi,
    )  # fmt: skip
    if count < len(table):
        state.folds += 1
        state.metrics.merges += len(table) - count
        state.metrics.merge_combines += (len(table) - count) * len(plan.partials.partials)
        rows = np.arange(len(table), dtype=np.int64)
        state.slices = combine_runs(table, rows, lo[:count], hi[:count])


def _needed_starts(plan: BoundPlan, state: State, final: int) -> Column:
    """Starts, up to `final`, of windows that end after it: the only old edges still needed."""
    served, oldest = plan.served, int(state.slices.first.min())
    starts = [served.edges.points]
    if served.periodic and oldest <= final < INF:
        series = served.series
        starts.append(starts_before(series.length, series.slide, series.offset, oldest, final))
    for _, window in served.irregular:
        low = max(window.first_start(final), oldest)
        if low <= final < INF:
            starts.append(window.starts(low, final))
    return distinct(np.concatenate([p for p in starts if len(p)] or [NO_TIMES]))
