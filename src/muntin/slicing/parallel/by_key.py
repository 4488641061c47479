"""Shares of a state by key: a state is divided into ranges of keys, and their states are joined again.

All tables of a state refer to keys by number. A select_keys has the rows of its keys, numbered from 0.
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
from muntin.slicing.key_kernels import select_keys
from muntin.slicing.schema import Table
from muntin.slicing.slice_table import concat as concat_slices
from muntin.slicing.state import State
from muntin.slicing.tuple_state import Positions, Progress, TupleState

__all__ = ["divided", "joined", "key_bounds", "share_of"]

Column = npt.NDArray[np.int64]
_T = TypeVar("_T", bound=Table)

SAMPLE = 262_144
"""The most tuples of a batch whose keys are counted to choose the ranges."""


def key_bounds(state: State, batch: Batch | None, number: int) -> list[int]:
    """The bounds of ranges of keys that have about the same number of slices and tuples."""
    keys = state.key_count
    weights = np.bincount(state.slices.key, minlength=keys)
    tuples = [] if state.tuples is None else state.tuples.batches()
    for each in tuples if batch is None else [*tuples, batch]:
        step = 1 + len(each) // SAMPLE
        weights = weights + step * np.bincount(each.key[::step], minlength=keys)
    before = np.append(0, np.cumsum(weights))
    weight_bounds = [before[-1] * i // number for i in range(1, number)]
    bounds: list[int] = np.unique([0, *np.searchsorted(before, weight_bounds), keys]).tolist()
    return bounds


def share_of(batch: Batch, begin: int, end: int) -> Batch:
    """The tuples of the keys from `begin` to `end`, numbered from 0; sliced as in the whole batch."""
    index = fresh(len(batch) + 1)
    index = index[: select_keys(batch.key, begin, end, index)]
    ids = rows_at(batch.key, index)
    ids -= begin
    values = {e: values_at(v, index) for e, v in batch.values.items()}
    # An arrival number of the batch is that of the select_keys too: only the order of arrivals matters.
    arrival = batch.arrival if isinstance(batch.arrival, int) else batch.arrival[index]
    return Batch(ids, rows_at(batch.time, index), arrival, values, batch, among=end - begin)


def divided(plan: BoundPlan, state: State, bounds: list[int]) -> list[State]:
    """A state for each range of keys."""
    return [_state_of_keys(plan, state, begin, end) for begin, end in pairwise(bounds)]


def _state_of_keys(plan: BoundPlan, state: State, begin: int, end: int) -> State:
    share = state.draft()
    share.metrics, share.key_count, share.store = Metrics(), end - begin, plan.new_store()
    offsets = state.slices.offsets(state.key_count)
    slices = state.slices.between(int(offsets[begin]), int(offsets[end]))
    share.slices = slices.changed(key=slices.key - begin) if begin else slices
    ids = np.full(state.key_count, -1, dtype=np.int64)
    ids[begin:end] = np.arange(end - begin)
    share.emitted = {name: table.renumbered(ids) for name, table in state.emitted.items()}
    share.extents = {name: table.renumbered(ids) for name, table in state.extents.items()}
    if share.tuples is not None:
        tuples = share.tuples
        keep = np.zeros(0, dtype=np.bool_)
        if tuples.batch is not None:
            keep = (tuples.batch.key >= begin) & (tuples.batch.key < end)
        tuples.fresh = tuples.fresh[keep]
        tuples.change_batches(lambda batch: share_of(batch, begin, end))
        tuples.renumber_tables(ids)
    return share


def joined(state: State, shares: list[State], bounds: list[int]) -> None:
    """Join the states of all ranges of keys into `state`."""
    first = shares[0]
    state.watermark = first.watermark
    state.newest = max(share.newest for share in shares)
    state.retained_from = max(share.retained_from for share in shares)
    state.has_late_change = any(share.has_late_change for share in shares)
    for share in shares:
        for counter in fields(Metrics):
            value = getattr(state.metrics, counter.name) + getattr(share.metrics, counter.name)
            setattr(state.metrics, counter.name, value)
    starts = bounds[:-1]
    state.slices = concat_slices(
        [share.slices.changed(key=share.slices.key + at) for share, at in zip(shares, starts, strict=True)]
    )
    state.emitted = _joined_tables([share.emitted for share in shares], starts)
    state.extents = _joined_tables(
        [{name: table.grown(share.key_count) for name, table in share.extents.items()} for share in shares],
        starts,
    )
    tuples = [share.tuples for share in shares if share.tuples is not None]
    if tuples:
        state.tuples = _joined_tuples(tuples, bounds)


def _joined_tables(tables_of_keys: list[dict[str, _T]], starts: list[int]) -> dict[str, _T]:
    """The rows of all shares, table by table, with the keys of the whole state."""
    result: dict[str, _T] = {}
    for tables, start in zip(tables_of_keys, starts, strict=True):
        for name, table in tables.items():
            shifted = _shifted_table(table, start)
            result[name] = result[name].join(shifted) if name in result else shifted
    return result


def _shifted_table(table: _T, start: int) -> _T:
    keys = table.columns.get("key")
    if keys is None or not start:
        return table
    count = int(keys.max(initial=-1)) + 1
    return table.renumbered(np.arange(start, start + count, dtype=np.int64))


def _joined_tuples(tuple_states: list[TupleState], bounds: list[int]) -> TupleState:
    starts = bounds[:-1]
    whole = tuple_states[0].draft()
    pairs = list(zip(tuple_states, starts, strict=True))
    batches = [(_shifted_batch(each.batch, at), each.fresh) for each, at in pairs if each.batch is not None]
    whole.batch = concat([batch for batch, _ in batches]) if batches else None
    whole.fresh = np.concatenate([np.zeros(0, dtype=np.bool_), *(fresh_ for _, fresh_ in batches)])
    whole.arrived = tuple(_shifted_batch(batch, at) for tuples, at in pairs for batch in tuples.arrived)
    whole.counted = all(tuples.counted for tuples in tuple_states)
    whole.positions = Positions(
        np.concatenate([tuples.positions.base for tuples in tuple_states]),
        np.concatenate([tuples.positions.reached for tuples in tuple_states]),
        _stacked([tuples.positions.skipped for tuples in tuple_states]),
    )
    whole.committed = _joined_progress([tuples.committed for tuples in tuple_states])
    whole.sliced = _joined_progress([tuples.sliced for tuples in tuple_states])
    whole.closed = _joined_tables([tuples.closed for tuples in tuple_states], starts)
    whole.expired = _joined_tables([tuples.expired for tuples in tuple_states], starts)
    whole.count_texts()
    whole.offsets = np.zeros(bounds[-1] + 1, dtype=np.int64)
    if whole.batch is not None:
        whole.index(bounds[-1])
    return whole


def _shifted_batch(batch: Batch, start: int) -> Batch:
    return Batch(batch.key + start, batch.time, batch.seq, batch.values)


def _joined_progress(progress_of_keys: list[Progress]) -> Progress:
    has_lives = progress_of_keys[0].life is not None
    return Progress(
        np.concatenate([progress.rank for progress in progress_of_keys]),
        _stacked([progress.contexts for progress in progress_of_keys]),
        np.concatenate([progress.lives[0] for progress in progress_of_keys]) if has_lives else None,
        np.concatenate([progress.lives[1] for progress in progress_of_keys]) if has_lives else None,
        _stacked([progress.firsts for progress in progress_of_keys]),
    )


def _stacked(columns_of_keys: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        name: np.concatenate([columns[name] for columns in columns_of_keys]) for name in columns_of_keys[0]
    }
