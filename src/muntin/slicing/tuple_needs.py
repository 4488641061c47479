"""Which tuples of tuple-driven windows are final, and which tuples and slices windows still need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.errors import UserCodeError
from muntin.slicing.closed_windows import ExpiredWindows
from muntin.slicing.key_lives import Lives
from muntin.slicing.listing_kernels import mark_pairs
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_table_kernels import align_ranks
from muntin.slicing.tuple_cuts import Walk, cut
from muntin.slicing.tuple_slices import cut_off
from muntin.slicing.tuple_state import TupleState
from muntin.slicing.tuple_tables import Progress, window_of
from muntin.timeline import NEG_INF
from muntin.windows.base import Context
from muntin.windows.tuple_driven import BLOCK_BITS

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = [
    "commit", "final_until", "grow", "keep_from", "needed_cuts", "needed_from", "needed_rows", "open_begins",
]  # fmt: skip

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def grow(plan: BoundPlan, state: State) -> TupleState:
    """The tuples, with room for all keys and windows that there are now."""
    assert state.tuples is not None
    state.tuples.grow(state.key_count, plan.served.tuple_driven, plan.forget is not None)
    return state.tuples


def final_until(plan: BoundPlan, state: State, tuples: TupleState) -> int:
    """Tuples up to this time have their final place in the order of their key.

    In order a tuple at the watermark may be followed, but not preceded, by one that arrives later.
    """
    final = plan.final(state.watermark)
    return final if plan.in_order and final == state.watermark and not tuples.is_ahead else final - 1


def commit(plan: BoundPlan, state: State) -> None:
    """Make final what no tuple can change any more, and forget the tuples of it.

    Does nothing where windows were closed for another reason than to be emitted: a new window looks at
    the slices, too.
    """
    tuples = grow(plan, state)
    if tuples.batch is None or tuples.has_unseen:
        return
    final_time = plan.final(state.watermark)
    final = tuples.ranks_until(final_until(plan, state, tuples))
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
    for name, closed_windows in tuples.closed_windows.items():
        tuples.closed_windows[name] = closed_windows.take(closed_windows.complete_at > final)
        if windows[name].repeats:
            over = ExpiredWindows.of(closed_windows.take(closed_windows.complete_at <= final))
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
    at_final = expired.complete_at == final
    followed = expired.end < tuples.sliced.rank[expired.key]
    return expired.take(at_final).join(expired.take(followed & ~at_final).last_ones(certain))


def _tuples_needed_from(plan: BoundPlan, state: State, tuples: TupleState) -> Column:
    needed = tuples.committed.rank.copy()
    for served in plan.served.tuple_driven:
        if served.window.context is Context.FORWARD_AWARE:
            needed = np.minimum(needed, needed_from(plan, state, served))
    if not plan.served.looks_back:
        return needed
    cut_off(plan, state, tuples, needed)
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
        first_rank = window_of(served).keep_from(progress.context[served.name], counted)
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
    for closed_windows in tuples.closed_windows.values():
        np.minimum.at(needed, closed_windows.key, closed_windows.begin)
    return (table.rank >= 0) & (table.rank + table.n > needed[table.key])


def needed_cuts(plan: BoundPlan, state: State) -> Mask:
    """Slices that must not be joined to the one before: a window begins or ends there."""
    tuples, table = state.tuples, state.slices
    assert tuples is not None
    stored = table.rank >= np.minimum(tuples.committed.rank, tuples.positions.base)[table.key]
    hard = (table.rank >= 0) & stored
    if plan.served.looks_back:
        # Slices of tuples that are final may be joined, to no more than a block: they may be split again.
        base = tuples.positions.base[table.key]
        final = (table.rank < tuples.committed.rank[table.key]) & (table.rank != base)
        hard &= ~final | (np.diff(table.rank >> BLOCK_BITS, prepend=-1) != 0)
    pairs = [(c.key, c.begin) for c in tuples.closed_windows.values()]
    pairs += [(c.key, c.end) for c in tuples.closed_windows.values()]
    pairs += [open_begins(tuples, served) for served in plan.served.tuple_driven]
    for key, rank in pairs:
        mark_pairs(table.offsets(state.key_count), table.rank, key, rank, hard)
    return hard


def open_begins(tuples: TupleState, served: ServedWindow) -> tuple[Column, Column]:
    """Keys and ranks at which the open windows of the final contexts begin."""
    skip = tuples.skip(served)
    seen = np.maximum(tuples.committed.rank - skip, 0)
    key, rank = window_of(served).open_begins(tuples.committed.context[served.name], seen)
    return key, rank + skip[key]
