"""Ranges of time between two edges, which threads slice in parallel.

Most tuples arrive nearly in the order of their times, so a range of time is a range of rows, in which tuples
of other times are skipped: no tuple is moved. No slice lies in two ranges, and each slice has the same
tuples in the same order. So the slices are those of `slice_batch`, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from muntin.slicing.batch import Batch
from muntin.slicing.parallel.threads import Threads
from muntin.slicing.partials import PartialSet
from muntin.slicing.slice_table import SliceTable, concat
from muntin.slicing.slicer import Lifted, cells_of, lift_cells, rows_of_cells, slice_sorted
from muntin.timeline import TimeExtent
from muntin.timeline.extent_kernels import block_extents

__all__ = ["Blocks", "Sliced", "TimeRange", "slice_range", "slice_ranges", "time_ranges_of"]

Column = npt.NDArray[np.int64]

MOST_ROWS_READ = 1.25
"""The most rows to read per tuple: with more, threads would mostly skip tuples of other ranges."""
BLOCK = 4096
"""Tuples per block. The extent of each block is stored; ranges consist of whole blocks."""
TUPLES_PER_CELL = 8
"""The least tuples per cell: with fewer, copying the cells of all ranges costs too much (decision 49)."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The smallest and the largest time of each block of tuples."""

    times: Column
    low: Column
    high: Column
    ordered: bool
    """Whether times never decrease."""

    @classmethod
    def of(cls, times: Column, threads: Threads) -> Blocks:
        """The blocks of these times; each thread reads a share."""
        number = -(-len(times) // BLOCK)
        low, high = np.empty((2, number), dtype=np.int64)
        size = -(-number // threads.number) * BLOCK

        def look(begin: int) -> bool:
            return block_extents(times, begin, min(begin + size, len(times)), BLOCK, low, high)

        return cls(times, low, high, all(threads.map(look, range(0, len(times), size))))

    @property
    def extent(self) -> TimeExtent:
        """The extent of all times, of which there is at least one."""
        return int(self.low.min()), int(self.high.max()), self.ordered

    def rows_within(self, low: int, high: int) -> slice:
        """The range of whole blocks that contains all times from `low` to `high`."""
        inside = np.flatnonzero((self.high >= low) & (self.low <= high))
        if not len(inside):
            return slice(0, 0)
        return slice(int(inside[0]) * BLOCK, min(int(inside[-1] + 1) * BLOCK, len(self.times)))


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The tuples of a batch from time `low` to `high`, both included; all are in `rows`."""

    low: int
    high: int
    rows: slice
    cells: Column | None
    """The edges inside; None where tuples are in order, so that `rows` has no tuples of other ranges."""


def time_ranges_of(batch: Batch, edges: Column, gap: int, blocks: Blocks, n: int) -> list[TimeRange] | None:
    """About n ranges of a batch; None where tuples must be sorted or are far out of order."""
    low, high = batch.extent.low, batch.extent.high
    if batch.extent.ordered and batch.extent.one_key:
        beyond = np.searchsorted(edges, _times_between(batch, n), side="right")
        begins = np.unique(edges[beyond[beyond < len(edges)]])
        bounds = [low, *begins[(begins > low) & (begins <= high)].tolist(), high + 1]
        rows = np.searchsorted(batch.time, bounds).tolist()
        return [
            TimeRange(begin, end - 1, slice(*bounded), None)
            for (begin, end), bounded in zip(pairwise(bounds), pairwise(rows), strict=True)
        ]
    cells = cells_of(batch, edges, gap)
    if cells is None:
        return None
    # Range i has the cells from bounds[i] to bounds[i + 1]; cell c lies before the edge number c.
    between = np.searchsorted(cells, _times_between(batch, n), side="right")
    bounds = np.unique([0, *between, len(cells) + 1]).tolist()
    spans = []
    for begin, end in pairwise(bounds):
        first = int(cells[begin - 1]) if begin else low
        last = int(cells[end - 1]) - 1 if end <= len(cells) else high
        spans.append(TimeRange(first, last, blocks.rows_within(first, last), cells[begin : end - 1]))
    rows_read = sum(span.rows.stop - span.rows.start for span in spans)
    return None if rows_read > MOST_ROWS_READ * len(batch) else spans


def slice_range(batch: Batch, span: TimeRange, edges: Column, gap: int, partials: PartialSet) -> SliceTable:
    """The slices of one range of time."""
    if span.cells is None:
        return slice_sorted(batch.take(span.rows), edges, gap, partials)
    return rows_of_cells([_lift(batch, span, partials)], 0, _keys(batch), partials)


@dataclass(frozen=True, slots=True)
class Sliced:
    """The slices of a batch, joined for a range of its keys at a time."""

    offsets: Column
    """The first row of each key, and the number of rows."""
    rows: Callable[[int, int], SliceTable]
    """The rows of the keys from one to another, numbered from 0."""

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.offsets[-1])


def slice_ranges(
    batch: Batch, spans: list[TimeRange], edges: Column, gap: int, partials: PartialSet, threads: Threads
) -> Sliced | None:
    """As `slice_batch`, each thread a range; None where slices have few tuples: then slice by key."""
    if spans[0].cells is None:  # and there is one key
        tables = threads.map(lambda span: slice_range(batch, span, edges, gap, partials), spans)
        table = concat(tables)
        return Sliced(np.array([0, len(table)]), lambda begin, end: table)
    cells = sum(len(span.cells) + 1 for span in spans if span.cells is not None)
    if _keys(batch) * cells * TUPLES_PER_CELL > len(batch) + 65_536:
        return None
    lifted = threads.map(lambda span: _lift(batch, span, partials), spans)
    offsets = np.append(0, np.cumsum(np.sum([each.filled for each in lifted], axis=0)))
    return Sliced(offsets, lambda begin, end: rows_of_cells(lifted, begin, end, partials))


def _lift(batch: Batch, span: TimeRange, partials: PartialSet) -> Lifted:
    assert span.cells is not None
    # `rows` may have tuples of other ranges even where it has all rows.
    others = span.low > batch.extent.low or span.high < batch.extent.high
    tuples = batch.take(span.rows)
    return lift_cells(tuples, span.cells, span.low, span.high, _keys(batch), partials, others)


def _keys(batch: Batch) -> int:
    return 1 if batch.extent.one_key else batch.keys


def _times_between(batch: Batch, n: int) -> Column:
    """Times that divide the batch into n ranges of about the same number of tuples."""
    return batch.time[[i * len(batch) // n for i in range(1, n)]]
