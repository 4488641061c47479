"""Slicing of tuples in order: tuple-driven windows decide where slices begin, once the order is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.closed_windows import ClosedWindows, ExpiredWindows
from muntin.slicing.key_lives import Edges, Lives
from muntin.slicing.recutting import slices_behind
from muntin.slicing.served import ServedWindow
from muntin.slicing.slice_table import SliceTable, concat
from muntin.slicing.tuple_cuts import Walk, cut
from muntin.slicing.tuple_needs import final_until, grow, open_begins
from muntin.slicing.tuple_slices import Runs, build
from muntin.slicing.tuple_state import TupleState
from muntin.slicing.tuple_tables import NO_LIFE, window_of
from muntin.timeline import INF, NEG_INF

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["dissolve", "open_windows", "slice_tuples"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def slice_tuples(plan: BoundPlan, state: State, upto: int, again: bool = False) -> None:
    """Bring the slice table up to the tuples at `upto`.

    Beyond the watermark later tuples may still come first: what is sliced there, for early results,
    is taken back by the next call. `again`: all that is not final is cut anew, as other windows need it.
    """
    tuples, keys = grow(plan, state), state.key_count
    tuples.has_unseen = True
    timed = plan.forget is not None or any(window_of(q).timed for q in plan.served.tuple_driven)
    dirty, newcomers = tuples.settle(keys, tuples.sliced_until if timed else NEG_INF)
    tuples.sliced_until = upto
    if tuples.is_ahead or again:
        dirty = np.arange(keys, dtype=np.int64)
    tuples.is_ahead = upto > state.watermark
    taken_back, tuples.ahead = tuples.ahead, None
    if taken_back is None or newcomers is not None:
        taken_back = plan.no_slices
    if plan.cuts_again or again:
        taken_back = concat([taken_back, _take_back(plan, state, tuples, dirty)])
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
            closed_windows, more = lives.cut(tuples, served, tuples.sliced, how)
            edges += more
        else:
            over = np.arange(keys, dtype=np.int64) if window_of(served).timed else new
            cuts = cut(tuples, served, tuples.sliced, over, end[over], how)
            closed_windows = ClosedWindows.of(cuts)
            edges.append((cuts.edge_segment, cuts.edge_rank))
        old = tuples.closed_windows.get(served.name)
        tuples.closed_windows[served.name] = closed_windows if old is None else old.join(closed_windows)
    if lives is not None:
        edges.append(lives.begins)
        lives.record(tuples, tuples.sliced)
    # A slice ends where the final part ends, so that this part can be committed.
    final = tuples.ranks_until(final_until(plan, state, tuples))
    edges.append((new, np.maximum(final[new], tuples.sliced.rank[new])))
    runs = Runs(new, tuples.sliced.rank[new], reached[new])
    build(plan, state, tuples, runs, edges, newcomers, taken_back, end)
    if len(taken_back):
        tuples.ahead = slices_behind(tuples, newcomers, taken_back, end)
    tuples.sliced.rank[new] = reached[new]
    tuples.positions.reached[new] = tuples.batch.time[end[new] - 1]


def _walk(plan: BoundPlan, state: State, upto: int, closing: bool = False, partial: bool = False) -> Walk:
    failed = state.failed if plan.skips_errors else None
    inputs = plan.window_inputs
    return Walk(upto, state.newest, inputs, closing, partial, plan.limit, failed, plan.in_order)


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
    slice_tuples(plan, state, INF, again=True)
    state.slices = state.slices.changed(rank=np.full(len(state.slices), -1, dtype=np.int64))
    state.tuples = None


def _take_back(plan: BoundPlan, state: State, tuples: TupleState, dirty: Column) -> SliceTable:
    """Go back to what is final in these keys, because a tuple arrived before others that were sliced.

    Returns the slices of what is not final, which leave the table.
    """
    if not len(dirty):
        return plan.no_slices
    tuples.sliced.copy_from(tuples.committed, dirty)
    tuples.positions.reached[dirty] = NEG_INF
    is_dirty = np.zeros(state.key_count, dtype=np.bool_)
    is_dirty[dirty] = True
    for name, closed_windows in tuples.closed_windows.items():
        tuples.closed_windows[name] = closed_windows.take(~is_dirty[closed_windows.key])
    for served in plan.served.tuple_driven:
        expired = tuples.expired.get(served.name)
        if expired is not None:
            again = is_dirty[expired.key] & _cut_again(tuples, served, expired)
            tuples.expired[served.name] = expired.take(~again)
    table = state.slices
    gone = is_dirty[table.key] & (table.rank >= tuples.committed.rank[table.key])
    if gone.any():
        state.slices = table.take(~gone)
    return table.take(gone)


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
