"""Sums of floats that lose nothing to rounding: of values, of logarithms, of products."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import Groups, Ints, State
from muntin.aggregates.partials.columns import NumericPartial
from muntin.expressions import Expr

__all__ = ["FloatSum", "LogSum", "ProductSum"]

_SPLIT = 2.0**27 + 1.0
"""Splits a float into halves whose products are exact."""


class _Compensated(NumericPartial):
    """A sum of floats with its rounding errors summed beside it.

    So 1e16 + 1 - 1e16 is 1 in whatever order slices are combined: results do not depend on batches
    and stores. Not invertible: subtracting would still lose what an infinity swallowed.
    """

    __slots__ = ()

    dtype = np.float64
    width = 2

    @abstractmethod
    def addends(self, g: Groups) -> tuple[Floats, Bools | None]:
        """What is summed, one number per tuple, and which of them count."""

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Floats:
        from muntin.aggregates.partials.sum_kernels import float_runs, float_scatter

        out: Floats = self.zeros(g.n)
        if g.ordered:
            float_runs(*self.addends(g), *g.runs(), out)
        else:
            float_scatter(*self.addends(g), g.ids(), out)
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
        from muntin.aggregates.partials.sum_kernels import add_float_rows

        out: Floats = self.zeros(len(lo))
        add_float_rows(state, rows, lo, hi, out)
        return out

    def floats(self, state: Floats) -> Floats:
        """The sums; beside an infinity or NaN the errors are NaN and say nothing."""
        total, lost = state[:, 0], state[:, 1]
        return total + np.where(np.isfinite(lost), lost, 0.0)

    def means(self, state: Floats, count: Ints) -> Floats:
        """The means; 0 where there is no value."""
        return self.floats(state) / np.maximum(count, 1)

    def split_means(self, state: Floats, count: Ints) -> tuple[Floats, Floats]:
        """The means as floats, and what rounding took from them."""
        n = np.maximum(count, 1).astype(np.float64)
        base = self.floats(state) / n
        with np.errstate(invalid="ignore", over="ignore"):
            product = base * n
            left = ((state[:, 0] - product) + _product_error(base, n, product) + state[:, 1]) / n
        return base, np.where(np.isfinite(left), left, 0.0)


@dataclass(frozen=True, slots=True)
class FloatSum(_Compensated):
    """The sum of the values as floats."""

    expr: Expr

    def addends(self, g: Groups) -> tuple[Floats, Bools | None]:
        return g.floats(self.expr), g.valid(self.expr)


@dataclass(frozen=True, slots=True)
class LogSum(_Compensated):
    """The sum of the logarithms of the values above zero; the others add nothing."""

    expr: Expr

    def addends(self, g: Groups) -> tuple[Floats, Bools | None]:
        values = g.floats(self.expr)
        with np.errstate(invalid="ignore"):  # anything may stand where a value is null
            return np.log(np.where(values <= 0.0, 1.0, values)), g.valid(self.expr)


@dataclass(frozen=True, slots=True)
class ProductSum(_Compensated):
    """The sum of the products of two columns, as floats."""

    x: Expr
    y: Expr

    def addends(self, g: Groups) -> tuple[Floats, Bools | None]:
        with np.errstate(invalid="ignore", over="ignore"):
            return g.floats(self.x) * g.floats(self.y), g.valid_in_all((self.x, self.y))


def _product_error(a: Floats, b: Floats, product: Floats) -> Floats:
    """What rounding added to a * b, exactly (Dekker)."""
    a_high, b_high = a * _SPLIT - (a * _SPLIT - a), b * _SPLIT - (b * _SPLIT - b)
    a_low, b_low = a - a_high, b - b_high
    return ((product - a_high * b_high) - a_low * b_high - a_high * b_low) - a_low * b_low
