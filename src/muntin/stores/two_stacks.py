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

from muntin.stores.queue import LiteStore
from muntin.stores.two_stacks_kernels import BORDER
from muntin.stores.vocabulary import END, FRONT


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

    extras = 1

    def check_invariants(self) -> None:
        super().check_invariants()
        front, border, end = (int(self._data[0][i]) for i in (FRONT, BORDER, END))
        assert front <= border <= end, "front, border and end in order"
        self._assert_product(list(range(border, end)), 0, "back is the product of the back part")
