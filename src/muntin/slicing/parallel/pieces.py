"""Pieces of a batch, from one edge of time to another, which threads slice side by side.

Most tuples come near the order of their times, so a piece is a range of the batch, and those of other
pieces among them are left out: no tuple is moved. No slice lies in two pieces, and each is made of the
same tuples in the same order. So the slices are those of `slice_batch`, bit for bit.
"""

from __future__ import annotations

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

__all__ = ["Blocks", "Piece", "pieces_of", "slice_piece", "slice_pieces"]

Column = npt.NDArray[np.int64]

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
    def of(cls, times: Column, threads: Threads) -> Blocks:
        """Look at the times, each thread at a piece."""
        number = -(-len(times) // BLOCK)
        low, high = np.empty((2, number), dtype=np.int64)
        size = -(-number // threads.number) * BLOCK

        def look(begin: int) -> bool:
            return block_extents(times, begin, min(begin + size, len(times)), BLOCK, low, high)

        return cls(times, low, high, all(threads.map(look, range(0, len(times), size))))

    @property
    def extent(self) -> TimeExtent:
        """Of all times; there is at least one."""
        return int(self.low.min()), int(self.high.max()), self.ordered

    def rows_within(self, low: int, high: int) -> slice:
        """A range of rows that has all times from `low` to `high`, up to whole blocks."""
        inside = np.flatnonzero((self.high >= low) & (self.low <= high))
        if not len(inside):
            return slice(0, 0)
        return slice(int(inside[0]) * BLOCK, min(int(inside[-1] + 1) * BLOCK, len(self.times)))


@dataclass(frozen=True, slots=True)
class Piece:
    """The tuples of a batch from one time to another, both included, which lie in a range of its rows."""

    low: int
    high: int
    rows: slice
    cells: Column | None
    """The edges inside; None where the tuples are in order, and so none of another piece is among them."""


def pieces_of(batch: Batch, edges: Column, gap: int, blocks: Blocks, number: int) -> list[Piece] | None:
    """About so many pieces of a batch; None where tuples must be sorted, or come in no order at all."""
    low, high = batch.extent.low, batch.extent.high
    if batch.extent.ordered and batch.extent.one_key:
        beyond = np.searchsorted(edges, _times_between(batch, number), side="right")
        begins = np.unique(edges[beyond[beyond < len(edges)]])
        bounds = [low, *begins[(begins > low) & (begins <= high)].tolist(), high + 1]
        rows = np.searchsorted(batch.time, bounds).tolist()
        return [
            Piece(begin, end - 1, slice(*found), None)
            for (begin, end), found in zip(pairwise(bounds), pairwise(rows), strict=True)
        ]
    cells = cells_of(batch, edges, gap)
    if cells is None:
        return None
    # Piece i has the cells from bounds[i] to bounds[i + 1]; cell c lies before the edge number c.
    between = np.searchsorted(cells, _times_between(batch, number), side="right")
    bounds = np.unique([0, *between, len(cells) + 1]).tolist()
    pieces = []
    for begin, end in pairwise(bounds):
        first = int(cells[begin - 1]) if begin else low
        last = int(cells[end - 1]) - 1 if end <= len(cells) else high
        pieces.append(Piece(first, last, blocks.rows_within(first, last), cells[begin : end - 1]))
    rows_read = sum(piece.rows.stop - piece.rows.start for piece in pieces)
    return None if rows_read > _AT_MOST * len(batch) else pieces


def slice_piece(batch: Batch, piece: Piece, edges: Column, gap: int, partials: PartialSet) -> SliceTable:
    """The slices of one piece."""
    if piece.cells is None:
        return slice_sorted(batch.take(piece.rows), edges, gap, partials)
    return _rows([_lift(batch, piece, partials)], batch, partials)


def slice_pieces(
    batch: Batch, pieces: list[Piece], edges: Column, gap: int, partials: PartialSet, threads: Threads
) -> SliceTable | None:
    """As `slice_batch`, each thread a piece; None where tuples are few for each slice.

    Then the keys of a part are better sliced by themselves.
    """
    if pieces[0].cells is None:  # and there is one key
        return concat(threads.map(lambda piece: slice_piece(batch, piece, edges, gap, partials), pieces))
    cells = sum(len(piece.cells) + 1 for piece in pieces if piece.cells is not None)
    if _keys(batch) * cells * _PLENTY > len(batch) + 65_536:
        return None
    return _rows(threads.map(lambda piece: _lift(batch, piece, partials), pieces), batch, partials)


def _rows(lifted: list[Lifted], batch: Batch, partials: PartialSet) -> SliceTable:
    """The slices of a batch; those of a single key get its number, since cells have none."""
    keys = _keys(batch)
    table = rows_of_cells(lifted, 0, keys, partials)
    if keys == 1 and batch.ids is not None:
        table.key[:] = batch.ids[0]
    return table


def _lift(batch: Batch, piece: Piece, partials: PartialSet) -> Lifted:
    assert piece.cells is not None
    # Also where the rows of a piece are all rows, those of others may be among them.
    others = piece.low > batch.extent.low or piece.high < batch.extent.high
    part = batch.take(piece.rows)
    return lift_cells(part, piece.cells, piece.low, piece.high, _keys(batch), partials, others)


def _keys(batch: Batch) -> int:
    return 1 if batch.extent.one_key else batch.keys


def _times_between(batch: Batch, n: int) -> Column:
    """Times at which n pieces of about as many tuples each would meet."""
    return batch.time[[i * len(batch) // n for i in range(1, n)]]
