"""Runs of tuples in order become slices of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.slicing.batch import distinct, numbers, ranges
from muntin.slicing.listing_kernels import rows_holding
from muntin.slicing.recutting import Newcomers, recut
from muntin.slicing.slice_manager import edges_around, insert
from muntin.slicing.slice_table import SliceTable, concat
from muntin.slicing.slicer import aggregated, cut_runs, slices_of_runs
from muntin.slicing.tuple_state import TupleState
from muntin.windows.tuple_driven import BLOCK_BITS

if TYPE_CHECKING:
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["Edges", "Runs", "build", "cut_off"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Edges = tuple[Column, Column]
"""Keys and ranks at which slices begin."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


FEW_TUPLES = 8
"""A slice of at most this many tuples is split as soon as its first tuples can be dropped."""


class Runs(NamedTuple):
    """Runs of stored tuples, each of one key, from one rank to another; sorted by key and rank."""

    key: Column
    begin: Column
    end: Column

    def with_slices(self, table: SliceTable) -> Runs:
        """These runs, and those of the slices of a table."""
        key = np.concatenate([self.key, table.key])
        begin = np.concatenate([self.begin, table.rank])
        end = np.concatenate([self.end, table.rank + table.n])
        order = np.lexsort((begin, key))
        return Runs(key[order], begin[order], end[order])


def build(
    plan: BoundPlan,
    state: State,
    tuples: TupleState,
    runs: Runs,
    edges: list[Edges],
    newcomers: Newcomers,
    taken_back: SliceTable,
    end: Column,
) -> None:
    """Cut runs of tuples into slices at the edges of windows.

    `taken_back`: slices of before the `newcomers` arrived; `end`: the position at which the runs of each
    key end. Where windows look back, slices with an edge inside are split.
    """
    assert tuples.batch is not None
    split = _split(state, tuples, edges) if plan.served.looks_back else None
    if split is not None and len(split):
        runs = runs.with_slices(split)
        taken_back = concat([split, taken_back])
    size = runs.end - runs.begin
    offsets = np.concatenate([[0], np.cumsum(size)])
    if not offsets[-1]:
        return
    index = ranges(tuples.offsets[runs.key] + runs.begin - tuples.positions.base[runs.key], size)
    part, rank = tuples.batch.take(index), numbers(runs.begin, size)
    forced = _forced_cuts(runs, offsets, edges)
    if plan.served.looks_back:
        forced |= _block_begins(part.time)
    fixed = edges_around(plan, state, *part.times[:2], part.time)
    begins = cut_runs(part, fixed, plan.served.gap, forced)
    if len(taken_back):
        place = np.arange(index.start, index.stop) if isinstance(index, slice) else index
        states = recut(
            plan.partials, tuples, newcomers, state.metrics, part, begins, place, taken_back, end,
            removes=plan.removes_tuples,
        )  # fmt: skip
    else:
        states = aggregated(part, begins, plan.partials)
        state.metrics.lifted(len(part), len(plan.partials.partials))
    rows = slices_of_runs(part, begins, plan.partials, states, rank)
    rows.fresh = np.add.reduceat(tuples.fresh[index], begins[:-1], dtype=np.int64)
    if split is not None and len(split):
        rows.level = _carry_levels(rows, split)
        table = concat([state.slices, rows])
        # Parts of split slices may have the time of later slices, so ranks order them.
        state.slices = table.take(np.lexsort((table.rank, table.first, table.key)))
    else:
        insert(plan, state, rows, fixed)


def cut_off(plan: BoundPlan, state: State, tuples: TupleState, needed: Column) -> None:
    """Split the slices of which no window needs the first half, so that their tuples can be dropped.

    `needed`: per key the rank of the first tuple that is needed. A split for fewer tuples would aggregate
    more tuples again than it drops; nothing is split for less than an eighth of the stored tuples.
    """
    table = state.slices
    ranked = np.flatnonzero(table.rank >= 0)
    key = np.arange(len(needed), dtype=np.int64)
    row = rows_holding(table.key[ranked], table.rank[ranked], table.n[ranked], key, needed)
    key = key[row >= 0]
    row = ranked[row[row >= 0]]
    drops = needed[key] - table.rank[row]
    pays = 2 * drops + FEW_TUPLES >= table.n[row]
    key = key[pays]
    if 8 * int(drops[pays].sum()) > len(tuples):
        none = np.zeros(0, dtype=np.int64)
        end = tuples.offsets[:-1] + tuples.sliced.rank - tuples.positions.base
        build(plan, state, tuples, Runs(none, none, none), [(key, needed[key])], None, plan.no_slices, end)


def _split(state: State, tuples: TupleState, edges: list[Edges]) -> SliceTable:
    """Take the slices with an edge inside out of the table."""
    table = state.slices
    ranked = np.flatnonzero(table.rank >= 0)
    key, rank = (np.concatenate(columns) for columns in zip(*edges, strict=True))
    order = np.lexsort((rank, key))
    key, rank = key[order], rank[order]
    row = rows_holding(table.key[ranked], table.rank[ranked], table.n[ranked], key, rank)
    row, key, rank = ranked[row[row >= 0]], key[row >= 0], rank[row >= 0]
    inside = (table.rank[row] < rank) & (table.rank[row] >= tuples.positions.base[key])
    rows = distinct(row[inside])
    if len(rows):
        state.metrics.splits += len(rows)
        state.slices = table.take(np.delete(np.arange(len(table)), rows))
    return table.take(rows)


def _forced_cuts(runs: Runs, offsets: Column, edges: list[Edges]) -> Mask:
    """Which tuples begin a slice because a run begins or an edge lies there."""
    forced = np.zeros(int(offsets[-1]), dtype=np.bool_)
    forced[offsets[:-1][runs.end > runs.begin]] = True
    key, rank = (np.concatenate(columns) for columns in zip(*edges, strict=True))
    run = _last_run_before(runs, key, rank)
    inside = (run >= 0) & (runs.key[run] == key) & (rank < runs.end[run])
    run, rank = run[inside], rank[inside]
    forced[offsets[run] + rank - runs.begin[run]] = True
    return forced


def _last_run_before(runs: Runs, key: Column, rank: Column) -> Column:
    """For each (key, rank) the last run that begins at or before it; -1 if none does."""
    order = np.lexsort((np.concatenate([runs.begin, rank]), np.concatenate([runs.key, key])))
    is_run = order < len(runs.key)
    last = np.empty(len(order), dtype=np.int64)
    last[order] = np.cumsum(is_run) - 1
    return last[len(runs.key) :]


def _block_begins(time: Column) -> Mask:
    """Tuples that begin a slice wherever they are, so that no slice is long; about one in 2**BLOCK_BITS.

    A hash of the time decides, so a late tuple does not move the other begins, and batches, threads and
    partitions cut alike. [scotty §10.3.3]
    """
    mixed = (time.view(np.uint64) + np.uint64(1)) * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    begins: Mask = mixed >> np.uint64(64 - BLOCK_BITS) == 0
    begins[1:] &= time[1:] != time[:-1]
    return begins


def _carry_levels(rows: SliceTable, split: SliceTable) -> Column:
    """Levels of the parts of split slices: those of the whole."""
    row = rows_holding(split.key, split.rank, split.n, rows.key, rows.rank)
    return np.where(row >= 0, split.level[row], 0)
