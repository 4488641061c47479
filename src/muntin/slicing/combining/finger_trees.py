"""FiBA over slices: one finger tree per key, updated with the slices that changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.base import View
from muntin.slicing.combining.deferred_combines import BY_REFERENCE, PartialRef
from muntin.slicing.combining.persistent import NO_SLICES, Contents, PersistentStores, StoreWindows
from muntin.stores import FiBA

Column = npt.NDArray[np.int64]

ARITY = 4
"""Minimum arity of nodes: it needs fewer combines than 8 and fewer levels than 2."""
APART = 2**32
"""Distance of new neighbours in a tree: up to this many slices can be inserted between two."""
FAR = 2**62
"""Bound of the absolute value of places: beyond it the tree is built again."""


@dataclass(frozen=True, slots=True)
class Change:
    """The update of a tree: slices to evict at the front and elsewhere, and slices to insert.

    `place`: the place of each slice afterwards; None if new slices are appended. `front`: the number of
    slices to evict at the front. `gone`: places to evict. `new`: positions of the slices to insert.
    """

    place: Column | None
    front: int
    gone: Column
    new: Column


class FingerTree:
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

    def change(self, contents: Contents) -> Change:
        """The update after which the tree has these slices."""
        old_slices, place = self.contents, self.place
        front = int(np.searchsorted(old_slices.first, contents.first[0]))
        count = len(old_slices) - front
        rest = old_slices.between(front, len(old_slices))
        if count <= len(contents) and rest.equals(contents.between(0, count)):
            new = np.arange(count, len(contents))
            if not len(old_slices) or place[-1] + APART * len(new) < FAR:
                return Change(None, front, NO_SLICES.first, new)
            new_place = None
        else:
            old = counterparts(old_slices.first, contents.first)
            new_place = places(place, old)
        if new_place is None or max(-int(new_place[0]), int(new_place[-1])) >= FAR:
            self.restart()
            return Change(None, 0, NO_SLICES.first, np.arange(len(contents)))
        same = old >= 0
        same[same] = old_slices.at(old[same]).same(contents.at(np.flatnonzero(same)))
        front = int(old[same][0]) if same.any() else len(old_slices)
        gone = np.setdiff1d(place[front:], place[old[same]], assume_unique=True)
        return Change(new_place, front, gone, np.flatnonzero(~same))

    def apply(self, contents: Contents, change: Change, partials: list[PartialRef]) -> None:
        """Evict and insert; `partials` are those of the new slices."""
        place = self.place
        if change.front:
            self.store.evict_before(int(place[change.front - 1]) + 1)
        for time in change.gone.tolist():
            self.store.evict(time)
        if change.place is None:
            last = int(place[-1]) if len(place) else 0
            self._start += change.front
            self._append_places(place[change.front :], last + APART * np.arange(1, len(change.new) + 1))
        else:
            self._room, self._start = change.place, 0
        self.contents = contents
        self.store.insert_many(self.place[change.new].tolist(), partials)

    def _append_places(self, before: Column, added: Column) -> None:
        """Append places after those before: O(1) amortised each."""
        end = self._start + len(before)
        if end + len(added) > len(self._room):
            room = np.empty(2 * (len(before) + len(added)), dtype=np.int64)
            room[: len(before)] = before
            self._room, self._start, end = room, 0, len(before)
        self._room[end : end + len(added)] = added


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


class TreeWindows(StoreWindows):
    """The windows of one key at one watermark."""

    def __init__(self, tree: FingerTree, view: View, windows: Column, begin: Column, end: Column) -> None:
        self.tree, self.windows = tree, windows
        first, key = view.table.first, int(view.key[windows[0]])
        row, after = (int(np.searchsorted(view.table.key, key, side=side)) for side in ("left", "right"))
        row = min(int(begin.min()), row + int(np.searchsorted(first[row:after], view.needed())))
        stop = int(end.max())
        if len(tree.contents):  # slices of the tree after these windows remain
            stop = max(
                stop, row + int(np.searchsorted(first[row:after], tree.contents.first[-1], side="right"))
            )
        self.begin, self.end, self.row = begin - row, end - row, row
        self.contents = Contents.of(view, slice(row, stop))
        self.change = tree.change(self.contents)

    def new_rows(self) -> Column:
        return self.row + self.change.new

    def serve(self, partials: list[PartialRef]) -> Iterator[tuple[int, PartialRef]]:
        tree = self.tree
        tree.apply(self.contents, self.change, partials)
        place = tree.place
        everything = (0, len(place))
        columns = (column.tolist() for column in (self.windows, self.begin, self.end))
        for window, begin, end in zip(*columns, strict=True):
            if (begin, end) == everything:
                yield window, tree.store.query()
            else:
                yield window, tree.store.query_range(int(place[begin]), int(place[end - 1]) + 1)


class FingerTrees(PersistentStores):
    """Finger trees for streams out of order and any monoid: O(log n) combines per window or changed slice."""

    def _groups(self, view: View) -> list[StoreWindows]:
        full = np.flatnonzero(view.hi > view.lo)
        begin, end = view.row(view.lo[full]), view.row(view.hi[full] - 1) + 1
        # A window that omits slices between its first and last one is no range of the tree.
        whole = end - begin == view.hi[full] - view.lo[full]
        order = np.flatnonzero(whole)
        order = order[np.argsort(view.key[full[order]], kind="stable")]
        if not len(order):
            return []
        bounds = np.flatnonzero(np.diff(view.key[full[order]]))
        groups: list[StoreWindows] = []
        for windows in np.split(order, bounds + 1):
            key = int(view.key[full[windows[0]]])
            tree = self._stores.get(key) or FingerTree()
            self._stores[key] = tree
            groups.append(TreeWindows(tree, view, full[windows], begin[windows], end[windows]))
        return groups

    def _live_stores(self, view: View) -> Iterator[FiBA]:
        alive = set(np.unique(view.table.key).tolist())
        self._stores = {key: tree for key, tree in self._stores.items() if key in alive}
        return (tree.store for tree in self._stores.values())
