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

from muntin.slicing.tuple_needs import grow, needed_from
from muntin.slicing.tuple_tables import NO_LIFE

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["LEAST_KEYS", "compact", "living"]

Mask = npt.NDArray[np.bool_]

LEAST_KEYS = 1024
"""Up to this many keys nothing is searched: their numbers take a few kilobytes."""


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
    state.compact_above = max(LEAST_KEYS, 2 * count)


def living(plan: BoundPlan, state: State) -> Mask:
    """Which keys some table still refers to."""
    alive, final = np.zeros(len(state.keys), dtype=np.bool_), plan.final(state.watermark)
    for _, table in state.tables(plan):
        alive[table.held_keys(final)] = True
    if state.tuples is not None:
        alive |= _in_progress(plan, state)
    return alive


def _in_progress(plan: BoundPlan, state: State) -> Mask:
    """The keys whose positions and contexts windows still need."""
    tuples = grow(plan, state)
    seen = tuples.committed.rank
    alive: Mask = tuples.sliced.rank != seen
    for served in plan.served.tuple_driven:
        if served.window.restarts:
            alive |= needed_from(plan, state, served) < seen
        elif plan.forget is None:
            alive |= seen > 0
        else:
            alive |= (tuples.committed.lives[1] > NO_LIFE) | (tuples.sliced.lives[1] > NO_LIFE)
    return alive


def _renumber(state: State, alive: Mask) -> None:
    ids = np.where(alive, np.cumsum(alive) - 1, -1)
    state.change_tables(lambda table: table.renumbered(ids))
    if state.tuples is not None:
        state.tuples.index(len(state.tuples.positions))
    state.reset_store()
    state.keys = state.keys.keep(np.flatnonzero(alive))
    state.key_count = len(state.keys)
