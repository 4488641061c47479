"""Prefix sums over slices: a window is the difference of two of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.base import Combiner, View, assemble
from muntin.slicing.combining.scanning import scan
from muntin.slicing.partials import PartialSet, States

Column = npt.NDArray[np.int64]


class Prefix(Combiner):
    """For partials that can be inverted exactly: counts, sums of integers and decimals.

    Slices between two edges that windows need are combined to one; over these run the sums, for each
    key by itself. About 3 combines per such piece and one inversion per window, however many slices
    a window has. Nothing is kept, so sums never run longer than the table.
    """

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        served = np.flatnonzero(view.hi > view.lo)
        if not len(served):
            return partials.reduce(states, view.rows, view.lo, view.hi), 0
        lo, hi = view.lo[served], view.hi[served]
        edges = np.unique(np.concatenate([lo, hi]))
        start, end = np.searchsorted(edges, lo), np.searchsorted(edges, hi)
        pieces, place, offsets = _pieces(edges, start, end, view)
        sums = partials.reduce(states, view.rows, edges[pieces], edges[pieces + 1])
        combines = int((edges[pieces + 1] - edges[pieces] - 1).sum())
        sums, scanned = scan(partials, sums, offsets)
        last, first = place[end - 1], place[start]
        begins = np.zeros(len(pieces) + 1, dtype=np.bool_)
        begins[offsets] = True
        inside = np.flatnonzero(~begins[first])
        whole = partials.take(sums, last)
        if len(inside):
            part = partials.take(sums, first[inside] - 1)
            rest = partials.invert(partials.take(whole, inside), part)
            source = np.arange(len(served))
            source[inside] = len(served) + np.arange(len(inside))
            whole = partials.take(partials.concat([whole, rest]), source)
        result, _ = assemble(partials, states, view, served, whole)
        return result, (combines + scanned + len(inside)) * len(partials.partials)


def _pieces(edges: Column, start: Column, end: Column, view: View) -> tuple[Column, Column, Column]:
    """Which pieces between edges lie in a window, each edge's place among them, and where runs begin.

    A run ends where no window goes on, or another key begins.
    """
    cover = np.zeros(len(edges), dtype=np.int64)
    np.add.at(cover, start, 1)
    np.subtract.at(cover, end, 1)
    covered = np.cumsum(cover) > 0
    pieces = np.flatnonzero(covered)
    key = view.table.key[view.row(edges[pieces])]
    begins = np.ones(len(pieces), dtype=np.bool_)
    begins[1:] = (pieces[1:] != pieces[:-1] + 1) | (key[1:] != key[:-1])
    place = np.cumsum(covered) - 1
    return pieces, place, np.concatenate([np.flatnonzero(begins), [len(pieces)]])
