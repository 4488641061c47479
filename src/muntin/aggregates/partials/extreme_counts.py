"""How often the smallest or largest value occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials.columns import NumericPartial
from muntin.aggregates.partials.extrema import ArrowExtremum, KeyExtremum
from muntin.aggregates.partials.ranges import spread
from muntin.deferred_import import DeferredImport

if TYPE_CHECKING:
    from muntin.aggregates.partials import extremum_kernels
else:
    extremum_kernels = DeferredImport("muntin.aggregates.partials.extremum_kernels")

__all__ = ["ExtremeCount"]


@dataclass(frozen=True, slots=True)
class ExtremeCount(NumericPartial):
    """The number of values that equal the extreme, which is a partial of its own."""

    extremum: KeyExtremum | ArrowExtremum

    @property
    def needs(self) -> tuple[Partial, ...]:
        return (self.extremum,)

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Ints:
        if isinstance(self.extremum, ArrowExtremum):
            winners = arrays.take_or_null(needs[0], g.ids())
            return _sums(g.ids(), _equal(g.array(self.extremum.expr), winners), g.n)
        out: Ints = self.zeros(g.n)
        keys, valid = g.keys(self.extremum.expr), g.valid(self.extremum.expr)
        if g.ordered:
            extremum_kernels.equal_runs(keys, valid, *g.runs(), needs[0], out)
        else:
            extremum_kernels.equal_scatter(keys, valid, g.ids(), needs[0], out)
        return out

    def reduce(
        self,
        state: Ints,
        rows: Ints | None,
        lo: Ints,
        hi: Ints,
        before: tuple[State, ...],
        after: tuple[State, ...],
    ) -> Ints:
        if isinstance(self.extremum, ArrowExtremum):
            index, group = spread(rows, lo, hi)
            equal = _equal(before[0].take(pa.array(index)), after[0].take(pa.array(group)))
            return _sums(group, np.where(equal, state[index], 0), len(lo))
        out: Ints = self.zeros(len(lo))
        extremum_kernels.equal_rows(state, before[0], after[0], rows, lo, hi, out)
        return out


def _equal(values: pa.Array, winners: pa.Array) -> Bools:
    import pyarrow.compute as pc

    return arrays.true(pc.equal(values, winners))


def _sums(group: Ints, addends: Ints | Bools, n: int) -> Ints:
    """The sum of each of n groups; group -1 is left out."""
    found = np.zeros(n + 1, dtype=np.int64)  # one more, at the end, for the group -1
    np.add.at(found, group, addends)
    return found[:n]
