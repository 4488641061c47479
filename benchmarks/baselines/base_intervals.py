"""B-Int, base intervals: in order, any range in 2 log2 n combines, 1 combine per insert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.baselines import base_intervals_kernels
from muntin.stores import queue_kernels
from muntin.stores.flatfat import FlatFAT
from muntin.stores.queue import QueueStore
from muntin.stores.vocabulary import END, FRONT


class BaseIntervals(FlatFAT):
    """Dyadic intervals of a ring of entries; tied entries lie side by side.

    >>> window = BaseIntervals("max", compiled=False)
    >>> window.insert_many([1, 2, 3, 4], [4.0, 9.0, 2.0, 7.0])
    >>> window.evict_before(3)
    2
    >>> window.query(), window.query_range(3, 4)
    (7.0, 2.0)
    """

    kernels = (*FlatFAT.kernels, base_intervals_kernels)

    def __len__(self) -> int:
        return int(self._data[0][END] - self._data[0][FRONT])

    def _resolve(self, status: int) -> None:
        self.resize(2 * self.capacity)

    def resize(self, capacity: int) -> None:
        """Insert the entries into new intervals; their combines are not the window's doing."""
        entries, combines = list(self._entries()), self.combines
        super().resize(capacity)
        state, times, partials, _ = self._data
        state[END] = 0
        for t, p in entries:
            at = int(state[END])
            times[at] = t
            self._put(partials, capacity + at, p)
            x = capacity + at
            while x & 1 and x > 1:
                x >>= 1
                self._put(
                    partials,
                    x,
                    self._k.combine(self._partial(partials, 2 * x), self._partial(partials, 2 * x + 1)),
                )
            state[END] = at + 1
        state[queue_kernels.COMBINES] = combines

    def _put(self, cells: Any, i: int, p: Any) -> None:
        if isinstance(cells, tuple):
            for column, part in zip(cells, p, strict=True):
                column[i] = part
        else:
            cells[i] = p

    def _entries(self) -> Iterator[tuple[int, Any]]:
        return super().__iter__()

    def evict_before(self, t: int) -> int:
        return int(self._k.evict_before(self._data, t))

    def _evict_at(self, t: int) -> int:
        return QueueStore._evict_at(self, t)

    def update_many(self, ts: Any, vs: Any) -> None:
        raise NotImplementedError("base intervals are written once")

    def check_invariants(self) -> None:
        times = self.times()
        assert times == sorted(times), "times in order"
        assert len(times) == len(self) <= self.capacity, "no more entries than slots"
