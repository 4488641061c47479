"""FiBA over slices: one finger tree for each key, updated by the slices that changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.base import View
from muntin.slicing.combining.ledger import NUMBERS, Numbered
from muntin.slicing.combining.standing import NO_CONTENTS, Contents, Group, Standing
from muntin.stores import FiBA

Column = npt.NDArray[np.int64]

ARITY = 4
"""Fewer combines than 8, fewer steps than 2."""
APART = 2**32
"""Distance between neighbours in a tree: so many slices can come between two."""
FAR = 2**62
"""So far away from 0 a tree begins anew."""


@dataclass(frozen=True, slots=True)
class Change:
    """How a tree becomes one of other slices: drop some in front, others anywhere, insert new ones.

    `place`: where each of the slices stands in the tree then; None if the new ones stand behind all
    others. `gone`: places there until now. `new`: positions among the slices.
    """

    place: Column | None
    front: int
    gone: Column
    new: Column


class FingerTree:
    """The slices of a key in a tree, each at a time that is its place there.

    Places are made up: where tuples have the same time, several slices may begin with it.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin with an empty tree."""
        self.store = FiBA(NUMBERS, arity=ARITY, compiled=False)
        self.contents = NO_CONTENTS
        self._room = np.zeros(16, dtype=np.int64)
        self._start = 0

    @property
    def place(self) -> Column:
        """Where each slice stands."""
        return self._room[self._start : self._start + len(self.contents)]

    def change(self, contents: Contents) -> Change:
        """What to do so that these slices stand in the tree."""
        held, place = self.contents, self.place
        front = int(np.searchsorted(held.first, contents.first[0]))
        count = len(held) - front
        if count <= len(contents) and held.part(front, len(held)).equals(contents.part(0, count)):
            new = np.arange(count, len(contents))
            if not len(held) or place[-1] + APART * len(new) < FAR:
                return Change(None, front, NO_CONTENTS.first, new)
            found = None
        else:
            old = counterparts(held.first, contents.first)
            found = places(place, old)
        if found is None or max(-int(found[0]), int(found[-1])) >= FAR:
            self.restart()
            return Change(None, 0, NO_CONTENTS.first, np.arange(len(contents)))
        same = old >= 0
        same[same] = held.at(old[same]).same(contents.at(np.flatnonzero(same)))
        front = int(old[same][0]) if same.any() else len(held)
        gone = np.setdiff1d(place[front:], place[old[same]], assume_unique=True)
        return Change(found, front, gone, np.flatnonzero(~same))

    def apply(self, contents: Contents, change: Change, partials: list[Numbered]) -> None:
        """Evict and insert; these are the partials of the new slices."""
        place = self.place
        if change.front:
            self.store.evict_before(int(place[change.front - 1]) + 1)
        for time in change.gone.tolist():
            self.store.evict(time)
        if change.place is None:
            last = int(place[-1]) if len(place) else 0
            self._start += change.front
            self._follow(place[change.front :], last + APART * np.arange(1, len(change.new) + 1))
        else:
            self._room, self._start = change.place, 0
        self.contents = contents
        self.store.insert_many(self.place[change.new].tolist(), partials)

    def _follow(self, before: Column, behind: Column) -> None:
        """Put places behind those that are there, where there is room: O(1) amortised each."""
        end = self._start + len(before)
        if end + len(behind) > len(self._room):
            room = np.empty(2 * (len(before) + len(behind)), dtype=np.int64)
            room[: len(before)] = before
            self._room, self._start, end = room, 0, len(before)
        self._room[end : end + len(behind)] = behind


def counterparts(old: Column, new: Column) -> Column:
    """For each new slice the old one that begins at the same time, the i-th for the i-th; -1 if none does."""
    at = np.searchsorted(old, new) + np.arange(len(new)) - np.searchsorted(new, new)
    inside = at < len(old)
    inside[inside] = old[at[inside]] == new[inside]
    return np.where(inside, at, -1)


def places(held: Column, old: Column) -> Column | None:
    """Old slices keep their places, new ones come between; None if there is no room."""
    known = np.flatnonzero(old >= 0)
    if not len(known):
        return None
    place = np.zeros(len(old), dtype=np.int64)
    place[known] = held[old[known]]
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


class TreeGroup(Group):
    """The windows of one key, from one watermark."""

    def __init__(self, tree: FingerTree, view: View, windows: Column, begin: Column, end: Column) -> None:
        self.tree, self.windows = tree, windows
        first, key = view.table.first, int(view.key[windows[0]])
        row, after = (int(np.searchsorted(view.table.key, key, side=side)) for side in ("left", "right"))
        row = min(int(begin.min()), row + int(np.searchsorted(first[row:after], view.needed())))
        stop = int(end.max())
        if len(tree.contents):  # what stands in the tree beyond these windows stays there
            stop = max(
                stop, row + int(np.searchsorted(first[row:after], tree.contents.first[-1], side="right"))
            )
        self.begin, self.end, self.row = begin - row, end - row, row
        self.contents = Contents.of(view, slice(row, stop))
        self.change = tree.change(self.contents)

    def wanted(self) -> Column:
        return self.row + self.change.new

    def serve(self, partials: list[Numbered]) -> Iterator[tuple[int, Numbered]]:
        tree = self.tree
        tree.apply(self.contents, self.change, partials)
        place = tree.place
        everything = (0, len(place))
        asked = (column.tolist() for column in (self.windows, self.begin, self.end))
        for window, begin, end in zip(*asked, strict=True):
            if (begin, end) == everything:
                yield window, tree.store.query()
            else:
                yield window, tree.store.query_range(int(place[begin]), int(place[end - 1]) + 1)


class Fingers(Standing):
    """Out of order, many windows, any monoid: O(log n) combines per window and changed slice."""

    def _groups(self, view: View) -> list[Group]:
        full = np.flatnonzero(view.hi > view.lo)
        begin, end = view.row(view.lo[full]), view.row(view.hi[full] - 1) + 1
        # A window that leaves out slices in its middle is no range of the tree.
        whole = end - begin == view.hi[full] - view.lo[full]
        order = np.flatnonzero(whole)
        order = order[np.argsort(view.key[full[order]], kind="stable")]
        if not len(order):
            return []
        bounds = np.flatnonzero(np.diff(view.key[full[order]]))
        groups: list[Group] = []
        for mine in np.split(order, bounds + 1):
            key = int(view.key[full[mine[0]]])
            tree = self._stores.get(key) or FingerTree()
            self._stores[key] = tree
            groups.append(TreeGroup(tree, view, full[mine], begin[mine], end[mine]))
        return groups

    def _standing(self, view: View) -> Iterator[FiBA]:
        alive = set(np.unique(view.table.key).tolist())
        self._stores = {key: tree for key, tree in self._stores.items() if key in alive}
        return (tree.store for tree in self._stores.values())
