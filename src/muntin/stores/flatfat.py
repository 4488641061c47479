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
from operator import index
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from muntin.stores import flatfat_kernels, queue_kernels
from muntin.stores.base import Store
from muntin.stores.flatfat_kernels import DONE, EDGES, LIVE, SMALLEST, STATES
from muntin.stores.queue_kernels import END, FRONT, FULL, MASK


class FlatFAT(Store):
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

    kernels: ClassVar[tuple[ModuleType, ...]] = (queue_kernels, flatfat_kernels)

    def _allocate(self) -> None:
        self._data = self._tree(SMALLEST)
        self._data[0][MASK] = SMALLEST - 1

    def _tree(self, capacity: int) -> tuple[Any, Any, Any, Any]:
        holes: Any = np.zeros(capacity, np.int8) if self.compiled else [0] * capacity
        return self._integers(STATES), self._integers(capacity), self._partials(2 * capacity), holes

    def __len__(self) -> int:
        return int(self._data[0][LIVE])

    @property
    def capacity(self) -> int:
        """Number of slots, a power of two."""
        return int(self._data[0][MASK]) + 1

    def _resolve(self, status: int) -> None:
        """Resize at the paper's thresholds (5.1.1): compact a full ring that is at most 3/4 live."""
        if status == FULL:
            self.resize(self.capacity if 4 * len(self) <= 3 * self.capacity else 2 * self.capacity)
        else:
            self.resize(self.capacity // 2)

    def compact(self) -> None:
        """Close the holes: O(capacity)."""
        self.resize(self.capacity)

    def resize(self, capacity: int) -> None:
        """Move the entries into a new tree of ``capacity`` slots, without holes: O(capacity)."""
        state, times, partials, _ = self._data
        live = self._live()
        fresh = self._tree(capacity)
        leaves = [slot + self.capacity for slot in live] if isinstance(live, list) else live + self.capacity
        n = len(live)
        if self.compiled:
            fresh[1][:n] = times[live]
            for old, new in zip(_parts(partials), _parts(fresh[2]), strict=True):
                new[capacity : capacity + n] = old[leaves]
        else:
            fresh[1][:n] = [times[slot] for slot in live]
            fresh[2][capacity : capacity + n] = [partials[leaf] for leaf in leaves]
        fresh[0][queue_kernels.COMBINES] = state[queue_kernels.COMBINES]
        fresh[0][MASK] = capacity - 1
        fresh[0][END] = fresh[0][LIVE] = n
        self._data = fresh

    def _live(self) -> Any:
        """Slots of the entries that are not holes, in order."""
        state, holes = self._data[0], self._data[3]
        slots = np.arange(int(state[FRONT]), int(state[END])) & int(state[MASK])
        if self.compiled:
            return slots[holes[slots] == 0]
        return [slot for slot in slots.tolist() if not holes[slot]]

    def evict_before(self, t: int) -> int:
        count = super().evict_before(t)
        capacity = self.capacity
        while capacity > SMALLEST and 4 * len(self) < capacity:
            capacity //= 2
        if capacity < self.capacity:
            self.resize(capacity)
        return count

    def _evict_at(self, t: int) -> int:
        return int(self._k.evict_at(self._data, t))

    def update(self, t: int, v: Any) -> None:
        """Replace the value at time ``t``: at most log2 n combines."""
        self.update_many([t], [v])

    def update_many(self, ts: Iterable[int], vs: Iterable[Any]) -> None:
        """Replace the values at ``m`` times: O(m + m log(n/m)) combines. Times must be increasing."""
        times, values = self._bulk(ts, vs)
        missing = self._k.update_many(self._data, times, values, self._integers(len(times)))
        if missing >= 0:
            raise KeyError(int(times[missing]))

    def _positions(self, a: int, b: int) -> tuple[int, int]:
        return (
            int(self._k.lower_bound(self._data, index(a))),
            int(self._k.lower_bound(self._data, index(b))),
        )

    def query_range(self, a: int, b: int) -> Any:
        i, j = self._positions(a, b)
        if i >= j or not self._k.any_live(self._data, i, j):
            return self.monoid.empty
        return self.monoid.lower(self._k.query_positions(self._data, i, j))

    def prefix(self, t: int) -> Any:
        """The aggregate of the entries before time ``t``: O(log n)."""
        return self.query_range(self._oldest(), t)

    def suffix(self, t: int) -> Any:
        """The aggregate of the entries from time ``t`` on: O(log n)."""
        return self.query_range(t, self._newest() + 1)

    def _oldest(self) -> int:
        return int(self._data[1][self._data[0][FRONT] & self._data[0][MASK]])

    def _newest(self) -> int:
        return int(self._data[1][(self._data[0][END] - 1) & self._data[0][MASK]])

    def times(self) -> list[int]:
        return [int(self._data[1][slot]) for slot in self._live()]

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        capacity = self.capacity
        for slot in self._live():
            yield int(self._data[1][slot]), self._partial(self._data[2], capacity + int(slot))

    def check_invariants(self) -> None:
        state, times, partials, holes = self._data
        front, end, mask = int(state[FRONT]), int(state[END]), int(state[MASK])
        assert 0 <= end - front <= mask + 1, "no more entries than slots"
        order = [int(times[i & mask]) for i in range(front, end)]
        assert all(x < y for x, y in pairwise(order)), "times strictly in order"
        assert len(self._live()) == len(self), "live entries are counted"
        if front < end:
            assert not holes[front & mask], "no hole at the front"
            assert not holes[(end - 1) & mask], "no hole at the end"
        assert mask + 1 == SMALLEST or 4 * len(self) >= mask + 1, "not too sparse"
        assert front <= int(state[DONE]) <= end, "inner nodes are known up to a position in the window"
        if int(state[DONE]) == end and not state[EDGES]:
            self._check_nodes(partials, front, end, mask)

    def _check_nodes(self, partials: Any, front: int, end: int, mask: int) -> None:
        """Every node with live entries, not over both ends of an inverted ring, is their product."""
        capacity = mask + 1
        live = {i & mask for i in range(front, end)}
        first, last = front & mask, (end - 1) & mask
        for x in range(1, capacity):
            depth = x.bit_length() - 1
            width = capacity >> depth
            low = (x - (1 << depth)) * width
            slots = [slot for slot in range(low, low + width) if slot in live]
            over_both = first > last and low <= last and first < low + width
            if not slots or over_both:
                continue
            expected = self._partial(partials, capacity + slots[0])
            for slot in slots[1:]:
                expected = self._combine(expected, self._partial(partials, capacity + slot))
            self._assert_same(expected, self._partial(partials, x), f"node {x} is the product of its leaves")


def _parts(cells: Any) -> tuple[Any, ...]:
    return cells if isinstance(cells, tuple) else (cells,)
