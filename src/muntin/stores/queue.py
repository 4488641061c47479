"""The in-order stores' shared half: a growing ring of entries addressed by position."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from muntin.errors import DataError
from muntin.stores import queue_kernels, two_stacks_kernels
from muntin.stores.base import Store
from muntin.stores.columns import copy_rows
from muntin.stores.vocabulary import END, FRONT, MASK, MISSING, OK

_STATES = 8  # integers of state: DABA Lite uses all of them
_SMALLEST = 16


class QueueStore(Store):
    """A store whose state is (integers, ring of times, ring of partials and a few more behind it)."""

    kernels: ClassVar[tuple[ModuleType, ...]] = (queue_kernels,)
    extras: ClassVar[int] = 0  # partials behind the ring

    def _allocate(self) -> None:
        self._data = self._empty(_SMALLEST)

    def _empty(self, capacity: int) -> tuple[Any, ...]:
        """The state of an empty ring."""
        state = self._integers(_STATES)
        state[MASK] = capacity - 1
        return state, self._integers(capacity), self._partials(self._cells(capacity))

    def _cells(self, capacity: int) -> int:
        """Number of partials of a ring: one per slot, and those behind it."""
        return capacity + self.extras

    def __len__(self) -> int:
        state = self._data[0]
        return int(state[END] - state[FRONT])

    @property
    def capacity(self) -> int:
        """Number of slots, a power of two."""
        return int(self._data[0][MASK]) + 1

    def _resolve(self, status: int) -> None:
        self._resize(2 * self.capacity)

    def _resize(self, capacity: int) -> None:
        """Move every entry to the slot of its position in a ring of another capacity."""
        state, times, partials = self._data
        _, new_times, new_partials = self._empty(capacity)
        positions, extras = np.array(self._positions(), np.int64), np.arange(self.extras)
        sources, targets = positions & (self.capacity - 1), positions & (capacity - 1)
        copy_rows(times, new_times, sources, targets)
        copy_rows(partials, new_partials, sources, targets)
        copy_rows(partials, new_partials, self.capacity + extras, capacity + extras)
        state[MASK] = capacity - 1
        self._data = (state, new_times, new_partials)

    def evict_before(self, t: Any) -> int:
        count = super().evict_before(t)
        if self.capacity > _SMALLEST and len(self) < self.capacity // 8:
            self._resize(max(_SMALLEST, 1 << (2 * len(self)).bit_length()))
        return count

    def _evict_at(self, t: Any) -> int:
        """In-order stores remove from the front only, so ``t`` must be the oldest time, or absent."""
        state = self._data[0]
        at = int(self._k.lower_bound(self._data, t))
        if at == state[END] or self._time(at) != t:
            return MISSING
        if at > state[FRONT]:
            decode = self._times.decode
            raise DataError(
                f"{type(self).__name__} evicts the oldest time only: got {decode(t)}, the oldest is "
                f"{decode(self._time(int(state[FRONT])))}; use FiBA or FlatFAT to evict anywhere"
            )
        while len(self) and self._time(int(state[FRONT])) == t:
            self._k.evict(self._data)
        return OK

    def _positions(self) -> range:
        state = self._data[0]
        return range(int(state[FRONT]), int(state[END]))

    def _time(self, position: int) -> Any:
        """The encoded time of a position."""
        return self._data[1][position & int(self._data[0][MASK])]

    def _codes(self) -> list[Any]:
        return [self._time(i) for i in self._positions()]

    def _lower_bound(self, t: Any) -> int:
        return int(self._k.lower_bound(self._data, self._code(t)))

    def query_range(self, a: Any, b: Any) -> Any:
        return self._query_positions(self._lower_bound(a), self._lower_bound(b))

    def _query_positions(self, i: int, j: int) -> Any:
        if i >= j:
            return self.monoid.empty
        return self.monoid.lower(self._k.query_positions(self._data, i, j))

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        mask = self.capacity - 1
        for i in self._positions():
            yield self._times.decode(self._time(i)), self._partial(self._data[2], i & mask)

    def check_invariants(self) -> None:
        assert all(x <= y for x, y in pairwise(self._codes())), "times in order"
        assert len(self) <= self.capacity, "no more entries than slots"


class LiteStore(QueueStore):
    """The two Lite queues: slots hold products of several entries, so single entries cannot be read again."""

    kernels: ClassVar[tuple[ModuleType, ...]] = (queue_kernels, two_stacks_kernels)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        raise TypeError(
            f"{type(self).__name__} stores sums of several entries and cannot iterate over entries; "
            "iterate over times(), or use Lazy, FlatFAT or FiBA"
        )

    def query_range(self, a: Any, b: Any) -> Any:
        """The aggregate of the entries from ``a`` on; ``b`` must be after the newest entry."""
        i, j, end = self._lower_bound(a), self._lower_bound(b), int(self._data[0][END])
        if i >= j:
            return self.monoid.empty
        if j < end:
            raise DataError(
                f"{type(self).__name__} answers ranges up to the newest entry only: got an end of {b}, "
                f"the newest is {self._times.decode(self._time(end - 1))}; use FlatFAT or FiBA for any range"
            )
        return self.monoid.lower(self._k.query_from(self._data, i))

    def _assert_product(self, positions: list[int], extra: int, rule: str) -> None:
        """The partial ``extra`` places behind the ring is the product of the slots of these positions."""
        expected = self._product([self._slot(i & (self.capacity - 1)) for i in positions])
        self._assert_same(expected, self._slot(self.capacity + extra), rule)

    def _slot(self, slot: int) -> Any:
        return self._partial(self._data[2], slot)
