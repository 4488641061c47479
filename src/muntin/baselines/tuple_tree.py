"""The aggregate tree over tuples: FlatFAT without slices, out of order by moving leaves."""

from __future__ import annotations

from muntin.baselines import tuple_tree_kernels
from muntin.stores import flatfat_kernels, queue_kernels
from muntin.stores.flatfat import FlatFAT


class TupleTree(FlatFAT):
    """FlatFAT with one leaf for every tuple, ties side by side.

    >>> window = TupleTree("sum")
    >>> window.insert_many([1, 3, 2, 2], [1.0, 4.0, 2.0, 8.0])
    >>> window.query(), window.query_range(2, 3), len(window)
    (15.0, 10.0, 4)
    """

    kernels = (queue_kernels, flatfat_kernels, tuple_tree_kernels)

    def _evict_at(self, t: int) -> int:
        """Everything at time ``t``: one leaf after the other."""
        status = self._k.evict_at(self._data, t)
        while status in (queue_kernels.OK, queue_kernels.SPARSE) and t in self.times():
            if status:
                self._resolve(status)
            status = self._k.evict_at(self._data, t)
        return int(status)

    def check_invariants(self) -> None:
        times = self.times()
        assert times == sorted(times), "times in order"
        assert len(times) == len(self) <= self.capacity, "no more entries than slots"
