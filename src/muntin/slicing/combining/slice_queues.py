"""Two-Stacks Lite and DABA Lite over slices: one queue for the windows of each query and key."""

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
    StoreWindows,
)
from muntin.stores import DabaLite, TwoStacksLite

Column = npt.NDArray[np.int64]
QueueType = type[TwoStacksLite] | type[DabaLite]


class SliceQueue:
    """A queue of slices; the store has entry i at time i."""

    def __init__(self, kind: QueueType) -> None:
        self.kind = kind
        self.restart()

    def restart(self) -> None:
        """Empty the queue."""
        self.store = self.kind(BY_REFERENCE, compiled=False)
        self.contents = NO_SLICES
        self.front = 0

    @property
    def end(self) -> int:
        """The number after that of the last entry."""
        return self.front + len(self.contents)


class QueueWindows(StoreWindows):
    """The windows of one query and key at one watermark."""

    def __init__(self, queue: SliceQueue, view: View, windows: Column) -> None:
        self.queue, self.windows = queue, windows
        self.lo, self.hi = view.lo[windows], view.hi[windows]
        self.start = int(self.lo.min())
        end = int(self.hi.max())
        rows = slice(self.start, end)
        self.contents = Contents.of(view, rows if view.rows is None else view.rows[rows])
        self.known = self._matching()
        self.new = view.row(np.arange(self.start + self.known, end))

    def _matching(self) -> int:
        """The number of first rows that are in the queue; if one of them changed, the queue is emptied."""
        queue, queued = self.queue, self.queue.contents
        evicted = int(np.searchsorted(queued.first, self.contents.first[0]))
        count = min(len(queued) - evicted, len(self.contents))
        if not queued.between(evicted, evicted + count).equals(self.contents.between(0, count)):
            queue.restart()
            evicted = count = 0
        self.base = queue.front + evicted  # the entry of the first row
        return count

    def new_rows(self) -> Column:
        return self.new

    def serve(self, partials: list[PartialRef]) -> Iterator[tuple[int, PartialRef]]:
        queue, store, base = self.queue, self.queue.store, self.base
        front, end = queue.front, queue.end
        windows = zip(self.windows.tolist(), self.lo.tolist(), self.hi.tolist(), strict=True)
        for window, lo, hi in windows:
            first, last = base + lo - self.start, base + hi - self.start
            if first < front or last < end:  # it begins or ends before an earlier window
                continue
            store.evict_before(first)
            known = max(end, first)
            place = known - base - self.known
            store.insert_many(range(known, last), partials[place : place + last - known])
            front, end = first, last
            queue.front, queue.contents = front, self.contents.between(front - base, end - base)
            yield window, store.query()


class SliceQueues(PersistentStores):
    """Queues of slices: O(1) combines per slice, amortised (Two-Stacks Lite) or worst case (DABA Lite).

    A queue is emptied when one of its slices changes, so queues are for streams in order. A window that
    begins or ends before an earlier one (a late update) is walked over.
    """

    def __init__(self, kind: QueueType, rebuilt: RebuiltStore | None = None) -> None:
        super().__init__(rebuilt)
        self._kind = kind

    def _groups(self, view: View) -> list[StoreWindows]:
        full = np.flatnonzero(view.hi > view.lo)
        order = full[np.lexsort((view.hi[full], view.lo[full], view.key[full], view.query[full]))]
        query, key = view.query[order], view.key[order]
        bounds = np.flatnonzero(np.diff(query, prepend=-1) | np.diff(key, prepend=-1))
        groups: list[StoreWindows] = []
        for windows in np.split(order, bounds[1:]) if len(order) else []:
            name = (int(view.query[windows[0]]), int(view.key[windows[0]]))
            queue = self._stores.get(name) or SliceQueue(self._kind)
            self._stores[name] = queue
            groups.append(QueueWindows(queue, view, windows))
        return groups

    def _live_stores(self, view: View) -> Iterator[TwoStacksLite | DabaLite]:
        alive = set(np.unique(view.table.key).tolist())
        self._stores = {name: queue for name, queue in self._stores.items() if name[1] in alive}
        return (queue.store for queue in self._stores.values())
