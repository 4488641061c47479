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

from muntin.stores import daba_kernels, queue_kernels
from muntin.stores.daba_kernels import ACCUMULATED, BORDER, LEFT, RIGHT, STATES
from muntin.stores.queue import LiteStore
from muntin.stores.queue_kernels import END, FRONT, MASK


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

    kernels = (queue_kernels, daba_kernels)
    states = STATES
    extras = 2

    def check_invariants(self) -> None:
        super().check_invariants()
        state, _, partials = self._data
        mask = int(state[MASK])
        cuts = [int(state[i]) for i in (FRONT, LEFT, RIGHT, ACCUMULATED, BORDER, END)]
        front, left, right, a, border, end = cuts
        assert cuts == sorted(cuts), "positions in order"
        if front == end:
            return
        assert right - left == a - right, "old front and unfinished back are of one length"
        assert left - front == end - border + 1, "the front slot is finished"
        one = self.monoid.identity if self.compiled else self.monoid.python.identity
        back, mid = one, one
        for i in range(border, end):
            back = self._combine(back, self._partial(partials, i & mask))
        for i in range(right, a):
            mid = self._combine(mid, self._partial(partials, i & mask))
        if a < border:
            mid = self._combine(mid, self._partial(partials, a & mask))
        self._assert_same(back, self._partial(partials, mask + 1), "back is the product B..E-1")
        if left < right:
            self._assert_same(mid, self._partial(partials, mask + 2), "mid is the product R..B-1")
