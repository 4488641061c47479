"""The Stream Slicer: cuts a batch of tuples into slices and aggregates them, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.aggregates.base import Groups
from muntin.errors import UserCodeError
from muntin.memory import fresh
from muntin.slicing.batch import Batch
from muntin.slicing.cutting_kernels import (
    assign,
    content_marks,
    cut_sorted,
    cut_sorted_time,
    filled_cells,
    gather_cells,
    lookup_table,
    rows_of_runs,
)
from muntin.slicing.error_places import note_key_of_tuple
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.slice_table import FIXED, SliceTable
from muntin.timeline import LIMIT

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def slice_batch(batch: Batch, edges: Column, gap: int, partials: PartialSet) -> SliceTable:
    """The slices of a batch, sorted by (key, first), ready to be merged into the table.

    `gap` is the smallest session gap, -1 without sessions: slicing by it alone serves the sessions
    of all gaps [scotty §7.3.1]. With a gap rows may still be finer than slices; merging them fuses the rest.
    """
    extent = (batch if batch.whole is None else batch.whole).extent
    if extent.ordered and extent.one_key:
        return slice_sorted(batch, edges, gap, partials)
    cells = cells_of(batch, edges, gap)
    if cells is None:
        return slice_sorted(batch.in_order()[0], edges, gap, partials)
    keys = 1 if extent.one_key else batch.keys
    lifted = lift_cells(batch, cells, extent.low, extent.high, keys, partials)
    table = rows_of_cells([lifted], 0, keys, partials)
    if keys == 1 and batch.ids is not None:
        table.key[:] = batch.ids[0]
    return table


def slice_sorted(batch: Batch, edges: Column, gap: int, partials: PartialSet) -> SliceTable:
    """As `slice_batch` for tuples in (key, time, arrival) order."""
    begins = cut_runs(batch, edges, gap)
    return slices_of_runs(batch, begins, partials, aggregated(batch, begins, partials))


def cut_runs(batch: Batch, edges: Column, gap: int, forced: Mask | None = None) -> Column:
    """Where slices begin among tuples in (key, time, arrival) order, and the number of tuples.

    `forced` marks tuples that begin a slice whatever the edges are.
    """
    size = len(batch.time)
    begins = fresh(size + 1)
    if forced is None and gap < 0 and batch.one_key:
        count = cut_sorted_time(batch.time, edges, begins)
    else:
        cuts = np.zeros(size, dtype=np.bool_) if forced is None else forced
        count = cut_sorted(batch.key, batch.time, edges, gap, cuts, begins)
    begins = begins[: count + 1]
    begins[count] = size
    return begins


def aggregated(batch: Batch, begins: Column, partials: PartialSet) -> States:
    """The partials of runs of tuples, from one begin to the next."""
    values = batch.values
    return _lifted(
        Groups(len(begins) - 1, None, True, batch.time, batch.arrival, values, begins), batch, partials
    )


def slices_of_runs(
    batch: Batch, begins: Column, partials: PartialSet, states: States, rank: Column | None = None
) -> SliceTable:
    """Runs of tuples as slices; with the ranks of the tuples, they know their rank and their contents."""
    rows = fresh((len(FIXED), len(begins) - 1))
    rows_of_runs(batch.ids, batch.time, begins, rows)
    table = _as_slices(partials, rows, states)
    if rank is not None:
        table.rank[:] = rank[begins[:-1]]
        content_marks(batch.seq, begins, table.mark)
    return table


def cells_of(batch: Batch, edges: Column, gap: int) -> Column | None:
    """The edges between the cells into which tuples are put as they come; None if they are better sorted."""
    whole = batch if batch.whole is None else batch.whole
    low, high = whole.extent.low, whole.extent.high
    if high - low >= LIMIT:  # differences of times would not fit int64
        return None
    cells = _with_gap_grid(edges, gap, low, high, 2 * len(whole) + 1024)
    keys = 1 if whole.extent.one_key else whole.keys
    return None if cells is None or keys * (len(cells) + 1) > 8 * len(whole) + 65_536 else cells


def _with_gap_grid(edges: Column, gap: int, low: int, high: int, most: int) -> Column | None:
    """Edges with a grid as fine as the gap: no session can end inside a cell of it.

    So sessions are detected between cells, from their first and last times, without sorting tuples.
    None when the grid has too many cells to be worth it.
    """
    inside = edges[np.searchsorted(edges, low, side="right") : np.searchsorted(edges, high, side="right")]
    if gap < 0:
        return inside
    step = max(gap, 1)
    if (high - low) // step > most:
        return None
    grid = np.arange(low + step, high + 1, step, dtype=np.int64)
    return np.union1d(inside, grid)


class Lifted(NamedTuple):
    """For each (key, cell), one key after the other: its first and last time, tuples and partials."""

    first: Column
    last: Column
    n: Column
    states: States
    width: int
    """The number of cells per key."""
    filled: Column
    """The number of cells with tuples, for each key."""


def lift_cells(
    batch: Batch, cells: Column, low: int, high: int, keys: int, partials: PartialSet, others: bool = False
) -> Lifted:
    """Aggregate the tuples of each (key, cell) from `low` to `high`; with `others` among them, left out."""
    size = keys * (len(cells) + 1)
    shift = max(0, (high - low).bit_length() - (4 * len(cells) + 4).bit_length())
    table = lookup_table(cells, low, shift, ((high - low) >> shift) + 1)
    group = fresh(len(batch))
    first, last, n = fresh((3, size))
    ids = None if keys == 1 else batch.ids
    assign(batch.time, ids, cells, table, low, high if others else None, shift, group, first, last, n)
    groups = Groups(size, group, False, batch.time, batch.arrival, batch.values, counts=n)
    states = _lifted(groups, batch, partials)
    filled = np.empty(keys, dtype=np.int64)
    filled_cells(n, len(cells) + 1, filled)
    return Lifted(first, last, n, states, len(cells) + 1, filled)


def rows_of_cells(ranges: list[Lifted], begin: int, end: int, partials: PartialSet) -> SliceTable:
    """The cells with tuples of the keys from one to another, as rows of the keys 0, 1, 2, ...

    The times of each range are after those of the ranges before.
    """
    filled = np.array([lifted.filled[begin:end] for lifted in ranges])
    each_key = filled.sum(axis=0)
    size = int(each_key.sum())
    rows, place = fresh((len(FIXED), size)), fresh(size)
    at = np.cumsum(each_key) - each_key
    states, before = [], 0
    for lifted, cells in zip(ranges, filled, strict=True):
        gather_cells(lifted.first, lifted.last, lifted.n, begin, lifted.width, before, at, rows, place)
        states.append(partials.cut(lifted.states, begin * lifted.width, end * lifted.width))
        at, before = at + cells, before + (end - begin) * lifted.width
    if size == before:  # every cell has tuples
        return _as_slices(
            partials, rows, states[0] if len(ranges) == 1 else partials.beside(states, end - begin)
        )
    joined = states[0] if len(ranges) == 1 else partials.concat(states)
    return _as_slices(partials, rows, partials.take(joined, place))


def _lifted(groups: Groups, batch: Batch, partials: PartialSet) -> States:
    try:
        return partials.lift(groups, batch.lifted)
    except UserCodeError as error:
        note_key_of_tuple(error, batch)
        raise


def _as_slices(partials: PartialSet, rows: Column, states: States) -> SliceTable:
    """Slices all of whose tuples are new, and that take part in all session classes."""
    return SliceTable(partials, rows, rows[3], np.zeros(rows.shape[1], dtype=np.int64), states)
