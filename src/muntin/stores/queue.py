"""The in-order stores' shared half: a growing ring of entries addressed by position."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from operator import index
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from muntin.errors import DataError
from muntin.stores.base import Store
from muntin.stores.queue_kernels import END, FRONT, MASK, MISSING

_SMALLEST = 16


class QueueStore(Store):
    """A store whose state is (integers, ring of times, ring of partials and a few more behind it)."""

    states: ClassVar[int]  # integers of state
    extras: ClassVar[int] = 0  # partials kept behind the ring

    def _allocate(self) -> None:
        self._data = (
            self._integers(self.states),
            self._integers(_SMALLEST),
            self._partials(_SMALLEST + self.extras),
        )
        self._data[0][MASK] = _SMALLEST - 1

    def __len__(self) -> int:
        state = self._data[0]
        return int(state[END] - state[FRONT])

    def _resolve(self, status: int) -> None:
        self._resize(2 * (int(self._data[0][MASK]) + 1))

    def _resize(self, capacity: int) -> None:
        """Move every entry to the slot that its position has in a ring of another capacity."""
        state, times, partials = self._data
        mask, front, end = int(state[MASK]), int(state[FRONT]), int(state[END])
        new_times, new_partials = self._integers(capacity), self._partials(capacity + self.extras)
        positions = np.arange(front, end)
        _move(times, new_times, positions & mask, positions & (capacity - 1))
        extra = np.arange(self.extras)
        sources = np.concatenate((positions & mask, mask + 1 + extra))
        targets = np.concatenate((positions & (capacity - 1), capacity + extra))
        for old, new in zip(_parts(partials), _parts(new_partials), strict=True):
            _move(old, new, sources, targets)
        state[MASK] = capacity - 1
        self._data = (state, new_times, new_partials)

    def evict_before(self, t: int) -> int:
        count = super().evict_before(t)
        capacity = int(self._data[0][MASK]) + 1
        if capacity > _SMALLEST and len(self) < capacity // 8:
            self._resize(max(_SMALLEST, 1 << (2 * len(self)).bit_length()))
        return count

    def _evict_at(self, t: int) -> int:
        """In-order stores remove from the front only, so ``t`` must be the oldest time."""
        if not len(self) or self._time(int(self._data[0][FRONT])) != t:
            if len(self) and t in self.times():
                raise DataError(
                    f"{type(self).__name__} evicts the oldest time only: got {t}, the oldest is "
                    f"{self._time(int(self._data[0][FRONT]))}; use FiBA or FlatFAT to evict anywhere"
                )
            return MISSING
        self._k.evict_before(self._data, t + 1)
        return 0

    def _time(self, position: int) -> int:
        return int(self._data[1][position & int(self._data[0][MASK])])

    def _positions(self) -> range:
        return range(int(self._data[0][FRONT]), int(self._data[0][END]))

    def times(self) -> list[int]:
        return [self._time(i) for i in self._positions()]

    def _lower_bound(self, t: int) -> int:
        return int(self._k.lower_bound(self._data, index(t)))

    def query_range(self, a: int, b: int) -> Any:
        i, j = self._lower_bound(a), self._lower_bound(b)
        if i >= j:
            return self.monoid.empty
        return self.monoid.lower(self._k.query_positions(self._data, i, j))

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        mask = int(self._data[0][MASK])
        for i in self._positions():
            yield self._time(i), self._partial(self._data[2], i & mask)

    def check_invariants(self) -> None:
        times = self.times()
        assert all(x <= y for x, y in pairwise(times)), "times in order"
        assert len(self) <= int(self._data[0][MASK]) + 1, "no more entries than slots"


class LiteStore(QueueStore):
    """The two Lite queues: partials are summed up in place, so single entries cannot be read again."""

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        raise TypeError(
            f"{type(self).__name__} sums entries up in place and cannot give them back; "
            "iterate over times(), or use Lazy, FlatFAT or FiBA"
        )

    def query_range(self, a: int, b: int) -> Any:
        """The aggregate of the entries from ``a`` on; ``b`` must lie beyond the newest entry."""
        i, end = self._lower_bound(a), int(self._data[0][END])
        if i >= self._lower_bound(b):
            return self.monoid.empty
        if self._time(end - 1) >= b:
            raise DataError(
                f"{type(self).__name__} answers ranges up to the newest entry only: got an end of {b}, "
                f"the newest is {self._time(end - 1)}; use FlatFAT or FiBA for any range"
            )
        return self.monoid.lower(self._k.query_from(self._data, i))


def _parts(cells: Any) -> tuple[Any, ...]:
    return cells if isinstance(cells, tuple) else (cells,)


def _move(old: Any, new: Any, sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int64]) -> None:
    if isinstance(old, list):
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            new[target] = old[source]
    else:
        new[targets] = old[sources]
