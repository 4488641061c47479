"""Sketches: aggregates of bounded size with a known error, in the forms of Apache DataSketches.

The aggregates are in `muntin.aggregates` with all others. Here is what one does with their results:
set operations on theta sketches, and asking a Bloom filter.

    from muntin.aggregates import sketches

    both = sketches.intersection(results["buyers"], results["visitors"])
    sketches.estimate(both)
"""

from __future__ import annotations

from muntin.aggregates.sketches.bloom import might_contain
from muntin.aggregates.sketches.set_operations import difference, estimate, intersection, union

__all__ = ["difference", "estimate", "intersection", "might_contain", "union"]
