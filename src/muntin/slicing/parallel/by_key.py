"""States of ranges of keys: a state is divided by key, each part makes a step, and they are joined again.

All tables of a state refer to keys by number, so a part has the rows of its keys, numbered from 0 on.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from muntin.memory import fresh, rows_at
from muntin.metrics import Metrics
from muntin.slicing.batch import Batch, concat, values_at
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.combining.choosing import combiner
from muntin.slicing.key_kernels import share
from muntin.slicing.schema import Table
from muntin.slicing.slice_table import concat as concat_slices
from muntin.slicing.state import State
from muntin.slicing.tuple_state import Positions, Progress, TupleState

__all__ = ["divided", "joined", "key_bounds", "share_of"]

Column = npt.NDArray[np.int64]
_T = TypeVar("_T", bound=Table)

SAMPLE = 262_144
"""The most tuples whose keys decide where ranges begin."""


def key_bounds(state: State, batch: Batch | None, number: int) -> list[int]:
    """Where one range of keys ends and the next begins: with about the same number of slices and tuples."""
    keys = state.key_count
    weights = np.bincount(state.slices.key, minlength=keys)
    tuples = [] if state.tuples is None else state.tuples.batches()
    for each in tuples if batch is None else [*tuples, batch]:
        step = 1 + len(each) // SAMPLE
        weights = weights + step * np.bincount(each.key[::step], minlength=keys)
    before = np.append(0, np.cumsum(weights))
    shares = [before[-1] * i // number for i in range(1, number)]
    bounds: list[int] = np.unique([0, *np.searchsorted(before, shares), keys]).tolist()
    return bounds


def share_of(batch: Batch, begin: int, end: int) -> Batch:
    """The tuples of the keys from `begin` to `end`, numbered from 0 on; cut as in the whole batch."""
    index = fresh(len(batch) + 1)
    index = index[: share(batch.key, begin, end, index)]
    ids = rows_at(batch.key, index)
    ids -= begin
    values = {e: values_at(v, index) for e, v in batch.values.items()}
    # Where arrivals are counted, a share is counted from the same number on: only their order matters.
    arrival = batch.arrival if isinstance(batch.arrival, int) else batch.arrival[index]
    return Batch(ids, rows_at(batch.time, index), arrival, values, batch, among=end - begin)


def divided(plan: BoundPlan, state: State, bounds: list[int]) -> list[State]:
    """A state for each range of keys."""
    return [_part(plan, state, begin, end) for begin, end in pairwise(bounds)]


def _part(plan: BoundPlan, state: State, begin: int, end: int) -> State:
    part = state.draft()
    part.metrics, part.key_count, part.store = Metrics(), end - begin, combiner(plan.decisions)
    offsets = state.slices.offsets(state.key_count)
    slices = state.slices.between(int(offsets[begin]), int(offsets[end]))
    part.slices = slices.changed(key=slices.key - begin) if begin else slices
    ids = np.full(state.key_count, -1, dtype=np.int64)
    ids[begin:end] = np.arange(end - begin)
    part.emitted = {name: table.renumbered(ids) for name, table in state.emitted.items()}
    part.extents = {name: table.renumbered(ids) for name, table in state.extents.items()}
    if part.tuples is not None:
        tuples = part.tuples
        keep = np.zeros(0, dtype=np.bool_)
        if tuples.batch is not None:
            keep = (tuples.batch.key >= begin) & (tuples.batch.key < end)
        tuples.fresh = tuples.fresh[keep]
        tuples.change_batches(lambda batch: share_of(batch, begin, end))
        tuples.renumber_tables(ids)
    return part


def joined(state: State, parts: list[State], bounds: list[int]) -> None:
    """Put the states of all ranges of keys together again; what they have in common is that of the first."""
    first = parts[0]
    state.watermark = first.watermark
    state.newest = max(part.newest for part in parts)
    state.retained_from = max(part.retained_from for part in parts)
    state.has_late_change = any(part.has_late_change for part in parts)
    for part in parts:
        for counter in fields(Metrics):
            value = getattr(state.metrics, counter.name) + getattr(part.metrics, counter.name)
            setattr(state.metrics, counter.name, value)
    starts = bounds[:-1]
    state.slices = concat_slices(
        [part.slices.changed(key=part.slices.key + at) for part, at in zip(parts, starts, strict=True)]
    )
    state.emitted = _joined_tables([part.emitted for part in parts], starts)
    state.extents = _joined_tables(
        [{name: table.grown(part.key_count) for name, table in part.extents.items()} for part in parts],
        starts,
    )
    tuples = [part.tuples for part in parts if part.tuples is not None]
    if tuples:
        state.tuples = _joined_tuples(tuples, bounds)


def _joined_tables(parts: list[dict[str, _T]], starts: list[int]) -> dict[str, _T]:
    """The rows of all parts, table by table, with the keys of the whole."""
    result: dict[str, _T] = {}
    for part, start in zip(parts, starts, strict=True):
        for name, table in part.items():
            moved = _moved(table, start)
            result[name] = result[name].join(moved) if name in result else moved
    return result


def _moved(table: _T, start: int) -> _T:
    keys = table.columns.get("key")
    if keys is None or not start:
        return table
    count = int(keys.max(initial=-1)) + 1
    return table.renumbered(np.arange(start, start + count, dtype=np.int64))


def _joined_tuples(parts: list[TupleState], bounds: list[int]) -> TupleState:
    starts = bounds[:-1]
    whole = parts[0].draft()
    pairs = list(zip(parts, starts, strict=True))
    batches = [(_behind(part.batch, at), part.fresh) for part, at in pairs if part.batch is not None]
    whole.batch = concat([batch for batch, _ in batches]) if batches else None
    whole.fresh = np.concatenate([np.zeros(0, dtype=np.bool_), *(fresh_ for _, fresh_ in batches)])
    whole.arrived = tuple(_behind(batch, at) for part, at in pairs for batch in part.arrived)
    whole.counted = all(part.counted for part in parts)
    whole.positions = Positions(
        np.concatenate([part.positions.base for part in parts]),
        np.concatenate([part.positions.reached for part in parts]),
        _stacked([part.positions.skipped for part in parts]),
    )
    whole.committed = _joined_progress([part.committed for part in parts])
    whole.sliced = _joined_progress([part.sliced for part in parts])
    whole.closed = _joined_tables([part.closed for part in parts], starts)
    whole.expired = _joined_tables([part.expired for part in parts], starts)
    whole.count_texts()
    whole.offsets = np.zeros(bounds[-1] + 1, dtype=np.int64)
    if whole.batch is not None:
        whole.index(bounds[-1])
    return whole


def _behind(batch: Batch, start: int) -> Batch:
    return Batch(batch.key + start, batch.time, batch.seq, batch.values)


def _joined_progress(parts: list[Progress]) -> Progress:
    has_lives = parts[0].life is not None
    return Progress(
        np.concatenate([part.rank for part in parts]),
        _stacked([part.contexts for part in parts]),
        np.concatenate([part.lives[0] for part in parts]) if has_lives else None,
        np.concatenate([part.lives[1] for part in parts]) if has_lives else None,
        _stacked([part.firsts for part in parts]),
    )


def _stacked(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
