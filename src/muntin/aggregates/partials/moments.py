"""Central moments: sums of powers of the deviations from the mean, and of products of two columns'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials.columns import NumericPartial
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.exact_sums import ExactSum, exact_sum
from muntin.aggregates.partials.float_sums import FloatSum
from muntin.deferred_import import DeferredImport
from muntin.expressions import Expr

if TYPE_CHECKING:
    from muntin.aggregates.partials import moment_kernels
else:
    moment_kernels = DeferredImport("muntin.aggregates.partials.moment_kernels")

__all__ = ["CentralMoment", "CoMoments", "Total", "deviating", "total_of"]

Total: TypeAlias = ExactSum | FloatSum

Means: TypeAlias = tuple[npt.NDArray[Any], Floats]


def total_of(expr: Expr, type_: pa.DataType) -> Total:
    """The sum that means are taken from: exact over integers, over other numbers of floats."""
    return exact_sum(expr, type_) if t.is_integer(type_) else FloatSum(expr)


@dataclass(frozen=True, slots=True)
class CentralMoment(NumericPartial):
    """The sum of (x - mean)**order, by two passes and, between rows, by Pébay's formulas.

    Never as a sum of powers, which over 1e9 plus small noise loses every digit. The mean is a pair of
    numbers, so that deviations are also right where the mean itself does not fit into a float: for
    integers above 2**53, and for neighbouring floats.
    """

    expr: Expr
    total: Total
    order: int

    dtype = np.float64

    @property
    def needs(self) -> tuple[Partial, ...]:
        lower = (CentralMoment(self.expr, self.total, k) for k in range(2, self.order))
        return Values(self.expr), self.total, *lower

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Floats:
        base, rest = self.total.split_means(needs[1], needs[0])
        out: Floats = self.zeros(g.n)
        values, exact = _values(g, self.expr, self.total)
        valid = g.valid(self.expr)
        power = _if(self.order == 3), _if(self.order == 4)
        if g.ordered:
            moment_kernels.power_runs(values, exact, valid, *g.runs(), base, rest, *power, out)
        else:
            moment_kernels.power_scatter(values, exact, valid, g.ids(), base, rest, *power, out)
        return out

    def reduce(
        self,
        state: Floats,
        rows: Ints | None,
        lo: Ints,
        hi: Ints,
        before: tuple[State, ...],
        after: tuple[State, ...],
    ) -> Floats:
        out: Floats = self.zeros(len(lo))
        means: Means = self.total.split_means(before[1], before[0])
        means_after: Means = self.total.split_means(after[1], after[0])
        second, third = (*before[2:], None, None)[:2]
        moment_kernels.power_rows(
            state, second, third, _exact(self.total), rows, lo, hi, before[0], *means, *means_after, out
        )
        return out


@dataclass(frozen=True, slots=True)
class CoMoments(NumericPartial):
    """The sums of dx * dy, dx**2 and dy**2, where dx and dy are the deviations from the means.

    It is lifted from tuples that have both values only.
    """

    x: Expr
    y: Expr
    x_total: Total
    y_total: Total

    dtype = np.float64
    width = 3

    @property
    def needs(self) -> tuple[Partial, ...]:
        return Values(self.x), self.x_total, self.y_total

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Floats:
        out: Floats = self.zeros(g.n)
        xs, ys = _values(g, self.x, self.x_total), _values(g, self.y, self.y_total)
        means = self._means(needs)
        if g.ordered:
            moment_kernels.product_runs(*xs, *ys, *g.runs(), *means, out)
        else:
            moment_kernels.product_scatter(*xs, *ys, g.ids(), *means, out)
        return out

    def reduce(
        self,
        state: Floats,
        rows: Ints | None,
        lo: Ints,
        hi: Ints,
        before: tuple[State, ...],
        after: tuple[State, ...],
    ) -> Floats:
        out: Floats = self.zeros(len(lo))
        exact = _exact(self.x_total), _exact(self.y_total)
        moment_kernels.product_rows(
            state, *exact, rows, lo, hi, before[0], *self._means(before), *self._means(after), out
        )
        return out

    def _means(self, states: tuple[State, ...]) -> tuple[npt.NDArray[Any], Floats, npt.NDArray[Any], Floats]:
        count, x, y = states
        x_means: Means = self.x_total.split_means(x, count)
        y_means: Means = self.y_total.split_means(y, count)
        return *x_means, *y_means


def deviating(squares: Floats, total: Total, sums: State, count: Ints) -> Bools:
    """Where the values are not all equal, from the sum of their squared deviations.

    Floats that differ are at least one unit in the last place apart; what is far below that is the
    rounding of equal values.
    """
    exact = isinstance(total, ExactSum)
    with np.errstate(invalid="ignore", over="ignore"):
        smallest: Any = 0.0 if exact else np.spacing(np.abs(total.means(sums, count)))
        differ: Bools = ~(np.sqrt(squares) <= smallest / 3)
    return differ


def _values(g: Groups, expr: Expr, total: Total) -> tuple[npt.NDArray[Any], bool | None]:
    exact = _exact(total)
    return g.floats(expr) if exact is None else g.keys(expr), exact


def _exact(total: Total) -> bool | None:
    return _if(isinstance(total, ExactSum))


def _if(condition: bool) -> bool | None:
    """A condition for kernels that are compiled apart for None."""
    return True if condition else None
