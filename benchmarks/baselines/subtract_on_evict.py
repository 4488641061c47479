"""Subtract-on-evict: in order, needs an exact inverse, 2 steps per round; no ranges for free."""

from __future__ import annotations

from benchmarks.baselines import subtract_on_evict_kernels
from muntin.errors import QueryError
from muntin.stores import lazy_kernels
from muntin.stores.monoids import Monoid
from muntin.stores.queue import QueueStore


class SubtractOnEvict(QueueStore):
    """A running total; the oldest entry is subtracted when it leaves.

    >>> window = SubtractOnEvict("sum", dtype="int64", compiled=False)
    >>> window.insert_many([1, 2, 3], [5, 6, 7])
    >>> window.evict()
    >>> window.query()
    13
    """

    kernels = (*QueueStore.kernels, lazy_kernels, subtract_on_evict_kernels)
    extras = 1

    def _require(self, monoid: Monoid) -> None:
        if monoid.invert is None:
            raise QueryError(f'SubtractOnEvict needs an exact inverse, and "{monoid.name}" has none')
