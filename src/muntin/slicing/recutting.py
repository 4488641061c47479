"""Partials of slices that are cut again: what did not change is taken over from the slices before.

A late tuple, or a window that begins inside of a slice, changes where slices begin. Each new slice is
compared with the old slice that holds its middle tuple:

- with the same tuples it keeps the partials, whatever its ranks are now;
- with a few other tuples it is updated, where the partials allow it: tuples that joined it are combined with
  it, and tuples that left are taken out [scotty §5.2, Fig. 6];
- otherwise its tuples are aggregated again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.errors import PlacedError
from muntin.metrics import Metrics
from muntin.planning.rules import NO, RECOMPUTE
from muntin.slicing.batch import Batch, numbers
from muntin.slicing.error_places import note_slice
from muntin.slicing.partials import PartialSet, States
from muntin.slicing.slice_table import SliceTable
from muntin.slicing.slicer import aggregated
from muntin.slicing.tuple_state import TupleState

__all__ = ["Newcomers", "recut", "slices_behind"]

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Newcomers = Mask | None
"""Which stored tuples arrived since slices were last cut; None for none of them."""
Spans = tuple[Column, Column, Column]
"""The places of tuples, and for each slice the begin and the end of a range of them."""


@dataclass(frozen=True, slots=True)
class _Match:
    """New slices beside old ones, as ranges of the stored tuples without the newcomers, and of these."""

    lo: Column
    hi: Column
    new_lo: Column
    new_hi: Column
    source: Column
    """The old slice, which has the tuples from `start` to `stop`."""
    start: Column
    stop: Column
    overlaps: Mask

    @property
    def left(self) -> Column:
        """The number of tuples of the old slice that are not in the new one."""
        left: Column = np.maximum(self.lo - self.start, 0) + np.maximum(self.stop - self.hi, 0)
        return left

    @property
    def joined(self) -> Column:
        """The number of tuples of the new slice that were not in the old one."""
        joined: Column = np.maximum(self.start - self.lo, 0) + np.maximum(self.hi - self.stop, 0)
        return joined + self.new_hi - self.new_lo

    def take(self, rows: Column) -> _Match:
        """Some of the new slices."""
        return _Match(*(getattr(self, name)[rows] for name in self.__slots__))


def recut(
    partials: PartialSet,
    tuples: TupleState,
    newcomers: Newcomers,
    metrics: Metrics,
    part: Batch,
    begins: Column,
    place: Column,
    old: SliceTable,
    end: Column,
    *,
    removes: str,
) -> States:
    """The partials of the slices of `part` from one begin to the next; `place`: where its tuples are stored.

    `old` are the slices before; `end`: where the part of each key ends. `removes`: how tuples leave
    a slice, as the plan says.
    """
    came = _before(tuples, newcomers)
    begin = _old_begins(tuples, came, old)
    order = np.argsort(begin)
    old, begin = old.take(order), begin[order]
    match = _matched(came, place[begins[:-1]], place[begins[1:] - 1] + 1, begin, old.n)
    changed, size = match.left + match.joined, np.diff(begins)
    same = match.overlaps & (changed == 0)
    rows = [np.flatnonzero(same)]
    states = [partials.take(old.states, match.source[same])]
    if removes != RECOMPUTE and partials.removable:
        few = match.overlaps & ~same & (2 * changed < size)
        few = np.flatnonzero(few if removes != NO else few & (match.left == 0))
        if len(few):
            those = match.take(few)
            try:
                updated, right = _updated(partials, tuples, newcomers, those, old)
            except PlacedError as error:
                note_slice(error, old.take(those.source))
                raise
            rows.append(few[right])
            states.append(partials.take(updated, np.flatnonzero(right)))
            count = len(partials.partials)
            metrics.recomputed_tuples += int(those.left.sum() + those.joined.sum())
            metrics.update_combines += int(those.joined.sum()) * count
            metrics.inverts += int(np.count_nonzero(those.left)) * count
    again = np.delete(np.arange(len(size)), np.concatenate(rows))
    if len(again):
        sizes = size[again]
        some = part.take(numbers(begins[again], sizes))
        rows.append(again)
        states.append(aggregated(some, np.concatenate([[0], np.cumsum(sizes)]), partials))
        metrics.recomputed_tuples += len(some)
        metrics.update_combines += len(some) * len(partials.partials)
    limit = (end - came[end])[old.key]
    known = int(np.clip(limit - begin, 0, old.n).sum())
    first = len(part) - known  # tuples that were in no slice before
    metrics.recomputed_tuples -= first
    metrics.lifts += first * len(partials.partials)
    return partials.take(partials.concat(states), np.argsort(np.concatenate(rows)))


def _before(tuples: TupleState, newcomers: Newcomers) -> Column:
    """For each place of a stored tuple the number of newcomers before it."""
    before = np.zeros(len(tuples.fresh) + 1, dtype=np.int64)
    if newcomers is not None:
        before[1:] = np.cumsum(newcomers)
    return before


def _old_begins(tuples: TupleState, came: Column, old: SliceTable) -> Column:
    """Where slices begin among the stored tuples without the newcomers."""
    begins: Column = (tuples.offsets - came[tuples.offsets])[old.key] + old.rank
    return begins - tuples.positions.base[old.key]


def _matched(came: Column, first: Column, behind: Column, begin: Column, n: Column) -> _Match:
    """New slices at first:behind beside old ones; `came`: the number of newcomers before each place."""
    lo, hi = first - came[first], behind - came[behind]
    middle = (lo + hi) // 2
    source = np.maximum(np.searchsorted(begin, middle, side="right") - 1, 0)
    start, stop = begin[source], (begin + n)[source]
    overlaps = (lo < hi) & (start <= middle) & (middle < stop)
    return _Match(lo, hi, came[first], came[behind], source, start, stop, overlaps)


def slices_behind(tuples: TupleState, newcomers: Newcomers, old: SliceTable, end: Column) -> SliceTable:
    """Those of the old slices that lie behind the end of each key's part, with their ranks of now.

    Slices that a newcomer has joined are left out.
    """
    came = _before(tuples, newcomers)
    stayed = np.flatnonzero(np.diff(came) == 0)
    begin = _old_begins(tuples, came, old)
    first, last = stayed[begin], stayed[begin + old.n - 1]
    behind = np.flatnonzero((first >= end[old.key]) & (last - first == old.n - 1))
    rank = tuples.positions.base[old.key] + first - tuples.offsets[old.key]
    return old.changed(rank=rank).take(behind)


def _updated(
    partials: PartialSet, tuples: TupleState, newcomers: Newcomers, match: _Match, old: SliceTable
) -> tuple[States, Mask]:
    """Partials of old slices after tuples joined and left, and which of them are right."""
    if newcomers is None:
        stayed, came = np.arange(len(tuples.fresh)), np.zeros(0, dtype=np.int64)
    else:
        stayed, came = np.flatnonzero(~newcomers), np.flatnonzero(newcomers)
    m = match
    joined = [(stayed, m.lo, m.start), (stayed, m.stop, m.hi), (came, m.new_lo, m.new_hi)]
    left = [(stayed, m.start, m.lo), (stayed, m.hi, m.stop)]
    states = partials.take(old.states, m.source)
    if m.joined.any():
        both = partials.concat([states, _aggregated(partials, tuples, joined)])
        size = len(m.lo)
        pairs = np.arange(2 * size).reshape(2, size).T.reshape(-1)
        states = partials.reduce(both, pairs, np.arange(0, 2 * size, 2), np.arange(2, 2 * size + 2, 2))
    if not m.left.any():
        return states, np.ones(len(m.lo), dtype=np.bool_)
    return partials.without(states, _aggregated(partials, tuples, left))


def _aggregated(partials: PartialSet, tuples: TupleState, spans: list[Spans]) -> States:
    """For each slice the partials of the tuples in all of its ranges."""
    assert tuples.batch is not None
    count = len(spans[0][1])
    sizes = [np.maximum(end - begin, 0) for _, begin, end in spans]
    owner = np.concatenate([np.repeat(np.arange(count), size) for size in sizes])
    place = np.concatenate(
        [places[numbers(begin, size)] for (places, begin, _), size in zip(spans, sizes, strict=True)]
    )
    order = np.lexsort((place, owner))
    offsets = np.searchsorted(owner[order], np.arange(count + 1))
    return aggregated(tuples.batch.take(place[order]), offsets, partials)
