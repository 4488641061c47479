"""Slicing of tuples in order: tuple-driven windows decide where slices begin, once the order is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.batch import distinct, numbers, ranges
from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.key_lives import Edges, Lives
from muntin.slicing.listing_kernels import rows_holding
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_manager import edges_around, insert
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.slicer import slice_sorted
from muntin.slicing.tuple_cuts import Walk, cut
from muntin.slicing.tuple_needs import final_until, grow, keep_from, open_begins
from muntin.slicing.tuple_state import TupleState
from muntin.slicing.tuple_tables import NO_LIFE, window_of
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Context

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["dissolve", "open_windows", "slice_tuples"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def slice_tuples(plan: BoundPlan, state: State, upto: int, splits: bool | None = None) -> None:
    """Bring the slice table up to the tuples at `upto`.

    Beyond the watermark later tuples may still come first: what is sliced there, for early results,
    is taken back by the next call. `splits`: whether slices may be cut again, as the plan says.
    """
    tuples, keys = grow(plan, state), state.key_count
    tuples.has_unseen = True
    timed = plan.forget is not None or any(window_of(q).timed for q in plan.served.tuple_driven)
    dirty = tuples.settle(keys, tuples.sliced_until if timed else NEG_INF)
    tuples.sliced_until = upto
    if tuples.is_ahead:
        dirty = np.arange(keys, dtype=np.int64)
    tuples.is_ahead = upto > state.watermark
    if plan.splits_slices if splits is None else splits:
        _take_back(plan, state, tuples, dirty)
    if tuples.batch is None:
        return
    end = tuples.positions_until(upto)
    reached = tuples.positions.base + end - tuples.offsets[:-1]
    new = np.flatnonzero(reached > tuples.sliced.rank)
    edges: list[Edges] = []
    lives = Lives.under_way(plan, tuples, tuples.sliced, new, end, min(upto, state.watermark))
    how = _walk(plan, state, upto)
    for served in plan.served.tuple_driven:
        if lives is not None and served.ends_with_key:
            closed, more = lives.cut(tuples, served, tuples.sliced, how)
            edges += more
        else:
            over = np.arange(keys, dtype=np.int64) if window_of(served).timed else new
            cuts = cut(tuples, served, tuples.sliced, over, end[over], how)
            closed = ClosedWindows.of(cuts)
            edges.append((cuts.edge_segment, cuts.edge_rank))
        old = tuples.closed.get(served.name)
        tuples.closed[served.name] = closed if old is None else old.join(closed)
    if lives is not None:
        edges.append(lives.begins)
        lives.record(tuples, tuples.sliced)
    # A slice ends where the final part ends, so that this part can be committed.
    final = tuples.ranks_until(final_until(plan, state, tuples))
    edges.append((new, final[new]))
    affected = distinct(np.concatenate([new, *(k for k, _ in edges)])) if plan.served.looks_back else new
    if len(affected):
        _build(plan, state, tuples, affected, reached, edges)
    tuples.sliced.rank[new] = reached[new]
    tuples.positions.reached[new] = tuples.batch.time[end[new] - 1]


def _walk(plan: BoundPlan, state: State, upto: int, closing: bool = False, partial: bool = False) -> Walk:
    failed = state.failed if plan.skips_errors else None
    return Walk(upto, state.newest, plan.window_inputs, closing, partial, plan.limit, failed)


def open_windows(plan: BoundPlan, state: State, served: ServedWindow, partial: bool = False) -> ClosedWindows:
    """The instances of a window that are open now, as if they ended with the last tuple.

    `partial`: count windows that are not full, too, even if the query does not emit them.
    """
    tuples = state.tuples
    assert tuples is not None
    if tuples.batch is None:
        return ClosedWindows()
    base = tuples.positions.base
    keys = np.arange(len(base), dtype=np.int64)
    end = tuples.offsets[keys] + tuples.sliced.rank[keys] - base[keys]
    partial = partial or served.window.emit_partial
    how = _walk(plan, state, state.watermark, closing=True, partial=partial)
    if plan.forget is not None and served.ends_with_key:
        grow(plan, state)
        keys = np.flatnonzero(tuples.sliced.lives[1] > NO_LIFE)
        lives = Lives.of(tuples, tuples.sliced, keys, end[keys], NEG_INF, plan.forget)
        return lives.cut(tuples, served, tuples.sliced, how)[0]
    return ClosedWindows.of(cut(tuples, served, tuples.sliced, keys, end, how))


def dissolve(plan: BoundPlan, state: State) -> None:
    """Turn all tuples into plain slices, because no window needs their order any more."""
    slice_tuples(plan, state, INF, splits=True)
    state.slices = state.slices.changed(rank=np.full(len(state.slices), -1, dtype=np.int64))
    state.tuples = None


def _take_back(plan: BoundPlan, state: State, tuples: TupleState, dirty: Column) -> None:
    """Go back to what is final in these keys: a tuple arrived before others that were sliced."""
    if not len(dirty):
        return
    tuples.sliced.copy_from(tuples.committed, dirty)
    tuples.positions.reached[dirty] = NEG_INF
    is_dirty = np.zeros(state.key_count, dtype=np.bool_)
    is_dirty[dirty] = True
    for name, closed in tuples.closed.items():
        tuples.closed[name] = closed.take(~is_dirty[closed.key])
    for served in plan.served.tuple_driven:
        expired = tuples.expired.get(served.name)
        if expired is not None:
            again = is_dirty[expired.key] & _cut_again(tuples, served, expired)
            tuples.expired[served.name] = expired.take(~again)
    table = state.slices
    gone = is_dirty[table.key] & (table.rank >= tuples.committed.rank[table.key])
    if gone.any():
        state.slices = table.take(~gone)


def _cut_again(tuples: TupleState, served: ServedWindow, expired: ExpiredWindows) -> Mask:
    """Which of these windows are found again by cutting from the final position on.

    They have, or need, later tuples. Some end with their last tuple, some with the next one; the context
    knows which are open.
    """
    certain = tuples.committed.rank[expired.key]
    key, begin = open_begins(tuples, served)
    span = 1 + max(int(expired.begin.max(initial=0)), int(begin.max(initial=0)))
    is_open = np.isin(expired.key * span + expired.begin, key * span + begin)
    again: Mask = (expired.end > certain) | ((expired.end == certain) & is_open)
    return again


def _build(
    plan: BoundPlan, state: State, tuples: TupleState, keys: Column, reached: Column, edges: list[Edges]
) -> None:
    """Aggregate tuples into slices: from the sliced rank on, or all stored ones if windows look back."""
    assert tuples.batch is not None
    begin = tuples.sliced.rank[keys].copy()
    replaced: SliceTable | None = None
    if plan.served.looks_back:
        edges = [*edges, (keys, begin), _look_back(plan, state, tuples, keys, reached)]
        begin = tuples.positions.base[keys]
        replaced = _remove_from(state, keys, begin)
        edges.append((replaced.key, replaced.rank))
    size = reached[keys] - begin
    offsets = np.concatenate([[0], np.cumsum(size)])
    if not offsets[-1]:
        return
    index = ranges(tuples.offsets[keys] + begin - tuples.positions.base[keys], size)
    part = tuples.batch.take(index)
    rank = numbers(begin, size)
    forced = _forced_cuts(state.key_count, keys, begin, reached, offsets, edges)
    fixed = edges_around(plan, state, *part.times[:2], part.time)
    rows = slice_sorted(part, fixed, plan.served.gap, plan.partials, forced, rank)
    begins = np.concatenate([[0], np.cumsum(rows.n)[:-1]])
    rows.fresh = np.add.reduceat(tuples.fresh[index], begins, dtype=np.int64)
    if replaced is not None:
        rows.level = _carry_levels(rows, replaced, tuples.sliced.rank, len(plan.served.gaps))
    insert(plan, state, rows, fixed)


def _look_back(plan: BoundPlan, state: State, tuples: TupleState, keys: Column, reached: Column) -> Edges:
    """Cuts at the oldest tuples that windows may still look back to, so that older ones can go."""
    oldest = reached[keys].copy()
    for served in plan.served.tuple_driven:
        if served.window.context is Context.FORWARD_AWARE:
            oldest = np.minimum(oldest, keep_from(plan, state, served, tuples.sliced, reached)[keys])
    return keys, oldest


def _remove_from(state: State, keys: Column, rank: Column) -> SliceTable:
    """Take the slices of these keys from these ranks on out of the table."""
    bound = np.full(state.key_count, INF, dtype=np.int64)
    bound[keys] = rank
    gone = state.slices.rank >= bound[state.slices.key]
    removed = state.slices.take(gone)
    state.slices = state.slices.take(~gone)
    return removed


def _forced_cuts(
    key_count: int, keys: Column, begin: Column, reached: Column, offsets: Column, edges: list[Edges]
) -> Mask:
    """Which tuples begin a slice because an edge lies there."""
    forced = np.zeros(int(offsets[-1]), dtype=np.bool_)
    place = np.full(key_count, -1, dtype=np.int64)
    place[keys] = np.arange(len(keys))
    for edge_key, edge_rank in edges:
        segment = place[edge_key]
        known = segment >= 0
        segment, at = segment[known], edge_rank[known]
        inside = (at >= begin[segment]) & (at < reached[keys][segment])
        segment, at = segment[inside], at[inside]
        forced[offsets[segment] + at - begin[segment]] = True
    return forced


def _carry_levels(rows: SliceTable, old: SliceTable, sliced: Column, classes: int) -> Column:
    """Levels of rebuilt slices: those of the slice that held their first tuple before.

    Of tuples that were `sliced` and are in no slice, that one was dropped: no session has them any more.
    """
    dropped = np.where(rows.rank < sliced[rows.key], classes, 0)
    if not len(old):
        return dropped
    row = rows_holding(old.key, old.rank, old.n, rows.key, rows.rank)
    return np.where(row >= 0, old.level[row], dropped)
