"""FiBA over slices: one finger tree per key, updated with the slices that changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.base import View
from muntin.slicing.combining.deferred_combines import BY_REFERENCE, PartialRef
from muntin.slicing.combining.persistent import NO_SLICES, Contents, PersistentStores, SliceStore
from muntin.stores import FiBA

Column = npt.NDArray[np.int64]

ARITY = 4
"""Minimum arity of nodes: it needs fewer combines than 8 and fewer levels than 2."""
APART = 2**32
"""Distance of new neighbours in a tree: up to this many slices can be inserted between two."""
FAR = 2**62
"""Bound of the absolute value of places: beyond it the tree is built again."""


class FingerTree(SliceStore):
    """The slices of a key in a tree, each at a place that the tree takes for its time.

    Places are not the times of slices, because several slices may begin at the same time.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Empty the tree."""
        self.store = FiBA(BY_REFERENCE, arity=ARITY, compiled=False)
        self.contents = NO_SLICES
        self._room = np.zeros(16, dtype=np.int64)
        self._start = 0

    @property
    def place(self) -> Column:
        """The place of each slice."""
        return self._room[self._start : self._start + len(self.contents)]

    def prepare(self, view: View, windows: Column) -> Column:
        begin, end = view.row(view.lo[windows]), view.row(view.hi[windows] - 1) + 1
        first, key = view.table.first, int(view.key[windows[0]])
        row, after = (int(np.searchsorted(view.table.key, key, side=side)) for side in ("left", "right"))
        row = min(int(begin.min()), row + int(np.searchsorted(first[row:after], view.needed())))
        stop = int(end.max())
        if len(self.contents):  # slices of the tree after these windows remain
            newest = self.contents.first[-1]
            stop = max(stop, row + int(np.searchsorted(first[row:after], newest, side="right")))
        self.windows = zip(windows.tolist(), (begin - row).tolist(), (end - row).tolist(), strict=True)
        self.new = self._change(Contents.of(view, slice(row, stop)))
        return row + self.new

    def _change(self, contents: Contents) -> Column:
        """Compare with the slices of the tree; sets what to evict and all places, and returns what is new."""
        slices, place = self.contents, self.place
        front = int(np.searchsorted(slices.first, contents.first[0]))
        count = len(slices) - front
        added = len(contents) - count
        self.contents, self.gone = contents, NO_SLICES.first
        if (
            added >= 0
            and slices.at(slice(front, None)).equals(contents.at(slice(count)))
            and (not len(slices) or place[-1] + APART * added < FAR)
        ):
            self.evicted = int(place[front - 1]) + 1 if front else None
            self._append_places(place, front, added)
            return np.arange(count, len(contents))
        old = counterparts(slices.first, contents.first)
        new_place = places(place, old)
        if new_place is None or max(-int(new_place[0]), int(new_place[-1])) >= FAR:
            self.restart()
            return self._change(contents)
        same = old >= 0
        same[same] = slices.at(old[same]).same(contents.at(np.flatnonzero(same)))
        front = int(old[same][0]) if same.any() else len(slices)
        self.evicted = int(place[front - 1]) + 1 if front else None
        self.gone = np.setdiff1d(place[front:], place[old[same]], assume_unique=True)
        self._room, self._start = new_place, 0
        return np.flatnonzero(~same)

    def _append_places(self, place: Column, front: int, added: int) -> None:
        """Drop the first places and append some: O(1) amortised each."""
        end, last = self._start + len(place), int(place[-1]) if len(place) else 0
        self._start += front
        if end + added > len(self._room):
            room = np.empty(2 * (len(place) - front + added), dtype=np.int64)
            room[: len(place) - front] = place[front:]
            self._room, self._start, end = room, 0, len(place) - front
        if added == 1:
            self._room[end] = last + APART
        else:
            self._room[end : end + added] = last + APART * np.arange(1, added + 1)

    def serve(self, partials: list[PartialRef]) -> Iterator[tuple[int, PartialRef]]:
        if self.evicted is not None:
            self.store.evict_before(self.evicted)
        for time in self.gone.tolist():
            self.store.evict(time)
        place = self.place
        self.store.insert_many(place[self.new].tolist(), partials)
        for window, begin, end in self.windows:
            if (begin, end) == (0, len(place)):
                yield window, self.store.query()
            else:
                yield window, self.store.query_range(int(place[begin]), int(place[end - 1]) + 1)


def counterparts(old: Column, new: Column) -> Column:
    """For each new slice the old one with the same start, the i-th of several for the i-th; -1 if none."""
    at = np.searchsorted(old, new) + np.arange(len(new)) - np.searchsorted(new, new)
    inside = at < len(old)
    inside[inside] = old[at[inside]] == new[inside]
    return np.where(inside, at, -1)


def places(old_place: Column, old: Column) -> Column | None:
    """The places of slices: old ones as before, new ones between them; None if a gap is too small."""
    known = np.flatnonzero(old >= 0)
    if not len(known):
        return None
    place = np.zeros(len(old), dtype=np.int64)
    place[known] = old_place[old[known]]
    first, last = int(known[0]), int(known[-1])
    place[:first] = place[first] - APART * np.arange(first, 0, -1)
    place[last + 1 :] = place[last] + APART * np.arange(1, len(old) - last)
    for i in np.flatnonzero(np.diff(known) > 1).tolist():
        a, b = int(known[i]), int(known[i + 1])
        step = int(place[b] - place[a]) // (b - a)
        if step < 1:
            return None
        place[a + 1 : b] = place[a] + step * np.arange(1, b - a)
    return place


class FingerTrees(PersistentStores):
    """Finger trees for streams out of order and any monoid: O(log n) combines per window or changed slice."""

    per_window = False
    serves_ranges = True

    def _new_store(self) -> FingerTree:
        return FingerTree()

    def _served(self, view: View, windows: Column) -> Column:
        # A window that omits slices between its first and last one is no range of the tree.
        lo, hi = view.lo[windows], view.hi[windows]
        whole: Column = windows[view.row(hi - 1) + 1 - view.row(lo) == hi - lo]
        return whole
