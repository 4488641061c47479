"""The Stream Slicer: cuts a batch of tuples into slices and aggregates them, in one pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from muntin.aggregates.base import Groups
from muntin.slicing.batch import Batch
from muntin.slicing.partials import PartialSet
from muntin.slicing.table import SliceTable

Column = npt.NDArray[np.int64]


def slice_batch(batch: Batch, edges: Column, gap: int, partials: PartialSet) -> SliceTable:
    """The slices of a batch, sorted by (key, first), ready to be merged into the table.

    `gap` is the smallest session gap, -1 without sessions: slicing by it alone serves the sessions
    of all gaps [scotty §7.3.1]. Rows may still be finer than slices; merging them fuses the rest.
    """
    from muntin.slicing.cutting_kernels import extent

    low, high, ordered = extent(batch.time)
    one_key = len(batch) == 0 or bool((batch.key == batch.key[0]).all())
    cells = _with_gap_grid(edges, gap, low, high, 2 * len(batch) + 1024)
    if cells is None or (not one_key and _sparse(batch, len(cells))):
        return slice_sorted(batch.take(batch.order()), edges, gap, partials)
    groups, count, keys = _dense_groups(batch, cells, low, high, ordered, one_key)
    return _lift(batch, groups, count, ordered and one_key, partials, lambda g: keys[g // (len(cells) + 1)])


def slice_sorted(
    batch: Batch,
    edges: Column,
    gap: int,
    partials: PartialSet,
    forced: npt.NDArray[np.bool_] | None = None,
    rank: Column | None = None,
) -> SliceTable:
    """As `slice_batch` for tuples in (key, time, arrival) order; `forced` marks tuples that begin a slice."""
    from muntin.slicing.cutting_kernels import cut_sorted

    cuts = np.zeros(len(batch), dtype=np.bool_) if forced is None else forced
    group = np.empty(len(batch), dtype=np.int64)
    count = cut_sorted(batch.key, batch.time, edges, gap, cuts, group)
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    table = _lift(batch, group, count, True, partials, lambda g: batch.key[begins[g]])
    if rank is not None:
        table.rank = rank[begins]
    return table


def _with_gap_grid(edges: Column, gap: int, low: int, high: int, most: int) -> Column | None:
    """Edges with a grid as fine as the gap: no session can end inside a cell of it.

    So sessions are found between cells, from their first and last times, without sorting tuples.
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


def _sparse(batch: Batch, cells: int) -> bool:
    return (int(batch.key.max()) + 1) * (cells + 1) > 8 * len(batch) + 65_536


def _dense_groups(
    batch: Batch, cells: Column, low: int, high: int, ordered: bool, one_key: bool
) -> tuple[Column, int, Column]:
    """Group of each tuple in a dense grid of (key, cell); how many groups; the keys."""
    from muntin.slicing.cutting_kernels import assign, assign_sorted, lookup_table, spread

    group = np.empty(len(batch), dtype=np.int64)
    if ordered:
        assign_sorted(batch.time, cells, group)
    else:
        shift = max(0, int(high - low).bit_length() - (4 * len(cells) + 4).bit_length())
        table = lookup_table(cells, low, shift, int((high - low) >> shift) + 1)
        assign(batch.time, cells, table, low, shift, group)
    width = len(cells) + 1
    if one_key:
        return group, width, batch.key[:1]
    keys = int(batch.key.max()) + 1
    spread(group, batch.key, width)
    return group, keys * width, np.arange(keys, dtype=np.int64)


def _lift(
    batch: Batch,
    group: Column,
    count: int,
    ordered: bool,
    partials: PartialSet,
    key_of: Callable[[Column], Column],
) -> SliceTable:
    """Aggregate the tuples of each group into a row; groups without tuples give none."""
    from muntin.slicing.cutting_kernels import describe, describe_sorted

    meta = [np.empty(count, dtype=np.int64) for _ in range(4)]
    (describe_sorted if ordered else describe)(group, batch.time, batch.seq, *meta)
    states = partials.lift(Groups(count, group, ordered, batch.time, batch.seq, batch.values))
    first, last, n, mark = meta
    full = np.flatnonzero(n)
    if len(full) < count:
        first, last, n, mark = first[full], last[full], n[full], mark[full]
        states = partials.take(states, full)
    return SliceTable(
        key=key_of(full),
        first=first,
        last=last,
        n=n,
        fresh=n.copy(),
        mark=mark,
        rank=np.full(len(full), -1, dtype=np.int64),
        level=np.zeros(len(full), dtype=np.int64),
        states=states,
    )
