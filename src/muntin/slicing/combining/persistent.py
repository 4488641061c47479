"""Stores that persist from one watermark to the next and are updated with the slices that changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.memory import end_to_end
from muntin.slicing.combining.base import Combiner, View
from muntin.slicing.combining.deferred_combines import DeferredCombines, PartialRef
from muntin.slicing.combining.slice_range_kernels import same_slices
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

    def at(self, index: slice | Column) -> Contents:
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


class SliceStore(ABC):
    """A store of slices, updated at each watermark in two steps: `prepare`, then `serve`."""

    store: Store

    @abstractmethod
    def prepare(self, view: View, windows: Column) -> Column:
        """Compare the store with the slices of these windows; the rows of the table to insert."""

    @abstractmethod
    def serve(self, partials: list[PartialRef]) -> Iterator[tuple[int, PartialRef]]:
        """Insert the partials of these rows, evict old slices, query: pairs of a window and its partial."""


class RebuiltStore(NamedTuple):
    """A store that is built at each watermark, and the slices per window up to which it is faster."""

    store: Combiner
    most_slices: int


class PersistentStores(Combiner):
    """Stores of `muntin.stores` over references to partials, one per key or per window and key.

    At a watermark with fewer slices per window than its bound, the store `rebuilt` combines all windows.
    """

    per_window: ClassVar[bool]
    """Whether each window has stores of its own."""

    def __init__(self, rebuilt: RebuiltStore | None = None) -> None:
        self._rebuilt = rebuilt
        self._folds = 0
        self.reset()

    def reset(self) -> None:
        self._ledger: DeferredCombines | None = None
        self._stores: dict[tuple[int, int], SliceStore] = {}
        self._compact_above = LEAST_TO_COMPACT

    @property
    def nbytes(self) -> int:
        return 0 if self._ledger is None else self._ledger.nbytes

    @abstractmethod
    def _new_store(self) -> SliceStore:
        """A store without slices."""

    def _served(self, view: View, windows: Column) -> Column:
        """Those of the windows that stores can serve; the others are walked over."""
        return windows

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
        groups = [(store, store.prepare(view, windows)) for store, windows in self._groups(view)]
        rows = end_to_end([new for _, new in groups]) if groups else NO_SLICES.first
        references = iter(deferred.add(partials.take(states, rows), len(rows)))
        served = [pair for store, new in groups for pair in store.serve(list(islice(references, len(new))))]
        combines = deferred.execute()
        if not served:
            return partials.reduce(states, view.rows, view.lo, view.hi), view.walked * len(partials.partials)
        result = deferred.gather(np.array([number for _, (number, _) in served], dtype=np.int64))
        if deferred.size > self._compact_above:
            self._compact(deferred, view)
        order = np.array([window for window, _ in served], dtype=np.int64)
        if len(order) < len(view):
            others = np.delete(np.arange(len(view)), order)
            order, lo, hi = np.concatenate([order, others]), view.lo[others], view.hi[others]
            result = partials.concat([result, partials.reduce(states, view.rows, lo, hi)])
            combines += int(np.maximum(hi - lo - 1, 0).sum())
        if len(order) > 1:
            result = partials.take(result, np.argsort(order))
        return result, combines * len(partials.partials)

    def _groups(self, view: View) -> Iterator[tuple[SliceStore, Column]]:
        """Each store that serves windows, and these in the order of their slices."""
        windows = self._served(view, np.flatnonzero(view.hi > view.lo))
        number = view.number if self.per_window else np.zeros_like(view.number)
        if len(windows) > 1:
            columns = (view.hi, view.lo, view.key, number)
            windows = windows[np.lexsort([column[windows] for column in columns])]
        number, key = number[windows], view.key[windows]
        bounds = np.flatnonzero((number[1:] != number[:-1]) | (key[1:] != key[:-1])) + 1
        for begin, end in pairwise([0, *bounds.tolist(), len(windows)] if len(windows) else []):
            name = int(number[begin]), int(key[begin])
            if name not in self._stores:
                self._stores[name] = self._new_store()
            yield self._stores[name], windows[begin:end]

    def _compact(self, deferred: DeferredCombines, view: View) -> None:
        """Drop the rows of partials that are in no store: O(n), at most once per O(n) new rows."""
        live: set[int] = set()

        def collect(partial: PartialRef) -> PartialRef:
            live.add(partial[0])
            return partial

        alive = set(np.unique(view.table.key).tolist())
        self._stores = {name: store for name, store in self._stores.items() if name[1] in alive}
        stores = [each.store for each in self._stores.values()]
        for store in stores:
            store.map_partials(collect)
        renumbered = deferred.retain(np.array(sorted(live), dtype=np.int64))
        change: Callable[[PartialRef], PartialRef] = lambda partial: renumbered[partial[0]]  # noqa: E731
        for store in stores:
            store.map_partials(change)
        self._compact_above = max(LEAST_TO_COMPACT, 4 * deferred.size)
