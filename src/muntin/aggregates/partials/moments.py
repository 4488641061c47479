"""Central moments: sums of powers of the deviations from the mean, and of products of two columns'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials import moment_kernels
from muntin.aggregates.partials.base import States
from muntin.aggregates.partials.columns import Column, ScalarPartial
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.exact_sums import ExactSum, exact_sum
from muntin.aggregates.partials.float_sums import FloatSum
from muntin.expressions import Expr
from muntin.scalars import Scalars

__all__ = ["CentralMoment", "CoMoments", "Total", "deviating", "total_of"]

Total: TypeAlias = ExactSum | FloatSum


def total_of(expr: Expr, type_: pa.DataType) -> Total:
    """The sum that means are taken from: exact over integers, over other numbers of floats."""
    return exact_sum(expr, type_) if t.is_integer(type_) else FloatSum(expr)


@dataclass(frozen=True, slots=True)
class CentralMoment(ScalarPartial):
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

    @property
    def scalars(self) -> Scalars:
        return moment_kernels.MOMENT

    def context(self, needs: States) -> tuple[Any, ...]:
        base, rest = self.total.split_means(needs[1], needs[0])
        exact = True if isinstance(self.total, ExactSum) else None
        second = needs[2] if self.order > 2 else None
        return needs[0], base, rest, exact, second, needs[3] if self.order > 3 else None

    def lift(self, g: Groups, needs: States) -> Floats:
        values, valid = _values(g, self.expr, self.total), g.valid(self.expr)
        if not g.ordered:
            return self.lifted(g, values, valid, needs)
        out: Floats = self.zeros(g.n)
        _, base, rest, exact, _, _ = self.context(needs)
        second, third = (True if self.order > k else None for k in (2, 3))
        moment_kernels.power_runs(values, valid, *g.runs(), out, base, rest, exact, second, third)
        return out


@dataclass(frozen=True, slots=True)
class CoMoments(ScalarPartial):
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

    @property
    def scalars(self) -> Scalars:
        return moment_kernels.CO_MOMENTS

    def context(self, needs: States) -> tuple[Any, ...]:
        count, x, y = needs
        return count, *_means(self.x_total, x, count), *_means(self.y_total, y, count)

    def lift(self, g: Groups, needs: States) -> Floats:
        values = _values(g, self.x, self.x_total), _values(g, self.y, self.y_total)
        if not g.ordered:
            return self.lifted(g, values, None, needs)
        out: Floats = self.zeros(g.n)
        moment_kernels.product_runs(*values, *g.runs(), out, *self.context(needs))
        return out


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


def _values(g: Groups, expr: Expr, total: Total) -> Column:
    return g.keys(expr) if isinstance(total, ExactSum) else g.floats(expr)


def _means(total: Total, sums: State, count: Ints) -> tuple[Any, ...]:
    """The means as pairs, and True where these are of integers: kernels are compiled apart for None."""
    return *total.split_means(sums, count), True if isinstance(total, ExactSum) else None
