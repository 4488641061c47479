"""Keys that come and go: a key that nothing refers to any more gives up its id.

A key is alive while it has slices, kept tuples, windows that may still change, or tuples that wait.
Some queries need their keys for ever, unless the query says when a silent key is forgotten
(`muntin.slicing.lives`). Of each key that was ever seen they leave

- a few numbers, where tuples are numbered or a position is carried on: count windows (the next
  tuple's rank), windows on another measure (how far it has come), `slide_by_tuple` at every n-th
  tuple, and user-defined ones, whose code sees ranks and keeps a state;
- the slices of open windows, one for each edge: count windows that are not full, windows on
  another measure, punctuation, delta, boundary, landmarks;
- the tuples that windows to come look back to: `last`, whose windows come out of a silent key, too,
  and user-defined ones;
- the times of its first and last tuple, for `emit_empty`: empty windows lie between all tuples.

Sessions with a maximum length, `threshold` and `until` begin anew once no window is open, and so
does `slide_by_tuple` at every tuple, once its windows reach back to none of those seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.slicing.batch import Batch
from muntin.slicing.judging import Waiting
from muntin.slicing.kept import KeptSlicer
from muntin.slicing.tuples import NO_LIFE

if TYPE_CHECKING:
    from muntin.slicing.operator import SlicingOperator

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FEW = 1024
"""So many keys are never worth the work."""


def compact(operator: SlicingOperator, force: bool = False) -> None:
    """Forget the keys that are not alive, if they are more than half of all.

    The others get new ids in the same order. Costs O(keys + slices) when it looks, which is only
    when the keys have doubled since it last did.
    """
    keys = len(operator.keys)
    if not operator.spec.keys or not keys or not (force or keys > operator.crowded):
        return
    alive = np.flatnonzero(living(operator))
    if force or 2 * len(alive) < keys:
        _renumber(operator, alive)
    operator.crowded = max(FEW, 2 * len(alive))


def living(operator: SlicingOperator) -> Mask:
    """Which keys something still refers to."""
    slices = operator.slices
    alive = np.zeros(len(operator.keys), dtype=np.bool_)
    alive[slices.table.key] = True
    for part in slices.waiting:
        alive[part.rows.key] = True
    for registry in operator.windows.registries.values():
        alive[registry.key] = True
    for extent in operator.windows.extents.values():
        alive[extent.known] = True
    if slices.kept is not None:
        _mark_kept(slices.kept, alive)
    return alive


def _mark_kept(kept: KeptSlicer, alive: Mask) -> None:
    tuples = kept.tuples
    tuples.grow(kept.manager)
    for batch in (*tuples.arrived, *([] if tuples.batch is None else [tuples.batch])):
        alive[batch.key] = True
    for closed in kept.closed.values():
        alive[closed.key] = True
    for past in kept.past.values():
        # Others count only behind tuples of an open window, which keeps its key alive by itself.
        alive[past.key[past.due == kept.manager.final]] = True
    seen = tuples.committed.rank
    alive |= tuples.sliced.rank != seen
    for query in kept.manager.live.driven:
        if query.window.restarts:
            alive |= kept.needed_from(query) < seen
        elif kept.manager.forget is None:
            alive |= seen > 0
        else:
            alive |= (tuples.committed.last > NO_LIFE) | (tuples.sliced.last > NO_LIFE)


def _renumber(operator: SlicingOperator, alive: Column) -> None:
    slices, windows = operator.slices, operator.windows
    ids = np.full(len(operator.keys), -1, dtype=np.int64)
    ids[alive] = np.arange(len(alive))
    for extent in windows.extents.values():
        extent.grow(len(ids))
        extent.keep(alive, ids)
    for registry in windows.registries.values():
        registry.key = ids[registry.key]
    slices.table = slices.table.renumbered(ids)
    windows.store.reset()
    slices.waiting = [_waiting_with_ids(part, ids) for part in slices.waiting]
    if slices.kept is not None:
        _renumber_kept(slices.kept, alive, ids)
    operator.keys = operator.keys.keep(alive)
    slices.keys = len(operator.keys)


def _renumber_kept(kept: KeptSlicer, alive: Column, ids: Column) -> None:
    tuples = kept.tuples
    tuples.arrived = [_with_ids(batch, ids) for batch in tuples.arrived]
    if tuples.batch is not None:
        tuples.batch = _with_ids(tuples.batch, ids)
    tuples.offsets = np.concatenate([tuples.offsets[alive], tuples.offsets[-1:]])
    tuples.base, tuples.reached = tuples.base[alive], tuples.reached[alive]
    for progress in (tuples.committed, tuples.sliced):
        progress.keep(alive)
    for name, skipped in tuples.skipped.items():
        known = np.concatenate([skipped, np.full(len(ids) - len(skipped), -1, dtype=np.int64)])
        tuples.skipped[name] = known[alive]
    kept.closed = {name: closed.renumbered(ids) for name, closed in kept.closed.items()}
    kept.past = {name: past.renumbered(ids) for name, past in kept.past.items()}


def _with_ids(batch: Batch, ids: Column) -> Batch:
    return Batch(ids[batch.key], batch.time, batch.arrival, batch.values)


def _waiting_with_ids(part: Waiting, ids: Column) -> Waiting:
    raw = None if part.raw is None else replace(part.raw, key=ids[part.raw.key])
    return Waiting(part.rows.renumbered(ids), raw)
