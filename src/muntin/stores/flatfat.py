"""FlatFAT.

============  ==========================================================================
Ordering      in order; updates and evicts anywhere (a hole stays until compaction)
Requires      associativity; not commutativity, not an inverse
Time          at most 2 log2 n + 1 combines per insert + evict + query; any range
              2 log2 n; m updates m + m log2(n/m); compaction and resizing O(1) amortised
Space         2 capacity partials, n <= capacity <= 4n
Paper         Tangwongsan, Hirzel, Schneider, Wu: General Incremental Sliding-Window
              Aggregation, VLDB 2015, sections 4 and 5
============  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.errors import DataError, QueryError
from muntin.stores import flatfat_kernels, flatfat_node_kernels
from muntin.stores.base import Store
from muntin.stores.columns import copy_rows
from muntin.stores.flatfat_node_kernels import DONE, EDGES, LIVE, SMALLEST
from muntin.stores.monoids import Monoid
from muntin.stores.queue import QueueStore
from muntin.stores.vocabulary import COMBINES, END, FRONT, FULL


class FlatFAT(QueueStore):
    """A perfect binary tree over a ring of entries: any range of an in-order window.

    >>> window = FlatFAT("max", compiled=False)
    >>> window.insert_many([10, 20, 30, 40], [4.0, 9.0, 2.0, 7.0])
    >>> window.query(), window.query_range(30, 50), window.prefix(20)
    (9.0, 7.0, 4.0)
    >>> window.evict(20)
    >>> window.query()
    7.0
    >>> window.update(10, 8.0)
    >>> window.query()
    8.0
    """

    kernels = (*QueueStore.kernels, flatfat_node_kernels, flatfat_kernels)

    def __init__(self, monoid: str | Monoid, *, capacity: int | None = None, **options: Any) -> None:
        """``capacity`` pins the number of slots, rounded up to a power of two.

        The tree is then never resized, and an insert into a full one is an error. The other options are
        those of `Store`.
        """
        if capacity is not None and (not isinstance(capacity, int) or capacity < 1):
            raise QueryError(f"capacity must be a positive integer: got {capacity!r}; leave it out to grow")
        self.pinned = capacity is not None
        self._first_capacity = max(SMALLEST, 1 << ((capacity or 1) - 1).bit_length())
        super().__init__(monoid, **options)

    def _allocate(self) -> None:
        self._data = self._empty(self._first_capacity)

    def _empty(self, capacity: int) -> tuple[Any, ...]:
        holes: Any = np.zeros(capacity, np.int8) if self.compiled else [0] * capacity
        return *super()._empty(capacity), holes

    def _cells(self, capacity: int) -> int:
        return 2 * capacity

    def __len__(self) -> int:
        return int(self._data[0][LIVE])

    def _resolve(self, status: int) -> None:
        """Resize at the paper's thresholds (5.1.1): compact a full ring that is at most 3/4 live."""
        if self.pinned:
            if status == FULL:
                self._compact_full()
        elif status == FULL:
            self.resize(self.capacity if 4 * len(self) <= 3 * self.capacity else 2 * self.capacity)
        else:
            self.resize(self.capacity // 2)

    def _compact_full(self) -> None:
        if len(self) == self.capacity:
            raise DataError(
                f"a FlatFAT of pinned capacity {self.capacity} is full; evict first, or leave capacity= out"
            )
        self.compact()

    def compact(self) -> None:
        """Close the holes: O(capacity)."""
        self.resize(self.capacity)

    def resize(self, capacity: int) -> None:
        """Move the entries into a tree of ``capacity`` slots, a power of two, without holes: O(capacity)."""
        state, times, partials, _ = self._data
        live = self._live()
        fresh = self._empty(capacity)
        slots = np.arange(len(live))
        copy_rows(times, fresh[1], live, slots)
        copy_rows(partials, fresh[2], live + self.capacity, slots + capacity)
        fresh[0][COMBINES] = state[COMBINES]
        fresh[0][END] = fresh[0][LIVE] = len(live)
        self._data = fresh

    def _live(self) -> npt.NDArray[np.int64]:
        """Slots of the entries that are not holes, in order."""
        slots = np.array(self._positions(), np.int64) & (self.capacity - 1)
        live: npt.NDArray[np.int64] = slots[np.asarray(self._data[3])[slots] == 0]
        return live

    def evict_before(self, t: Any) -> int:
        count = Store.evict_before(self, t)
        if self.pinned:
            return count
        capacity = self.capacity
        while capacity > SMALLEST and 4 * len(self) < capacity:
            capacity //= 2
        if capacity < self.capacity:
            self.resize(capacity)
        return count

    def _evict_at(self, t: Any) -> int:
        return int(self._k.evict_at(self._data, t))

    def update(self, t: Any, v: Any) -> None:
        """Replace the value at time ``t``: at most log2 n combines."""
        self.update_many([t], [v])

    def update_many(self, ts: Iterable[Any], vs: Iterable[Any]) -> None:
        """Replace the values at ``m`` times: O(m + m log(n/m)) combines. Times must be increasing."""
        times, values = self._bulk(ts, vs)
        missing = self._k.update_many(self._data, times, values, self._integers(len(times)))
        if missing >= 0:
            raise KeyError(self._times.decode(times[missing]))

    def _query_positions(self, i: int, j: int) -> Any:
        return super()._query_positions(i, j) if self._k.any_live(self._data, i, j) else self.monoid.empty

    def prefix(self, t: Any) -> Any:
        """The aggregate of the entries before time ``t``: O(log n)."""
        return self._query_positions(int(self._data[0][FRONT]), self._lower_bound(t))

    def suffix(self, t: Any) -> Any:
        """The aggregate of the entries from time ``t`` on: O(log n)."""
        return self._query_positions(self._lower_bound(t), int(self._data[0][END]))

    def _codes(self) -> list[Any]:
        return [self._data[1][slot] for slot in self._live()]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        capacity = self.capacity
        for slot in self._live().tolist():
            yield self._times.decode(self._data[1][slot]), self._partial(self._data[2], capacity + slot)

    def check_invariants(self) -> None:
        state, holes = self._data[0], self._data[3]
        positions, mask = self._positions(), self.capacity - 1
        assert 0 <= len(positions) <= self.capacity, "no more entries than slots"
        assert all(x < y for x, y in pairwise(map(self._time, positions))), "times strictly in order"
        assert len(self._live()) == len(self), "live entries are counted"
        if positions:
            assert not holes[positions[0] & mask], "no hole at the front"
            assert not holes[positions[-1] & mask], "no hole at the end"
        assert self.pinned or self.capacity == SMALLEST or 4 * len(self) >= self.capacity, "not too sparse"
        front, done, end = (int(state[i]) for i in (FRONT, DONE, END))
        assert front <= done <= end, "inner nodes are known up to a position in the window"
        if done == end and not state[EDGES]:
            self._check_nodes([i & mask for i in positions])

    def _check_nodes(self, live: list[int]) -> None:
        """Every node with live entries, not over both ends of an inverted ring, is their product."""
        occupied = set(live)
        for x in range(1, self.capacity):
            depth = x.bit_length() - 1
            width = self.capacity >> depth
            low = (x - (1 << depth)) * width
            slots = [slot for slot in range(low, low + width) if slot in occupied]
            over_both = live and live[0] > live[-1] and low <= live[-1] and live[0] < low + width
            if slots and not over_both:
                expected = self._product(self._partial(self._data[2], self.capacity + s) for s in slots)
                actual = self._partial(self._data[2], x)
                self._assert_same(expected, actual, f"node {x} is the product of its leaves")
