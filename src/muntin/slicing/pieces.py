"""A batch on several threads: each slices a piece of time, from one edge to another.

Most tuples come near the order of their times, so a piece is a range of the batch, and those of other
pieces among them are left out: no tuple is moved. No slice lies in two pieces, and each is made of the
same tuples in the same order. So the slices are those of `slice_batch`, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.slicing.batch import Batch
from muntin.slicing.partials import PartialSet
from muntin.slicing.slicer import Lifted, cells_of, lift_cells, rows_of_cells, slice_sorted
from muntin.slicing.table import SliceTable, joined
from muntin.timeline import TimeExtent
from muntin.timeline.extent_kernels import block_extents

__all__ = ["Blocks", "Sliced", "slice_pieces"]

Column = npt.NDArray[np.int64]
Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

_AT_MOST = 1.25
"""Where pieces have more rows per tuple, too much of each is left out."""
BLOCK = 4096
"""Tuples whose smallest and largest time are noted: pieces begin and end with whole blocks."""
_PLENTY = 8
"""So many tuples per cell are worth it that the cells of all pieces are put together in the end."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The smallest and the largest time of each block of tuples."""

    times: Column
    low: Column
    high: Column
    ordered: bool
    """Whether no time goes back behind the one before."""

    @classmethod
    def of(cls, times: Column, n: int, each: Each) -> Blocks:
        """Look at the times in n pieces."""
        number = -(-len(times) // BLOCK)
        low, high = np.empty((2, number), dtype=np.int64)
        size = -(-number // n) * BLOCK

        def look(begin: int) -> bool:
            return block_extents(times, begin, min(begin + size, len(times)), BLOCK, low, high)

        return cls(times, low, high, all(list(each(look, range(0, len(times), size)))))

    @property
    def extent(self) -> TimeExtent:
        """Of all times; there is at least one."""
        return int(self.low.min()), int(self.high.max()), self.ordered

    def rows_within(self, low: int, high: int) -> tuple[int, int]:
        """A range of rows that has all times from `low` to `high`, up to whole blocks."""
        inside = np.flatnonzero((self.high >= low) & (self.low <= high))
        if not len(inside):
            return 0, 0
        return int(inside[0]) * BLOCK, min(int(inside[-1] + 1) * BLOCK, len(self.times))


@dataclass(frozen=True, slots=True)
class Sliced:
    """The slices of a batch, which are put together for some of its keys at a time."""

    offsets: Column
    """How many rows stand before those of each key; at the end how many there are."""
    rows: Callable[[int, int], SliceTable]
    """The rows of the keys from one to another, as keys 0, 1, 2, ..."""

    @property
    def size(self) -> int:
        """How many rows there are in all."""
        return int(self.offsets[-1])


def slice_pieces(
    batch: Batch, edges: Column, gap: int, blocks: Blocks, partials: PartialSet, n: int, each: Each
) -> Sliced | None:
    """As `slice_batch`, in n pieces; None where the keys of a part are better sliced by themselves.

    That is so where tuples must be sorted, come in no order at all, or are few for each slice.

    `each` calls a function for each piece, on a thread of its own.
    """
    if batch.extent.ordered and batch.extent.one_key:
        return _in_order(batch, edges, gap, partials, n, each)
    cells = cells_of(batch, edges, gap)
    return None if cells is None else _scattered(batch, cells, blocks, partials, n, each)


def _in_order(batch: Batch, edges: Column, gap: int, partials: PartialSet, n: int, each: Each) -> Sliced:
    beyond = np.searchsorted(edges, _times_between(batch, n), side="right")
    cuts = np.searchsorted(batch.time, edges[beyond[beyond < len(edges)]])
    bounds = np.unique([0, *cuts, len(batch)]).tolist()

    def one(bound: tuple[int, int]) -> SliceTable:
        return slice_sorted(batch.take(slice(*bound)), edges, gap, partials)

    table = joined([(table, 0, len(table)) for table in each(one, pairwise(bounds))], partials)
    return Sliced(np.array([0, len(table)]), lambda begin, end: table)  # there is one key


def _scattered(
    batch: Batch, cells: Column, blocks: Blocks, partials: PartialSet, n: int, each: Each
) -> Sliced | None:
    low, high = batch.extent.low, batch.extent.high
    keys = 1 if batch.extent.one_key else batch.keys
    if keys * (len(cells) + 1) * _PLENTY > len(batch) + 65_536:
        return None
    # Piece i has the cells from bounds[i] to bounds[i + 1]; cell c lies before the edge number c.
    between = np.searchsorted(cells, _times_between(batch, n), side="right")
    bounds = np.unique([0, *between, len(cells) + 1]).tolist()

    def times(bound: tuple[int, int]) -> tuple[int, int]:
        begin, end = bound
        return int(cells[begin - 1]) if begin else low, int(cells[end - 1]) - 1 if end <= len(cells) else high

    ranges = [blocks.rows_within(*times(bound)) for bound in pairwise(bounds)]
    if sum(end - begin for begin, end in ranges) > _AT_MOST * len(batch):
        return None

    def one(piece: tuple[tuple[int, int], tuple[int, int]]) -> Lifted:
        (begin, end), found = piece
        part, inside = batch.take(slice(*found)), cells[begin : end - 1]
        return lift_cells(part, inside, *times((begin, end)), keys, partials, others=len(bounds) > 2)

    pieces = list(each(one, zip(pairwise(bounds), ranges, strict=True)))
    offsets = np.append(0, np.cumsum(np.sum([piece.filled for piece in pieces], axis=0)))
    return Sliced(offsets, lambda begin, end: rows_of_cells(pieces, begin, end, partials))


def _times_between(batch: Batch, n: int) -> Column:
    """Times at which n pieces of about as many tuples each would meet."""
    return batch.time[[i * len(batch) // n for i in range(1, n)]]
