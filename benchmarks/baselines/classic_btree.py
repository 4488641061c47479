"""The classic augmented B-tree: any order, O(log n) for every insert and evict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.baselines import classic_btree_kernels
from muntin.stores import queue_kernels
from muntin.stores.base import Store
from muntin.stores.fiba import FiBA


class ClassicBTree(FiBA):
    """FiBA without fingers and spines.

    >>> window = ClassicBTree("max", arity=4, compiled=False)
    >>> window.insert_many([3, 1, 2], [5.0, 7.0, 6.0])
    >>> window.evict()
    >>> window.query()
    6.0
    """

    kernels = (queue_kernels, *FiBA.kernels, classic_btree_kernels)

    def insert(self, t: int, v: Any) -> None:
        Store.insert(self, t, v)

    def insert_many(self, ts: Iterable[int], vs: Iterable[Any]) -> None:
        Store.insert_many(self, ts, vs)

    def check_invariants(self) -> None:
        times = self.times()
        assert times == sorted(set(times)), "times strictly in order"
        assert len(times) == len(self), "entries are counted"
