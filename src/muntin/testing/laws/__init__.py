"""The laws that aggregates must obey, to be checked for your own.

    from muntin.testing import laws

    def test_my_aggregate():
        laws.check(my_aggregate)

Slices are combined in ways that depend on the windows, the batches and the store. That this does not
show in the results rests on the laws of a monoid: `combine` is associative, `identity` is neutral,
and what is declared to commute or to be invertible, is.
"""

from __future__ import annotations

from muntin.testing.laws.checking import LawError, Report, check

__all__ = ["LawError", "Report", "check"]
