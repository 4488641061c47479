"""Two-Stacks Lite and DABA Lite over slices: one queue for each window and key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.base import View
from muntin.slicing.combining.deferred_combines import BY_REFERENCE, PartialRef
from muntin.slicing.combining.persistent import (
    NO_SLICES,
    Contents,
    PersistentStores,
    RebuiltStore,
    SliceStore,
)
from muntin.stores import DabaLite, TwoStacksLite

Column = npt.NDArray[np.int64]
QueueType = type[TwoStacksLite] | type[DabaLite]


class SliceQueue(SliceStore):
    """A queue of the slices of one window and key; the store has entry i at time i."""

    def __init__(self, kind: QueueType) -> None:
        self.kind = kind
        self.restart()

    def restart(self) -> None:
        """Empty the queue."""
        self.store = self.kind(BY_REFERENCE, compiled=False)
        self.contents = NO_SLICES
        self.front = 0

    def prepare(self, view: View, windows: Column) -> Column:
        lo, hi = view.lo[windows].tolist(), view.hi[windows].tolist()
        start, end = lo[0], max(hi)
        rows = slice(start, end)
        self.next = Contents.of(view, rows if view.rows is None else view.rows[rows])
        evicted = int(np.searchsorted(self.contents.first, self.next.first[0]))
        known = min(len(self.contents) - evicted, len(self.next))
        queued = self.contents.at(slice(evicted, evicted + known))
        if not queued.equals(self.next.at(slice(known))):
            self.restart()
            evicted = known = 0
        self.start, self.known = start, start + known
        self.offset = self.front + evicted - start  # of entries to positions in the view
        self.windows = zip(windows.tolist(), lo, hi, strict=True)
        return view.row(np.arange(start + known, end))

    def serve(self, partials: list[PartialRef]) -> Iterator[tuple[int, PartialRef]]:
        offset, known, start = self.offset, self.known, self.start
        end = self.front + len(self.contents)
        for window, lo, hi in self.windows:
            first, last = lo + offset, hi + offset
            if first < self.front or last < end:  # it begins or ends before an earlier window
                continue
            self.store.evict_before(first)
            new = range(max(end, first), last)
            place = new.start - offset - known
            self.store.insert_many(new, partials[place : place + len(new)])
            self.front, end = first, last
            self.contents = self.next.at(slice(lo - start, hi - start))
            yield window, self.store.query()


class SliceQueues(PersistentStores):
    """Queues of slices: O(1) combines per slice, amortised (Two-Stacks Lite) or worst case (DABA Lite).

    A queue is emptied when one of its slices changes, so queues are for streams in order. A window that
    begins or ends before an earlier one (a late update) is walked over.
    """

    per_window = True

    def __init__(self, kind: QueueType, rebuilt: RebuiltStore | None = None) -> None:
        super().__init__(rebuilt)
        self._kind = kind

    def _new_store(self) -> SliceQueue:
        return SliceQueue(self._kind)
