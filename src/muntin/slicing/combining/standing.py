"""Stores that stand from one watermark to the next, and follow the slices that changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.base import Combiner, View, assemble
from muntin.slicing.combining.ledger import Ledger, Numbered
from muntin.slicing.combining.standing_kernels import same_slices
from muntin.slicing.partials import PartialSet, States
from muntin.stores import Store

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FEW = 4096
"""So many numbers are never worth the work of forgetting some."""


@dataclass(slots=True)
class Contents:
    """What tells slices apart: equal in all three, they hold the same tuples.

    Tuples only ever join a slice, so between two folds of the table equal numbers are equal contents;
    slices of kept tuples, which are cut again and again, have marks.
    """

    first: Column
    n: Column
    mark: Column

    @classmethod
    def of(cls, view: View, rows: slice | Column) -> Contents:
        """Of these rows of the table."""
        table = view.table
        found = cls(table.first[rows], table.n[rows], table.mark[rows])
        # A view keeps the whole table alive, also after the key fell silent.
        return found if 2 * len(found) > len(table) else found.at(np.arange(len(found)))

    def __len__(self) -> int:
        return len(self.first)

    def part(self, start: int, end: int) -> Contents:
        """Some slices in a row."""
        return Contents(self.first[start:end], self.n[start:end], self.mark[start:end])

    def at(self, index: Column) -> Contents:
        """The slices at these positions."""
        return Contents(self.first[index], self.n[index], self.mark[index])

    def equals(self, other: Contents) -> bool:
        """Whether all slices of two stretches of the same length are the same."""
        return bool(same_slices(self.first, self.n, self.mark, other.first, other.n, other.mark))

    def same(self, other: Contents) -> Mask:
        """Slice by slice."""
        same: Mask = (self.first == other.first) & (self.n == other.n) & (self.mark == other.mark)
        return same


NO_CONTENTS = Contents(*(np.zeros(0, dtype=np.int64) for _ in range(3)))


class Bulk(NamedTuple):
    """A store that keeps nothing, and the slices per window up to which it is quicker."""

    store: Combiner
    slices: int


class Group(ABC):
    """Windows that one store serves at one watermark."""

    @abstractmethod
    def wanted(self) -> Column:
        """Rows of the table that the store has to take in."""

    @abstractmethod
    def serve(self, partials: list[Numbered]) -> Iterator[tuple[int, Numbered]]:
        """Bring the store up to date with these rows and ask it: (window, its partial)."""


class Standing(Combiner):
    """Stores of `muntin.stores`, over the numbers of a ledger, for some part of the stream each.

    With `bulk`, watermarks that complete a window per so many slices or more are left to that store:
    it does them all at once.
    """

    def __init__(self, bulk: Bulk | None = None) -> None:
        self._bulk = bulk
        self._ledger: Ledger | None = None
        self._stores: dict[Any, Any] = {}
        self._enough = FEW
        self._folds = 0

    def reset(self) -> None:
        self._ledger, self._stores, self._enough = None, {}, FEW

    @property
    def nbytes(self) -> int:
        return 0 if self._ledger is None else self._ledger.nbytes

    @abstractmethod
    def _groups(self, view: View) -> list[Group]:
        """Who serves which windows; those that nobody serves are combined by themselves."""

    @abstractmethod
    def _standing(self, view: View) -> Iterator[Store]:
        """All stores that are still of use; the others are forgotten."""

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        if self._bulk is not None and len(view) * self._bulk.slices > len(view.table):
            return self._bulk.store.reduce(partials, states, view)
        if view.folds != self._folds:
            # Where a slice was joined to another, a new one may begin at its time, as large as it was.
            self.reset()
            self._folds = view.folds
        if self._ledger is None or self._ledger.partials.partials != partials.partials:
            self.reset()
            self._ledger = Ledger(partials)
        ledger = self._ledger
        groups = self._groups(view)
        wanted = [group.wanted() for group in groups]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *wanted])
        numbers = ledger.add(partials.take(states, rows), len(rows))
        windows: list[int] = []
        found: list[int] = []
        at = 0
        for group, mine in zip(groups, wanted, strict=True):
            for window, (number, _) in group.serve(numbers[at : at + len(mine)]):
                windows.append(window)
                found.append(number)
            at += len(mine)
        combines = ledger.settle() * len(partials.partials)
        if not windows:
            return partials.reduce(states, view.rows, view.lo, view.hi), view.walked * len(partials.partials)
        served = ledger.gather(np.array(found, dtype=np.int64))
        if ledger.size > self._enough:
            self._forget(ledger, view)
        result, more = assemble(partials, states, view, np.array(windows, dtype=np.int64), served)
        return result, combines + more

    def _forget(self, ledger: Ledger, view: View) -> None:
        """Drop the partials that no store holds any more: O(n), after as many new ones."""
        live: set[int] = set()

        def collect(partial: Numbered) -> Numbered:
            live.add(partial[0])
            return partial

        stores = list(self._standing(view))
        for store in stores:
            store.map_partials(collect)
        renumbered = ledger.keep(np.array(sorted(live), dtype=np.int64))
        change: Callable[[Numbered], Numbered] = lambda partial: renumbered[partial[0]]  # noqa: E731
        for store in stores:
            store.map_partials(change)
        self._enough = max(FEW, 4 * ledger.size)
