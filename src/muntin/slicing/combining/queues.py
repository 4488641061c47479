"""Two-Stacks Lite and DABA Lite over slices: one queue for the windows of each query and key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from muntin.slicing.combining.base import View
from muntin.slicing.combining.ledger import NUMBERS, Numbered
from muntin.slicing.combining.standing import NO_CONTENTS, Bulk, Contents, Group, Standing
from muntin.stores import DabaLite, TwoStacksLite

Column = npt.NDArray[np.int64]
QueueType = type[TwoStacksLite] | type[DabaLite]


class Queue:
    """A queue of slices; entry i stands at time i in its store."""

    def __init__(self, kind: QueueType) -> None:
        self.kind = kind
        self.restart()

    def restart(self) -> None:
        """Begin with an empty queue."""
        self.store = self.kind(NUMBERS, compiled=False)
        self.contents = NO_CONTENTS
        self.front = 0

    @property
    def end(self) -> int:
        """Behind the last entry."""
        return self.front + len(self.contents)


class QueueGroup(Group):
    """The windows of one query and key, from one watermark."""

    def __init__(self, queue: Queue, view: View, windows: Column) -> None:
        self.queue, self.windows = queue, windows
        self.lo, self.hi = view.lo[windows], view.hi[windows]
        self.start = int(self.lo.min())
        end = int(self.hi.max())
        rows = slice(self.start, end)
        self.contents = Contents.of(view, rows if view.rows is None else view.rows[rows])
        self.known = self._matching()
        self.new = view.row(np.arange(self.start + self.known, end))

    def _matching(self) -> int:
        """Entries of the queue that are the first rows here; if one changed, the queue begins anew."""
        queue, held = self.queue, self.queue.contents
        passed = int(np.searchsorted(held.first, self.contents.first[0]))
        count = min(len(held) - passed, len(self.contents))
        if not held.part(passed, passed + count).equals(self.contents.part(0, count)):
            queue.restart()
            passed = count = 0
        self.base = queue.front + passed  # the entry of the first row here
        return count

    def wanted(self) -> Column:
        return self.new

    def serve(self, partials: list[Numbered]) -> Iterator[tuple[int, Numbered]]:
        queue, store, base = self.queue, self.queue.store, self.base
        front, end = queue.front, queue.end
        windows = zip(self.windows.tolist(), self.lo.tolist(), self.hi.tolist(), strict=True)
        for window, lo, hi in windows:
            first, last = base + lo - self.start, base + hi - self.start
            if first < front or last < end:  # it goes back: not a window for a queue
                continue
            store.evict_before(first)
            known = max(end, first)
            place = known - base - self.known
            store.insert_many(range(known, last), partials[place : place + last - known])
            front, end = first, last
            queue.front, queue.contents = front, self.contents.part(front - base, end - base)
            yield window, store.query()


class Queues(Standing):
    """Slices go in at the back and out at the front: amortised (two stacks) or always (DABA) O(1).

    A slice that changes inside a queue makes it begin anew, so these are for streams in order. A
    window that goes back behind the one before it (a late update) is combined by itself.
    """

    def __init__(self, kind: QueueType, bulk: Bulk | None = None) -> None:
        super().__init__(bulk)
        self._kind = kind

    def _groups(self, view: View) -> list[Group]:
        full = np.flatnonzero(view.hi > view.lo)
        order = full[np.lexsort((view.hi[full], view.lo[full], view.key[full], view.query[full]))]
        query, key = view.query[order], view.key[order]
        bounds = np.flatnonzero(np.diff(query, prepend=-1) | np.diff(key, prepend=-1))
        groups: list[Group] = []
        for mine in np.split(order, bounds[1:]) if len(order) else []:
            name = (int(view.query[mine[0]]), int(view.key[mine[0]]))
            queue = self._stores.get(name) or Queue(self._kind)
            self._stores[name] = queue
            groups.append(QueueGroup(queue, view, mine))
        return groups

    def _standing(self, view: View) -> Iterator[TwoStacksLite | DabaLite]:
        alive = set(np.unique(view.table.key).tolist())
        self._stores = {name: queue for name, queue in self._stores.items() if name[1] in alive}
        return (queue.store for queue in self._stores.values())
