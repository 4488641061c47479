"""FiBA, the finger B-tree aggregator.

============  ==========================================================================
Ordering      any: insert at any time, evict anywhere
Requires      associativity; not commutativity, not an inverse
Time          insert O(log d) combines at distance d from the nearer end, in order and
              for the oldest evict amortised O(1); query 2; range O(log n); bulk evict
              of m O(log m), bulk insert O(m log(d/m)), O(m) in order
Space         n partials in nodes at least half full, and 2 per node
Papers        Tangwongsan, Hirzel, Schneider: Optimal and General Out-of-Order
              Sliding-Window Aggregation, VLDB 2019; Out-of-Order Sliding-Window
              Aggregation with Efficient Bulk Evictions and Insertions, VLDB 2023
============  ==========================================================================
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from muntin.errors import QueryError
from muntin.stores import (
    fiba_aggregate_kernels,
    fiba_bulk_kernels,
    fiba_evict_kernels,
    fiba_insert_kernels,
    fiba_node_kernels,
    fiba_range_kernels,
    fiba_remove_kernels,
)
from muntin.stores.base import Store
from muntin.stores.columns import arrays
from muntin.stores.fiba_layout import CAPACITY, FREE, FRESH, NEWEST, SIZE, STATES, constants
from muntin.stores.monoids import Monoid
from muntin.stores.vocabulary import FULL, LATE

_SMALLEST = 16
_LONGEST_SINGLE = 8  # bulks up to this size are inserted one by one: the sweep has a fixed cost


class FiBA(Store):
    """A B-tree over time with fingers at both ends: windows with entries out of order.

    ``arity`` is the minimum number of children of a node, 2 or more. Small nodes need fewer
    combines, large ones fewer steps; 8 is best for cheap operators, 2 or 4 for expensive ones.
    For a few entries ``compiled=False`` spares the compilation, which takes seconds the first time.

    >>> window = FiBA("max", compiled=False)
    >>> for t, v in [(10, 3.0), (30, 5.0), (20, 9.0)]:
    ...     window.insert(t, v)
    >>> window.query(), window.query_range(25, 40)
    (9.0, 5.0)
    >>> window.evict(20)
    >>> window.query()
    5.0
    >>> window.insert_many([5, 15, 15], [1.0, 6.0, 2.0])
    >>> window.evict_before(15)
    2
    >>> list(window)
    [(15, 6.0), (30, 5.0)]
    """

    kernels: ClassVar[tuple[ModuleType, ...]] = (
        fiba_node_kernels,
        fiba_aggregate_kernels,
        fiba_insert_kernels,
        fiba_evict_kernels,
        fiba_remove_kernels,
        fiba_range_kernels,
        fiba_bulk_kernels,
    )

    def __init__(
        self,
        monoid: str | Monoid,
        *,
        arity: int = 8,
        dtype: str = "float64",
        times: str = "int64",
        compiled: bool | None = None,
    ) -> None:
        if not isinstance(arity, int) or arity < 2:
            raise QueryError(f"arity must be an integer from 2 on: got {arity!r}; 8 suits cheap operators")
        self.arity = arity
        self._scratch: tuple[int, Any] = (0, None)
        super().__init__(monoid, dtype=dtype, times=times, compiled=compiled)

    def _constants(self) -> dict[str, Any]:
        return {**constants(self.arity), **super()._constants()}

    def _allocate(self) -> None:
        self._data = (self._integers(STATES), *self._nodes(_SMALLEST))
        self._data[0][CAPACITY] = _SMALLEST
        self._data[0][FREE] = -1
        self._data[0][FRESH] = 1  # node 0 is no node, see fiba_layout
        self._k.clear(self._data)

    def _nodes(self, n: int) -> tuple[Any, Any]:
        cells = n * constants(self.arity)["STRIDE"]
        return self._integers(cells), self._partials(cells)

    def __len__(self) -> int:
        return int(self._data[0][SIZE])

    def _resolve(self, status: int) -> None:
        self._reserve(2 * int(self._data[0][CAPACITY]))

    def _reserve(self, nodes: int) -> None:
        """Room for ``nodes`` nodes in all: O(n), at most as often as the tree doubles."""
        state, ints, cells = self._data
        new_ints, new_cells = self._nodes(nodes)
        for old, new in zip((ints, *arrays(cells)), (new_ints, *arrays(new_cells)), strict=True):
            new[: len(old)] = old
        state[CAPACITY] = nodes
        self._data = (state, new_ints, new_cells)

    def insert(self, t: Any, v: Any) -> None:
        self._insert(self._code(t), self._value(v))

    def _insert(self, t: Any, v: Any) -> None:
        status = self._k.insert_newest(self._data, t, v)
        while status:
            if status == LATE:
                status = self._k.insert_late(self._data, t, v)
            else:
                self._resolve(status)
                status = self._k.insert_newest(self._data, t, v)

    def insert_many(self, ts: Iterable[Any], vs: Iterable[Any]) -> None:
        """Add many values at any times, repeats included: O(m log(d/m)) combines, O(m) in order."""
        times, values = self._bulk(ts, vs)
        if len(times) <= _LONGEST_SINGLE:
            for t, v in zip(times, values, strict=True):
                self._insert(t, self._value(v))
            return
        if self.compiled:
            if (times[1:] < times[:-1]).any():
                sequence: Any = np.argsort(times, kind="stable")
                times, values = times[sequence], values[sequence]
        else:
            order = sorted(range(len(times)), key=times.__getitem__)
            times, values = [times[j] for j in order], [values[j] for j in order]
        done = bisect_right(times, self._data[0][NEWEST]) if len(self) else 0
        if done:
            scratch = self._room(done)
            while status := self._k.insert_sorted(self._data, scratch, times, values, done):
                self._resolve(status)
        while (done := self._k.append_many(self._data, times, values, done)) < len(times):
            self._resolve(FULL)

    def _room(self, n: int) -> Any:
        """Scratch of `fiba_bulk_kernels` for a bulk of ``n``, reused by the next one."""
        if self._scratch[0] < n:
            n = max(n, 2 * self._scratch[0])
            size = n + 2
            items, following, merged = (
                (self._integers(m), self._integers(m), self._partials(m))
                for m in (size, size, size + 2 * self.arity + 2)
            )
            groups, changed, parents = ((self._integers(size), self._integers(size)) for _ in range(3))
            counts = self._integers(6)
            self._scratch = (n, (items, groups, changed, following, parents, merged, counts))
        return self._scratch[1]

    def map_partials(self, change: Callable[[Any], Any]) -> None:
        super().map_partials(change)
        self._scratch = (0, None)

    def _evict_at(self, t: Any) -> int:
        return int(self._k.evict_at(self._data, t))

    def query_range(self, a: Any, b: Any) -> Any:
        any_entry, partial = self._k.query_range(self._data, self._code(a), self._code(b))
        return self.monoid.lower(partial) if any_entry else self.monoid.empty

    def _export(self) -> tuple[Any, Any]:
        times, partials = self._integers(len(self)), self._partials(len(self))
        self._k.export(self._data, times, partials)
        return times, partials

    def _codes(self) -> list[Any]:
        return list(self._export()[0])

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        times, partials = self._export()
        for i in range(len(times)):
            yield self._times.decode(times[i]), self._partial(partials, i)

    def check_invariants(self) -> None:
        from muntin.stores.fiba_check import check_tree

        check_tree(self)
