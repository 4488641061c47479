"""Prefix sums, restarted in bounded blocks.

============  ==========================================================================
Ordering      in order (times never go back); evicts from the front
Requires      an exact inverse: counts, integer sums, decimals; never floats
Time          2 combines per insert on average, 0 per evict, 1 per query of any range
Space         n + 1 partials
============  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muntin.errors import QueryError
from muntin.stores import prefix_kernels
from muntin.stores.monoids import Monoid
from muntin.stores.prefix_kernels import BASE
from muntin.stores.queue import QueueStore
from muntin.stores.vocabulary import END, FRONT


class Prefix(QueueStore):
    """Any range in one step, for operators with an exact inverse.

    >>> window = Prefix("sum", dtype="int64", compiled=False)
    >>> window.insert_many([1, 2, 3, 4], [10, 20, 30, 40])
    >>> window.query(), window.query_range(2, 4)
    (100, 50)

    Floats are refused: subtracting a large value loses the digits of the small ones.

    >>> Prefix("sum")
    Traceback (most recent call last):
    muntin.errors.QueryError: Prefix needs an exact inverse, and "sum" of float64 values has none; ...
    """

    kernels = (*QueueStore.kernels, prefix_kernels)

    def _require(self, monoid: Monoid) -> None:
        if monoid.invert is None:
            raise QueryError(
                f'Prefix needs an exact inverse, and "{monoid.name}" of {monoid.input} values has none; '
                "use TwoStacksLite"
            )

    def _resize(self, capacity: int) -> None:
        self._k.rebase(self._data)
        super()._resize(capacity)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for i in self._positions():
            yield self._times.decode(self._time(i)), self._k.query_positions(self._data, i, i + 1)

    def check_invariants(self) -> None:
        super().check_invariants()
        front, end, base = (int(self._data[0][i]) for i in (FRONT, END, BASE))
        assert base <= front <= end, "products start at or before the front"
        assert end - base <= self.capacity, "a block is no longer than the ring"
