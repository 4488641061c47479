"""DABA Lite.

============  ==========================================================================
Ordering      in order (times never go back); evicts from the front
Requires      associativity; not commutativity, not an inverse
Time          at most 3 combines per insert, 2 per evict, 1 per query: 4 per round
Space         n + 2 partials
Paper         Tangwongsan, Hirzel, Schneider: In-Order Sliding-Window Aggregation in
              Worst-Case Constant Time, VLDB Journal 2021
============  ==========================================================================
"""

from __future__ import annotations

from muntin.stores import daba_kernels
from muntin.stores.daba_kernels import ACCUMULATED, LEFT, RIGHT
from muntin.stores.queue import LiteStore
from muntin.stores.two_stacks_kernels import BORDER
from muntin.stores.vocabulary import END, FRONT


class DabaLite(LiteStore):
    """An in-order window whose every single operation is fast.

    >>> window = DabaLite("mean", compiled=False)
    >>> window.insert_many([1, 2, 3], [1.0, 2.0, 6.0])
    >>> window.query()
    3.0
    >>> window.evict()
    >>> window.query()
    4.0
    """

    kernels = (*LiteStore.kernels, daba_kernels)
    extras = 2

    def check_invariants(self) -> None:
        super().check_invariants()
        cuts = [int(self._data[0][i]) for i in (FRONT, LEFT, RIGHT, ACCUMULATED, BORDER, END)]
        front, left, right, a, border, end = cuts
        assert cuts == sorted(cuts), "positions in order"
        if front == end:
            return
        assert right - left == a - right, "old front and unfinished back have the same length"
        assert left - front == end - border + 1, "the front slot is finished"
        self._assert_product(list(range(border, end)), 0, "back is the product B..E-1")
        if left < right:
            finished = [a] if a < border else []
            self._assert_product([*range(right, a), *finished], 1, "mid is the product R..B-1")
