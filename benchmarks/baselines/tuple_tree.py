"""The aggregate tree over tuples: FlatFAT without slices, out of order by moving leaves."""

from __future__ import annotations

from benchmarks.baselines import tuple_tree_kernels
from muntin.stores import queue_kernels
from muntin.stores.flatfat import FlatFAT
from muntin.stores.flatfat_node_kernels import LIVE


class TupleTree(FlatFAT):
    """FlatFAT with one leaf for every tuple, ties side by side.

    >>> window = TupleTree("sum", compiled=False)
    >>> window.insert_many([1, 3, 2, 2], [1.0, 4.0, 2.0, 8.0])
    >>> window.query(), window.query_range(2, 3), len(window)
    (15.0, 10.0, 4)
    """

    kernels = (*FlatFAT.kernels, tuple_tree_kernels)

    def _evict_at(self, t: int) -> int:
        """Everything at time ``t``: the tree is built anew without it, O(n)."""
        gone = [slot for slot in self._live() if self._data[1][slot] == t]
        for slot in gone:
            self._data[3][slot] = 1
        self._data[0][LIVE] -= len(gone)
        self.compact()
        return queue_kernels.OK if gone else queue_kernels.MISSING

    def check_invariants(self) -> None:
        times = self.times()
        assert times == sorted(times), "times in order"
        assert len(times) == len(self) <= self.capacity, "no more entries than slots"
