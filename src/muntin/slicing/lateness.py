"""Tuples older than the final time: which windows they still count for, and for which they are late.

Lateness is judged per window when the watermark moves, for all tuples that arrived since it last moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.emission.empty_windows import extend_extents
from muntin.slicing.late_tuples import LateTuples
from muntin.slicing.listing_kernels import sessions
from muntin.slicing.served import ServedWindow
from muntin.slicing.side_outputs import LateOutput, one_table
from muntin.slicing.slice_manager import edges_of_rows, insert
from muntin.slicing.slice_table import SliceTable, merge
from muntin.slicing.slice_table_kernels import merge_order
from muntin.slicing.tuple_slicer import slice_tuples
from muntin.timeline import NEG_INF
from muntin.windows.base import ContextFreeWindow

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["judge", "late_for"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def judge(plan: BoundPlan, state: State, final: int) -> None:
    """Decide for the tuples that wait, which lie before `final`, which windows they still count for.

    Tuples in order are sliced by now, even beyond the watermark that decides: a session that reaches them
    has an earlier tuple near enough to `final` to be alive without them.
    """
    if not state.late_tuples:
        return
    rows = _all_rows(plan, state, final)
    waiting, state.late_tuples = state.late_tuples, ()
    accepted, refused = _verdicts(plan, state, rows, plan.served.all, final)
    late_for_some = np.logical_or.reduce([mask for _, mask in refused])
    state.metrics.late += int(rows.n[late_for_some].sum())
    state.late_output += _late_output(rows, refused, waiting)
    if not accepted.all():
        state.retained_from = max(state.retained_from, int(rows.last[~accepted].max()) + 1)
    if accepted.any():
        state.has_late_change = True
        taken = rows.take(accepted)
        insert(plan, state, taken, edges_of_rows(plan, state, taken))
    extend_extents(plan, state, rows.key, rows.first, rows.last, final)


def late_for(plan: BoundPlan, state: State, window: ServedWindow) -> None:
    """Judge what is late for a window that ends now; for the others the tuples go on waiting."""
    if state.late_tuples:
        if state.tuples is not None:
            slice_tuples(plan, state, state.watermark)
        final = plan.final(state.watermark)
        rows = _all_rows(plan, state, final)
        _, refused = _verdicts(plan, state, rows, (window,), final)
        state.late_output += _late_output(rows, refused, state.late_tuples)


def _all_rows(plan: BoundPlan, state: State, final: int) -> SliceTable:
    """The slices of all tuples that wait, as if they had arrived at once, with their levels."""
    waiting = [late.rows for late in state.late_tuples]
    edges = edges_of_rows(plan, state, *waiting)
    table = SliceTable.empty(plan.partials)
    for rows in waiting:
        table, combines = merge(table, rows, edges, plan.served.gap)
        state.metrics.merge_combines += combines * len(plan.partials.partials)
    return table.changed(level=_levels(state.slices, table, plan.served.gaps, final))


def _levels(table: SliceTable, rows: SliceTable, gaps: Column, final: int) -> Column:
    """The number of session classes that each row is too late for: its session there has expired."""
    level = np.zeros(len(rows), dtype=np.int64)
    for c, gap in enumerate(gaps):
        members_of_class = np.flatnonzero(table.level <= c)
        key = np.concatenate([table.key[members_of_class], rows.key])
        first = np.concatenate([table.first[members_of_class], rows.first])
        last = np.concatenate([table.last[members_of_class], rows.last])
        order = np.empty(len(key), dtype=np.int64)
        merge_order(key[: len(members_of_class)], first[: len(members_of_class)], rows.key, rows.first, order)
        out = np.empty((5, len(order)), dtype=np.int64)
        count = sessions(order, key, first, last, gap, NEG_INF, out)
        dead = out[2, :count] + gap < final
        members = order[np.repeat(dead, out[4, :count] - out[3, :count])] - len(members_of_class)
        level[members[members >= 0]] = c + 1
    return level


def _verdicts(
    plan: BoundPlan, state: State, rows: SliceTable, windows: tuple[ServedWindow, ...], final: int
) -> tuple[Mask, list[tuple[ServedWindow, Mask]]]:
    """Which rows some of these windows take, and for each window which rows it refuses."""
    served = plan.served
    accepted = np.zeros(len(rows), dtype=np.bool_)
    refused: list[tuple[ServedWindow, Mask]] = []
    counts = state.late_counts.copy()
    for each in windows:
        in_scope = rows.first >= each.since
        if isinstance(each.window, ContextFreeWindow):
            ends = each.window.last_end(rows.first)
            takes = in_scope & (ends > final)
            refuses = in_scope & (ends > NEG_INF) & ~takes
        elif each in served.sessions:
            takes = in_scope & (rows.level <= served.session_class(each))
            refuses = in_scope & ~takes
        else:
            takes = np.zeros(len(rows), dtype=np.bool_)
            refuses = in_scope
        accepted |= takes
        counts[each.name] = counts.get(each.name, 0) + int(rows.n[refuses].sum())
        refused.append((each, refuses))
    state.late_counts = counts
    return accepted, refused


def _late_output(
    rows: SliceTable, refused: list[tuple[ServedWindow, Mask]], waiting: tuple[LateTuples, ...]
) -> tuple[LateOutput, ...]:
    """The tuples of the rows that each window refuses, in order of arrival."""
    raws = [late.raw for late in waiting if late.raw is not None]
    if not raws:
        return ()
    tuples = one_table(raw.tuples for raw in raws).combine_chunks().to_batches()[0]
    key = np.concatenate([raw.key for raw in raws])
    row = rows.holding(key, np.concatenate([raw.time for raw in raws]))
    chosen = [(window, np.flatnonzero(refuses[row])) for window, refuses in refused]
    return tuple(
        LateOutput(window.name, tuples.take(pa.array(which))) for window, which in chosen if len(which)
    )
