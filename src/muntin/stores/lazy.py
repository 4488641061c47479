"""The lazy list.

============  ==========================================================================
Ordering      any: newer entries move up for a late one
Requires      associativity
Time          insert in order 0 combines, at distance d O(d) moves; query n - 1 combines
Space         n partials
============  ==========================================================================
"""

from __future__ import annotations

from typing import Any

from muntin.stores import lazy_kernels
from muntin.stores.queue import QueueStore


class Lazy(QueueStore):
    """Keeps the entries in order and combines them in each query: best for a few entries.

    >>> window = Lazy("min", compiled=False)
    >>> window.insert(2, 5.0)
    >>> window.insert(1, 3.0)
    >>> window.query()
    3.0
    >>> window.evict(1)
    >>> list(window)
    [(2, 5.0)]
    """

    kernels = (*QueueStore.kernels, lazy_kernels)

    def _evict_at(self, t: Any) -> int:
        return int(self._k.evict_at(self._data, t))

    def check_invariants(self) -> None:
        super().check_invariants()
        times = self._codes()
        assert len(set(times)) == len(times), "one entry for each time"
