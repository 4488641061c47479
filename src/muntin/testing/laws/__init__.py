"""The laws that aggregates must obey, to be checked for your own.

    from muntin.testing import laws

    def test_my_aggregate():
        laws.check(my_aggregate)

The windows, the batches and the store decide in which order slices are combined. The results do not depend
on it because of the laws of a monoid: `combine` is associative, `identity` is neutral, and an aggregate
that is declared commutative or invertible is.
"""

from __future__ import annotations

from muntin.testing.laws.checking import LawError, Report, check

__all__ = ["LawError", "Report", "check"]
