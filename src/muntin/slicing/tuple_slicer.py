"""Slicing of tuples in order: tuple-driven windows decide where slices begin, once the order is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.errors import UserCodeError
from muntin.slicing.batch import distinct, numbers, ranges
from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.key_lives import Edges, Lives
from muntin.slicing.listing_kernels import mark_pairs, rows_holding
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_manager import edges_around, insert
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.slice_table_kernels import align_ranks
from muntin.slicing.slicer import slice_sorted
from muntin.slicing.tuple_cuts import Walk, cut
from muntin.slicing.tuple_state import NO_LIFE, Progress, TupleState, window_of
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Context

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = [
    "commit",
    "dissolve",
    "keep_from",
    "needed_cuts",
    "needed_from",
    "needed_rows",
    "open_windows",
    "slice_tuples",
]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def grow(plan: BoundPlan, state: State) -> TupleState:
    """The tuples, with room for all keys and windows that there are now."""
    assert state.tuples is not None
    state.tuples.grow(state.key_count, plan.served.tuple_driven, plan.forget is not None)
    return state.tuples


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
    final = tuples.ranks_until(_final_until(plan, state, tuples))
    edges.append((new, final[new]))
    affected = distinct(np.concatenate([new, *(k for k, _ in edges)])) if plan.served.looks_back else new
    if len(affected):
        _build(plan, state, tuples, affected, reached, edges)
    tuples.sliced.rank[new] = reached[new]
    tuples.positions.reached[new] = tuples.batch.time[end[new] - 1]


def _walk(plan: BoundPlan, state: State, upto: int, closing: bool = False, partial: bool = False) -> Walk:
    failed = state.failed if plan.skips_errors else None
    return Walk(upto, state.newest, plan.window_inputs, closing, partial, plan.limit, failed)


def open_windows(plan: BoundPlan, state: State, served: ServedWindow) -> ClosedWindows:
    """The instances of a window that are open now, as if they ended with the last tuple."""
    tuples = state.tuples
    assert tuples is not None
    if tuples.batch is None:
        return ClosedWindows()
    base = tuples.positions.base
    keys = np.arange(len(base), dtype=np.int64)
    end = tuples.offsets[keys] + tuples.sliced.rank[keys] - base[keys]
    how = _walk(plan, state, state.watermark, closing=True, partial=served.window.emit_partial)
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
    key, begin = _open_begins(tuples, served)
    span = 1 + max(int(expired.begin.max(initial=0)), int(begin.max(initial=0)))
    is_open = np.isin(expired.key * span + expired.begin, key * span + begin)
    again: Mask = (expired.end > certain) | ((expired.end == certain) & is_open)
    return again


def _open_begins(tuples: TupleState, served: ServedWindow) -> tuple[Column, Column]:
    """Keys and ranks at which the open windows of the final contexts begin."""
    skip = tuples.skip(served)
    seen = np.maximum(tuples.committed.rank - skip, 0)
    key, rank = window_of(served).open_begins(tuples.committed.contexts[served.name], seen)
    return key, rank + skip[key]


def _build(
    plan: BoundPlan, state: State, tuples: TupleState, keys: Column, reached: Column, edges: list[Edges]
) -> None:
    """Aggregate tuples into slices: from the sliced rank on, or all kept ones if windows look back."""
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


# What is final, and what is still needed. ----------------------------------------------------------------


def _final_until(plan: BoundPlan, state: State, tuples: TupleState) -> int:
    """Tuples up to this time have their final place in the order of their key.

    In order a tuple at the watermark may be followed, but not preceded, by one that arrives later.
    """
    final = plan.final(state.watermark)
    return final if plan.in_order and final == state.watermark and not tuples.is_ahead else final - 1


def commit(plan: BoundPlan, state: State) -> None:
    """Make final what no tuple can change any more, and forget the tuples of it.

    Does nothing where windows were closed for another reason than to be emitted: a new query looks at
    the slices, too.
    """
    tuples = grow(plan, state)
    if tuples.batch is None or tuples.has_unseen:
        return
    final_time = plan.final(state.watermark)
    final = tuples.ranks_until(_final_until(plan, state, tuples))
    target = np.minimum(final, tuples.sliced.rank)
    target = _aligned(state, tuples, target)
    target = np.maximum(target, tuples.committed.rank)
    # Without lateness what is sliced is final: its contexts are taken over unchanged.
    settled = final_time == state.watermark and not tuples.is_ahead
    caught_up = (target == tuples.sliced.rank) & settled
    tuples.committed.copy_from(tuples.sliced, np.flatnonzero(caught_up))
    # Where some final tuples are not among these, time must not close what they belong to.
    for upto, chosen in ((final_time, target >= final), (NEG_INF, target < final)):
        _commit_contexts(plan, state, tuples, np.flatnonzero(~caught_up & chosen), target, upto)
    tuples.committed.rank = np.maximum(tuples.committed.rank, target)
    _expire(plan, state, tuples)
    if not plan.keeps_tuples:  # every tuple that was sliced has its final place
        tuples.drop_before(tuples.committed.rank)
        return
    tuples.drop_before(_tuples_needed_from(plan, state, tuples))


def _aligned(state: State, tuples: TupleState, target: Column) -> Column:
    """These ranks, each moved back to where a slice begins."""
    ranked = np.flatnonzero(state.slices.rank >= 0)
    key, rank = state.slices.key[ranked], state.slices.rank[ranked]
    return align_ranks(key, rank, target, tuples.sliced.rank, state.key_count)


def _commit_contexts(
    plan: BoundPlan, state: State, tuples: TupleState, keys: Column, target: Column, upto: int
) -> None:
    """Advance the final contexts of these keys to the ranks `target`."""
    if not len(keys):
        return
    # The same errors were reported when these tuples were sliced.
    how = Walk(upto, state.newest, plan.window_inputs, failed=[] if plan.skips_errors else None)
    end = tuples.offsets[:-1] + target - tuples.positions.base
    moved = keys[target[keys] > tuples.committed.rank[keys]]
    lives = Lives.under_way(plan, tuples, tuples.committed, moved, end, upto, keys)
    for served in plan.served.tuple_driven:
        if lives is not None and served.ends_with_key:
            lives.cut(tuples, served, tuples.committed, how)
            continue
        changing = keys if window_of(served).timed else moved
        if len(changing):
            cut(tuples, served, tuples.committed, changing, end[changing], how)
    if lives is not None:
        lives.record(tuples, tuples.committed)


def _expire(plan: BoundPlan, state: State, tuples: TupleState) -> None:
    """Forget the windows that no tuple can change, but for the edges of the last ones."""
    final = plan.final(state.watermark)
    windows = {q.name: q.window for q in plan.served.tuple_driven}
    for name, closed in tuples.closed.items():
        tuples.closed[name] = closed.take(closed.due > final)
        if windows[name].repeats:
            over = ExpiredWindows.of(closed.take(closed.due <= final))
            expired = tuples.expired.get(name, ExpiredWindows()).join(over)
            tuples.expired[name] = _still_counting(tuples, expired, final, windows[name].on_measure)


def _still_counting(
    tuples: TupleState, expired: ExpiredWindows, final: int, on_measure: bool
) -> ExpiredWindows:
    """Those of these windows whose edges another one may still get: it counts behind them.

    On a measure any later one may. In time that needs a tuple at the final time, or one behind
    the window that no other window has closed yet.
    """
    certain = tuples.committed.rank
    if on_measure:
        return expired.last_ones(certain)
    at_final = expired.due == final
    followed = expired.end < tuples.sliced.rank[expired.key]
    return expired.take(at_final).join(expired.take(followed & ~at_final).last_ones(certain))


def _tuples_needed_from(plan: BoundPlan, state: State, tuples: TupleState) -> Column:
    needed = tuples.committed.rank.copy()
    for served in plan.served.tuple_driven:
        if served.window.context is Context.FORWARD_AWARE:
            needed = np.minimum(needed, needed_from(plan, state, served))
    if not plan.served.looks_back:
        return needed
    return np.maximum(_aligned(state, tuples, needed), tuples.positions.base)


def needed_from(plan: BoundPlan, state: State, served: ServedWindow) -> Column:
    """Per key: the smallest rank that an instance which is not closed for good may need."""
    tuples, final = state.tuples, plan.final(state.watermark)
    assert tuples is not None
    committed, base = tuples.committed, tuples.positions.base
    needed = keep_from(plan, state, served, committed, committed.rank)
    reach = window_of(served).reach
    if reach is None or final == NEG_INF:
        return needed
    # Later tuples lie at `final` or after it, so they look back less far the longer a key is silent.
    # Tuples that are not final yet may lie before: their context knows what they need.
    old = tuples.ranks_until(final - reach)
    silent = committed.rank == base + np.diff(tuples.offsets)
    return np.where(silent, np.maximum(needed, old), needed)


def keep_from(
    plan: BoundPlan, state: State, served: ServedWindow, progress: Progress, seen: Column
) -> Column:
    """Per key: the smallest rank that an instance may still need, as far as its context tells."""
    assert state.tuples is not None
    skip = state.tuples.skip(served)
    counted = np.maximum(seen - skip, 0)
    try:
        first_rank = window_of(served).keep_from(progress.contexts[served.name], counted)
    except UserCodeError as error:
        error.cure = f'repair it, remove the window "{served.name}", or choose on_error="skip"'
        if not plan.skips_errors:
            raise
        state.failed.append(error)
        first_rank = np.zeros(len(counted), dtype=np.int64)  # keep every tuple, as without keep_rank
    return np.where(seen > skip, first_rank + skip, seen)


def needed_rows(plan: BoundPlan, state: State) -> Mask:
    """Slices that a tuple-driven window may still need."""
    tuples, table = state.tuples, state.slices
    assert tuples is not None
    needed = tuples.committed.rank.copy()
    for served in plan.served.tuple_driven:
        needed = np.minimum(needed, needed_from(plan, state, served))
    for closed in tuples.closed.values():
        np.minimum.at(needed, closed.key, closed.begin)
    return (table.rank >= 0) & (table.rank + table.n > needed[table.key])


def needed_cuts(plan: BoundPlan, state: State) -> Mask:
    """Slices that must not be joined to the one before: a window begins or ends there."""
    tuples, table = state.tuples, state.slices
    assert tuples is not None
    settled = np.minimum(tuples.committed.rank, tuples.positions.base)
    hard = (table.rank >= 0) & (table.rank >= settled[table.key])
    pairs = [(c.key, c.begin) for c in tuples.closed.values()]
    pairs += [(c.key, c.end) for c in tuples.closed.values()]
    pairs += [_open_begins(tuples, served) for served in plan.served.tuple_driven]
    for key, rank in pairs:
        mark_pairs(table.offsets(state.key_count), table.rank, key, rank, hard)
    return hard
