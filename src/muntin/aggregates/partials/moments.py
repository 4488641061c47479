"""The sum of squared deviations from the mean, for variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.aggregates.arrays import Floats
from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials.columns import NumericPartial
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.sums import ExactSum, FloatSum
from muntin.expressions import Expr

__all__ = ["SquaredDeviations", "means"]


@dataclass(frozen=True, slots=True)
class SquaredDeviations(NumericPartial):
    """M2 = sum of (x - mean)**2, by two passes and, between rows, by Chan's formula.

    Never as a sum of squares, which over 1e9 plus small noise loses every digit.
    """

    expr: Expr
    total: ExactSum | FloatSum

    dtype = np.float64

    @property
    def needs(self) -> tuple[Partial, ...]:
        return Values(self.expr), self.total

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Floats:
        from muntin.aggregates.partials.moment_kernels import moment_runs, moment_scatter

        mean = means(needs[0], self.total, needs[1])
        squares: Floats = self.zeros(g.n)
        drift: Floats = self.zeros(g.n)
        values, valid = g.floats(self.expr), g.valid(self.expr)
        if g.ordered:
            moment_runs(values, valid, *g.runs(), mean, squares, drift)
        else:
            moment_scatter(values, valid, g.ids(), mean, squares, drift)
        # The mean is rounded; what the deviations do not sum to zero corrects for it.
        corrected: Floats = squares - drift * drift / np.maximum(needs[0], 1)
        return corrected

    def reduce(
        self,
        state: Floats,
        rows: Ints | None,
        lo: Ints,
        hi: Ints,
        before: tuple[State, ...],
        after: tuple[State, ...],
    ) -> Floats:
        from muntin.aggregates.partials.moment_kernels import moment_rows

        out: Floats = self.zeros(len(lo))
        mean, mean_after = means(before[0], self.total, before[1]), means(after[0], self.total, after[1])
        moment_rows(state, rows, lo, hi, before[0], mean, mean_after, out)
        return out


def means(count: Ints, total: ExactSum | FloatSum, state: State) -> Floats:
    """The means; 0 where there is no value."""
    return total.floats(state) / np.maximum(count, 1)
