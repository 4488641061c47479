"""Sums of floats that lose nothing to rounding: of values, of logarithms, of products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import sum_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.columns import ScalarPartial
from muntin.aggregates.partials.step_codes import FLOAT_SUM
from muntin.expressions import Expr
from muntin.memory import fresh
from muntin.scalars import Scalars

__all__ = ["FloatSum", "LogSum", "ProductSum"]


class _Compensated(ScalarPartial):
    """A sum of floats, and the sum of its rounding errors.

    1e16 + 1 - 1e16 is 1 in any order of combination: results do not depend on batches and stores.
    Not invertible: subtracting an infinity does not restore the sum before it.
    """

    __slots__ = ()

    dtype = np.float64
    width = 2

    @abstractmethod
    def addends(self, g: Groups) -> tuple[Floats, Bools | None]:
        """The addend of each tuple, and which tuples count (None: all)."""

    @property
    def scalars(self) -> Scalars:
        return sum_kernels.FLOAT_SUM

    def lift(self, g: Groups, needs: States) -> Floats:
        values, valid = self.addends(g)
        if not g.ordered:
            return self.lifted(g, values, valid)
        out: Floats = self.zeros(g.n)
        sum_kernels.float_runs(values, valid, *g.runs(), out)
        return out

    def reduce(self, state: Floats, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Floats:
        out: Floats = self.zeros(len(lo))
        sum_kernels.add_float_rows(state, rows, lo, hi, out)
        return out

    def floats(self, state: Floats) -> Floats:
        """The sums; the rounding errors of a sum that is infinite or NaN are ignored."""
        out = fresh(len(state), np.float64)
        sum_kernels.float_totals(state, out)
        return out

    def means(self, state: Floats, count: Ints) -> Floats:
        """The means; 0 where there is no value."""
        out = fresh(len(state), np.float64)
        sum_kernels.float_means(state, count, out)
        return out

    def split_means(self, state: Floats, count: Ints) -> tuple[Floats, Floats]:
        """The means as floats, and their rounding errors."""
        base, rest = np.empty(len(count)), np.empty(len(count))
        sum_kernels.split_float_means(state, count, base, rest)
        return base, rest


@dataclass(frozen=True, slots=True)
class FloatSum(_Compensated):
    """The sum of the values as floats."""

    expr: Expr

    @property
    def step_code(self) -> int:
        return FLOAT_SUM

    @property
    def step_input(self) -> tuple[Expr, Callable[[pa.Array], Floats]]:
        return self.expr, lambda column: arrays.floats(arrays.plain(column))

    def addends(self, g: Groups) -> tuple[Floats, Bools | None]:
        return g.floats(self.expr), g.valid(self.expr)


@dataclass(frozen=True, slots=True)
class LogSum(_Compensated):
    """The sum of the logarithms of the values above zero; the others add nothing."""

    expr: Expr

    def addends(self, g: Groups) -> tuple[Floats, Bools | None]:
        values = g.floats(self.expr)
        with np.errstate(invalid="ignore"):  # the numbers at nulls are arbitrary
            return np.log(np.where(values <= 0.0, 1.0, values)), g.valid(self.expr)


@dataclass(frozen=True, slots=True)
class ProductSum(_Compensated):
    """The sum of the products of two columns, as floats."""

    x: Expr
    y: Expr

    def addends(self, g: Groups) -> tuple[Floats, Bools | None]:
        with np.errstate(invalid="ignore", over="ignore"):
            return g.floats(self.x) * g.floats(self.y), g.valid_in_all((self.x, self.y))
