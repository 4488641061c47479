"""Shares of a state by key: a state is divided into ranges of keys, and their states are joined again.

All tables of a state refer to keys by number. A share has the rows of its keys, numbered from 0.
"""

from __future__ import annotations

from dataclasses import fields
from functools import reduce
from itertools import pairwise
from typing import TypeVar

import numpy as np

from muntin.metrics import Metrics
from muntin.slicing.batch import Batch
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.emission.changes import ComparedWindows
from muntin.slicing.schema import Table
from muntin.slicing.slice_table import concat
from muntin.slicing.state import State
from muntin.slicing.tuple_state import TupleState
from muntin.slicing.tuple_tables import Positions, Progress, TupleRows

__all__ = ["divided", "joined", "key_bounds"]

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


def divided(plan: BoundPlan, state: State, bounds: list[int]) -> list[State]:
    """A state for each range of keys."""
    return [_state_of_keys(plan, state, begin, end) for begin, end in pairwise(bounds)]


def _state_of_keys(plan: BoundPlan, state: State, begin: int, end: int) -> State:
    share = state.draft()
    share.metrics, share.key_count, share.store = Metrics(), end - begin, None
    share.change_tables(lambda table: table.of_keys(begin, end))
    if share.tuples is not None:
        share.tuples.index(len(share.tuples.positions))
    return share


def joined(state: State, shares: list[State], bounds: list[int]) -> None:
    """Join the states of all ranges of keys into `state`."""
    first = shares[0]
    state.watermark = first.watermark
    state.newest = max(share.newest for share in shares)
    state.retained_from = max(share.retained_from for share in shares)
    state.has_late_change = any(share.has_late_change for share in shares)
    for share, (begin, end) in zip(shares, pairwise(bounds), strict=True):
        for counter in fields(Metrics):
            value = getattr(state.metrics, counter.name) + getattr(share.metrics, counter.name)
            setattr(state.metrics, counter.name, value)
        share.change_tables(lambda table, begin=begin, end=end: table.among_all(begin, end))
    state.slices = concat([share.slices for share in shares])
    state.emitted = _joined_tables([share.emitted for share in shares])
    state.compared = reduce(ComparedWindows.join, (share.compared for share in shares))
    state.extents = _joined_tables([share.extents for share in shares])
    tuples = [share.tuples for share in shares if share.tuples is not None]
    if tuples:
        state.tuples = _joined_tuples(tuples)


def _joined_tables(tables_of_keys: list[dict[str, _T]]) -> dict[str, _T]:
    """The rows of all shares, table by table."""
    result: dict[str, _T] = {}
    for tables in tables_of_keys:
        for name, table in tables.items():
            result[name] = result[name].join(table) if name in result else table
    return result


def _joined_tuples(tuple_states: list[TupleState]) -> TupleState:
    whole = tuple_states[0].draft()
    ordered = [TupleRows(each.batch, each.fresh) for each in tuple_states if each.batch is not None]
    if ordered:
        rows = reduce(TupleRows.join, ordered)
        whole.batch, whole.fresh = rows.batch, rows.fresh
    whole.arrived = tuple(batch for tuples in tuple_states for batch in tuples.arrived)
    whole.counted = all(tuples.counted for tuples in tuple_states)
    whole.positions = reduce(Positions.join, (tuples.positions for tuples in tuple_states))
    whole.committed = reduce(Progress.join, (tuples.committed for tuples in tuple_states))
    whole.sliced = reduce(Progress.join, (tuples.sliced for tuples in tuple_states))
    whole.closed_windows = _joined_tables([tuples.closed_windows for tuples in tuple_states])
    whole.expired = _joined_tables([tuples.expired for tuples in tuple_states])
    whole.count_texts()
    whole.index(len(whole.positions))
    return whole
