"""Counts of tuples: of all, of those with a value, of those with a certain one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Groups, Ints, State
from muntin.aggregates.partials.columns import NumericPartial
from muntin.deferred_import import DeferredImport
from muntin.expressions import Expr

if TYPE_CHECKING:
    from muntin.aggregates.partials import sum_kernels
else:
    sum_kernels = DeferredImport("muntin.aggregates.partials.sum_kernels")

__all__ = ["NotAboveZero", "Rows", "Trues", "Values"]


class _Count(NumericPartial):
    __slots__ = ()

    @property
    def invertible(self) -> bool:
        return True

    def _counted(self, g: Groups, flags: Bools) -> Ints:
        out: Ints = self.zeros(g.n)
        if g.ordered:
            sum_kernels.count_runs(flags, *g.runs(), out)
        else:
            sum_kernels.count_scatter(flags, g.ids(), out)
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
        out: Ints = self.zeros(len(lo))
        sum_kernels.add_rows(state, rows, lo, hi, out)
        return out

    def invert(self, whole: Ints, part: Ints) -> Ints:
        return whole - part

    def running(self, state: Ints) -> Ints:
        return np.cumsum(state)

    def sound(self, state: Ints) -> bool:
        return bool((state >= 0).all())


@dataclass(frozen=True, slots=True)
class Rows(_Count):
    """The number of tuples."""

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Ints:
        return g.sizes()


@dataclass(frozen=True, slots=True)
class Values(_Count):
    """The number of tuples whose value is not null; it also tells which other partials hold a value."""

    expr: Expr

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Ints:
        valid = g.valid(self.expr)
        return g.sizes() if valid is None else self._counted(g, valid)


@dataclass(frozen=True, slots=True)
class Trues(_Count):
    """The number of tuples for which a condition is true; null is not."""

    expr: Expr

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Ints:
        return self._counted(g, g.true(self.expr))


@dataclass(frozen=True, slots=True)
class NotAboveZero(_Count):
    """The number of values that are zero or negative, and so have no logarithm."""

    expr: Expr

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Ints:
        found, valid = g.floats(self.expr) <= 0.0, g.valid(self.expr)
        return self._counted(g, found if valid is None else found & valid)
