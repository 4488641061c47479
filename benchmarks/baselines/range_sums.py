"""Trees that add up many windows at once, as the window techniques need them."""

from __future__ import annotations

from benchmarks.baselines import range_sums_kernels
from benchmarks.baselines.technique import Ints
from benchmarks.baselines.tuple_tree import TupleTree
from muntin.stores.flatfat import FlatFAT
from muntin.stores.monoids import plain_sum


class SliceSums(FlatFAT):
    """FlatFAT over the sums of slices.

    >>> import numpy as np
    >>> tree = SliceSums()
    >>> tree.insert_many([10, 20, 30], [1, 2, 4])
    >>> tree.sums(np.array([0, 20]), np.array([25, 40])).tolist()
    [3, 6]
    """

    kernels = (*FlatFAT.kernels, range_sums_kernels)

    def __init__(self) -> None:
        super().__init__(plain_sum())

    def sums(self, starts: Ints, ends: Ints) -> Ints:
        """The sum of the entries from each start to its end: at most 2 log2 n combines each."""
        totals: Ints = self._partials(len(starts))
        self._k.query_many(self._data, starts, ends, totals)
        return totals


class TupleSums(SliceSums, TupleTree):
    """The same over tuples, in any order."""

    kernels = (*TupleTree.kernels, range_sums_kernels)
