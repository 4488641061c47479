"""The number of occurrences of the smallest or largest value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Groups, Ints, Partial
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.columns import ScalarPartial
from muntin.aggregates.partials.extrema import ArrowExtremum, KeyExtremum
from muntin.aggregates.partials.ranges import spread
from muntin.scalars import EXTREME_COUNT

__all__ = ["ExtremeCount"]


@dataclass(frozen=True, slots=True)
class ExtremeCount(ScalarPartial):
    """The number of values that equal the extreme, which is another partial."""

    extremum: KeyExtremum | ArrowExtremum

    scalars = EXTREME_COUNT

    @property
    def needs(self) -> tuple[Partial, ...]:
        return (self.extremum,)

    def lift(self, g: Groups, needs: States) -> Ints:
        expr = self.extremum.expr
        if isinstance(self.extremum, KeyExtremum):
            return self.lifted(g, g.keys(expr), g.valid(expr), needs)
        winners = arrays.take_or_null(needs[0], g.ids())
        return _sums(g.ids(), _equal(g.array(expr), winners), g.n)

    @property
    def removable(self) -> bool:
        return self.extremum.removable

    def without(self, whole: Ints, part: Ints, wholes: States, parts: States) -> tuple[Ints, Bools]:
        # A value may equal the identity of its extremum, which says nothing about its count.
        right = self.extremum.without(wholes[0], parts[0], (), ())[1] & (parts[0] != wholes[0])
        return whole, right | (part == 0)

    def reduce(self, state: Ints, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Ints:
        if isinstance(self.extremum, KeyExtremum):
            return ScalarPartial.reduce(self, state, rows, lo, hi, before, after)
        index, group = spread(rows, lo, hi)
        equal = _equal(before[0].take(pa.array(index)), after[0].take(pa.array(group)))
        return _sums(group, np.where(equal, state[index], 0), len(lo))


def _equal(values: pa.Array, winners: pa.Array) -> Bools:
    import pyarrow.compute as pc

    return arrays.true(pc.equal(values, winners))


def _sums(group: Ints, addends: Ints | Bools, n: int) -> Ints:
    """The sum of each of n groups; group -1 is ignored."""
    sums = np.zeros(n + 1, dtype=np.int64)  # the last entry is for group -1
    np.add.at(sums, group, addends)
    return sums[:n]
