"""Stores that persist from one watermark to the next and are updated with the slices that changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.base import Combiner, View, assemble
from muntin.slicing.combining.deferred_combines import DeferredCombines, PartialRef
from muntin.slicing.combining.slice_comparison_kernels import same_slices
from muntin.slicing.partials import PartialSet, States
from muntin.stores import Store

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEAST_TO_COMPACT = 4096
"""Up to this many rows of partials, dead rows are not searched for."""


@dataclass(slots=True)
class Contents:
    """Identity of slices: two slices that are equal in all three columns have the same tuples.

    Tuples are only added to a slice, so between two folds of the table an equal count means equal tuples.
    Slices that are cut again from stored tuples have marks.
    """

    first: Column
    n: Column
    mark: Column

    @classmethod
    def of(cls, view: View, rows: slice | Column) -> Contents:
        """The identity of the slices in these rows of the table."""
        table = view.table
        contents = cls(table.first[rows], table.n[rows], table.mark[rows])
        # A view would keep the whole table alive, even after the last tuple of the key.
        return contents if 2 * len(contents) > len(table) else contents.at(np.arange(len(contents)))

    def __len__(self) -> int:
        return len(self.first)

    def between(self, start: int, end: int) -> Contents:
        """The slices from one position to another."""
        return Contents(self.first[start:end], self.n[start:end], self.mark[start:end])

    def at(self, index: Column) -> Contents:
        """The slices at these positions."""
        return Contents(self.first[index], self.n[index], self.mark[index])

    def equals(self, other: Contents) -> bool:
        """Whether two sequences of the same length have the same slices."""
        return bool(same_slices(self.first, self.n, self.mark, other.first, other.n, other.mark))

    def same(self, other: Contents) -> Mask:
        """For each position, whether the slices there are the same."""
        same: Mask = (self.first == other.first) & (self.n == other.n) & (self.mark == other.mark)
        return same


NO_SLICES = Contents(*(np.zeros(0, dtype=np.int64) for _ in range(3)))


class RebuiltStore(NamedTuple):
    """A store that is built at each watermark, and the slices per window up to which it is faster."""

    store: Combiner
    most_slices: int


class StoreWindows(ABC):
    """Windows that one store serves at one watermark."""

    @abstractmethod
    def new_rows(self) -> Column:
        """Rows of the table to insert into the store."""

    @abstractmethod
    def serve(self, partials: list[PartialRef]) -> Iterator[tuple[int, PartialRef]]:
        """Insert the new rows, evict old ones and query: pairs of a window and its partial."""


class PersistentStores(Combiner):
    """Stores of `muntin.stores` over references to partials, one per key or per query and key.

    At a watermark with fewer slices per window than its bound, the store `rebuilt` combines all windows.
    """

    def __init__(self, rebuilt: RebuiltStore | None = None) -> None:
        self._rebuilt = rebuilt
        self._ledger: DeferredCombines | None = None
        self._stores: dict[Any, Any] = {}
        self._compact_above = LEAST_TO_COMPACT
        self._folds = 0

    def reset(self) -> None:
        self._ledger, self._stores, self._compact_above = None, {}, LEAST_TO_COMPACT

    @property
    def nbytes(self) -> int:
        return 0 if self._ledger is None else self._ledger.nbytes

    @abstractmethod
    def _groups(self, view: View) -> list[StoreWindows]:
        """The windows of each store; windows of no store are walked over."""

    @abstractmethod
    def _live_stores(self, view: View) -> Iterator[Store]:
        """The stores of keys that still have slices; the others are dropped."""

    def reduce(self, partials: PartialSet, states: States, view: View) -> tuple[States, int]:
        if self._rebuilt is not None and len(view) * self._rebuilt.most_slices > len(view.table):
            return self._rebuilt.store.reduce(partials, states, view)
        if view.folds != self._folds:
            # A new slice may have the start and the size of one that was joined to another.
            self.reset()
            self._folds = view.folds
        if self._ledger is None or self._ledger.partials.partials != partials.partials:
            self.reset()
            self._ledger = DeferredCombines(partials)
        deferred = self._ledger
        groups = self._groups(view)
        new_rows = [group.new_rows() for group in groups]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *new_rows])
        references = deferred.add(partials.take(states, rows), len(rows))
        windows: list[int] = []
        numbers: list[int] = []
        at = 0
        for group, inserted in zip(groups, new_rows, strict=True):
            for window, (number, _) in group.serve(references[at : at + len(inserted)]):
                windows.append(window)
                numbers.append(number)
            at += len(inserted)
        combines = deferred.execute() * len(partials.partials)
        if not windows:
            return partials.reduce(states, view.rows, view.lo, view.hi), view.walked * len(partials.partials)
        combined = deferred.gather(np.array(numbers, dtype=np.int64))
        if deferred.size > self._compact_above:
            self._compact(deferred, view)
        result, more = assemble(partials, states, view, np.array(windows, dtype=np.int64), combined)
        return result, combines + more

    def _compact(self, deferred: DeferredCombines, view: View) -> None:
        """Drop the rows of partials that are in no store: O(n), at most once per O(n) new rows."""
        live: set[int] = set()

        def collect(partial: PartialRef) -> PartialRef:
            live.add(partial[0])
            return partial

        stores = list(self._live_stores(view))
        for store in stores:
            store.map_partials(collect)
        renumbered = deferred.retain(np.array(sorted(live), dtype=np.int64))
        change: Callable[[PartialRef], PartialRef] = lambda partial: renumbered[partial[0]]  # noqa: E731
        for store in stores:
            store.map_partials(change)
        self._compact_above = max(LEAST_TO_COMPACT, 4 * deferred.size)
