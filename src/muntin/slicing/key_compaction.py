"""Compaction of keys: a key that no table refers to any more gives up its number.

A key is alive while it has slices, tuples, windows that may still change, or late tuples that wait.
Some queries need their keys for ever, unless the query says when a silent key is forgotten
(`muntin.slicing.key_lives`). Of each key that was ever seen they leave

- a few numbers, where tuples are numbered or a position is carried on: count windows (the next
  tuple's rank), windows on another measure (how far it has come), `slide_by_tuple` at every n-th
  tuple, and user-defined ones, whose code sees ranks and keeps a state;
- the slices of open windows, one for each edge: count windows that are not full, windows on
  another measure, punctuation, delta, boundary, landmarks;
- the tuples that windows to come look back to: `last`, whose windows come out of a silent key, too,
  and user-defined ones;
- the times of its first and last tuple, for `emit_empty`: empty windows lie between all tuples.

Sessions with a maximum length, `threshold` and `until` restart once no window is open, and so
does `slide_by_tuple` at every tuple, once its windows reach back to none of those seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.tuple_slicer import grow, needed_from
from muntin.slicing.tuple_state import NO_LIFE

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["FEW", "compact", "living"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FEW = 1024
"""Up to this many keys compaction costs more than it frees."""


def compact(plan: BoundPlan, state: State, force: bool = False) -> None:
    """Forget the keys that are not alive, if they are more than half of all.

    The others get new numbers in the same order. Costs O(keys + slices) when it searches, which is only
    when the keys have doubled since the last search.
    """
    keys = len(state.keys)
    if not plan.spec.keys or not keys or not (force or keys > state.compact_above):
        return
    alive = living(plan, state)
    count = int(alive.sum())
    if force or 2 * count < keys:
        _renumber(state, alive)
    state.compact_above = max(FEW, 2 * count)


def living(plan: BoundPlan, state: State) -> Mask:
    """Which keys some table still refers to."""
    alive = np.zeros(len(state.keys), dtype=np.bool_)
    alive[state.slices.key] = True
    for late in state.late_tuples:
        alive[late.rows.key] = True
    for emitted in state.emitted.values():
        alive[emitted.key] = True
    for extents in state.extents.values():
        alive[extents.known] = True
    if state.tuples is not None:
        _mark_tuples(plan, state, alive)
    return alive


def _mark_tuples(plan: BoundPlan, state: State, alive: Mask) -> None:
    tuples, final = grow(plan, state), plan.final(state.watermark)
    for batch in tuples.batches():
        alive[batch.key] = True
    for closed in tuples.closed.values():
        alive[closed.key] = True
    for expired in tuples.expired.values():
        # Others count only behind tuples of an open window, which keeps its key alive by itself.
        alive[expired.key[expired.due == final]] = True
    seen = tuples.committed.rank
    alive |= tuples.sliced.rank != seen
    for served in plan.served.tuple_driven:
        if served.window.restarts:
            alive |= needed_from(plan, state, served) < seen
        elif plan.forget is None:
            alive |= seen > 0
        else:
            alive |= (tuples.committed.lives[1] > NO_LIFE) | (tuples.sliced.lives[1] > NO_LIFE)


def _renumber(state: State, alive: Mask) -> None:
    ids = np.where(alive, np.cumsum(alive) - 1, -1)
    state.slices = state.slices.renumbered(ids)
    state.late_tuples = tuple(late.renumbered(ids) for late in state.late_tuples)
    state.emitted = {name: table.renumbered(ids) for name, table in state.emitted.items()}
    state.extents = {name: table.renumbered(ids) for name, table in state.extents.items()}
    if state.tuples is not None:
        state.tuples.renumber(ids)
    state.store.reset()
    state.keys = state.keys.keep(np.flatnonzero(alive))
    state.key_count = len(state.keys)
