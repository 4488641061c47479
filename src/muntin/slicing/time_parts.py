"""Parts of a table by time: a thread slices the tuples of a piece, and emits the windows that end in it.

Windows that only edges end come out in the order of their ends, so the results of the parts follow each
other as they are. The windows at a seam, which may lie over slices of two pieces, have a part of their
own with those slices:

    piece            [ ---------------------- )[ ---------------------- )
    windows end in   ( ----------------------- ]                ( ------ ...
    seam                              [ ------- | ------- )
    windows end in                              ( ------- ]

It reaches back and ahead as far as the longest window, so that each window finds all of its slices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.batch import Batch
from muntin.slicing.live import LiveSet
from muntin.slicing.manager import SliceManager
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.partials import PartialSet
from muntin.slicing.pieces import Piece, slice_piece
from muntin.slicing.portions import Held, stops
from muntin.slicing.table import SliceTable
from muntin.slicing.threads import Threads
from muntin.timeline import INF, NEG_INF

__all__ = ["TimeParts"]

Column = npt.NDArray[np.int64]

LONG = 4
"""A piece is at least so many times as long as the longest window: otherwise too much of it is seam."""


@dataclass(frozen=True, slots=True)
class TimeParts:
    """The slices of each piece, in the order of time."""

    live: LiveSet
    keys: int
    pieces: list[Piece]
    tables: list[SliceTable]

    @staticmethod
    def serve(live: LiveSet, pieces: list[Piece]) -> bool:
        """Whether all windows come out in the order of their ends, and few of them at seams."""
        if len(pieces) < 2 or not live.only_edges:
            return False
        return all(piece.high - piece.low >= LONG * live.longest for piece in pieces)

    @classmethod
    def of(
        cls, batch: Batch, pieces: list[Piece], edges: Column, slices: SliceManager, threads: Threads
    ) -> TimeParts:
        """Slice the pieces side by side, as this manager of slices would."""

        def one(piece: Piece) -> SliceTable:
            return slice_piece(batch, piece, edges, slices.live.gap, slices.partials)

        return cls(slices.live, slices.keys, pieces, threads.map(one, pieces))

    @property
    def size(self) -> int:
        """How many slices there are."""
        return sum(map(len, self.tables))

    def results(self, begin: Callable[[], SlicingOperator], threads: Threads) -> list[pa.Table]:
        """The results of all windows, in order. `begin` makes an operator for a part, without slices."""
        longest, seams = self.live.longest, [piece.low for piece in self.pieces[1:]]
        tasks: list[tuple[bool, int, int, int]] = []
        before = NEG_INF
        for number, (piece, until) in enumerate(zip(self.pieces, [*seams, INF], strict=True)):
            held = Held(len(self.tables[number]), self.keys, piece.low, piece.high)
            bounds = [before, *stops(self.live, held, before, until), until]
            tasks += [(False, number, *bound) for bound in pairwise(bounds)]
            if until < INF:
                before = until + longest
                tasks.append((True, number, until, before))

        def emitted(seam: bool, number: int, before: int, until: int) -> pa.Table:
            part = begin()
            if seam:
                partials = part.slices.partials
                part.slices.add_slices(_from(self.tables[number], until - 2 * longest, partials))
                part.slices.add_slices(_upto(self.tables[number + 1], until, partials))
            else:
                part.slices.table = self.tables[number]  # as they are: each lies between two edges
            part.slices.watermark = before
            return part.emitted(until, more=True)

        return threads.map(emitted, *zip(*tasks, strict=True))


def _from(table: SliceTable, time: int, partials: PartialSet) -> SliceTable:
    """The slices from a time on."""
    return table.take(np.flatnonzero(table.first >= time), partials)


def _upto(table: SliceTable, time: int, partials: PartialSet) -> SliceTable:
    """The slices before a time."""
    return table.take(np.flatnonzero(table.first < time), partials)
