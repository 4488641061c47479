"""Two-Stacks Lite.

============  ==========================================================================
Ordering      in order (times never go back); evicts from the front
Requires      associativity; not commutativity, not an inverse
Time          3 combines per insert + evict + query on average; one evict may cost n
Space         n + 1 partials
Paper         Tangwongsan, Hirzel, Schneider: In-Order Sliding-Window Aggregation in
              Worst-Case Constant Time, VLDB Journal 2021
============  ==========================================================================
"""

from __future__ import annotations

from muntin.stores import queue_kernels, two_stacks_kernels
from muntin.stores.queue import LiteStore
from muntin.stores.queue_kernels import END, FRONT, MASK
from muntin.stores.two_stacks_kernels import BORDER, STATES


class TwoStacksLite(LiteStore):
    """The fastest store for an in-order window on average; a single evict may be slow.

    >>> window = TwoStacksLite("max")
    >>> for t, v in [(1, 5.0), (2, 9.0), (3, 4.0)]:
    ...     window.insert(t, v)
    >>> window.query()
    9.0
    >>> window.evict_before(3)
    2
    >>> window.query()
    4.0
    """

    kernels = (queue_kernels, two_stacks_kernels)
    states = STATES
    extras = 1

    def check_invariants(self) -> None:
        super().check_invariants()
        state, _, partials = self._data
        mask = int(state[MASK])
        front, border, end = int(state[FRONT]), int(state[BORDER]), int(state[END])
        assert front <= border <= end, "front, border and end in order"
        back = self.monoid.identity if self.compiled else self.monoid.python.identity
        for i in range(border, end):
            back = self._combine(back, self._partial(partials, i & mask))
        self._assert_same(back, self._partial(partials, mask + 1), "back is the product of the back part")
