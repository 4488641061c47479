"""Counts of tuples: all, those with a value, those with a true condition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials.base import States
from muntin.aggregates.partials.columns import ScalarPartial
from muntin.aggregates.partials.step_codes import COUNT
from muntin.expressions import Expr
from muntin.scalars import TRUE_COUNT

__all__ = ["NotAboveZero", "Rows", "Trues", "Values"]


class _Count(ScalarPartial):
    """The number of tuples with a property."""

    __slots__ = ()

    scalars = TRUE_COUNT

    def counted(self, g: Groups) -> Bools | None:
        """Which tuples have the property; None for all."""
        return None

    def lift(self, g: Groups, needs: States) -> Ints:
        flags = self.counted(g)
        return g.sizes() if flags is None else self.lifted(g, flags, None)

    def running(self, state: Ints) -> Ints:
        return np.cumsum(state)

    def sound(self, state: Ints) -> bool:
        return bool((state >= 0).all())


@dataclass(frozen=True, slots=True)
class Rows(_Count):
    """The number of tuples."""

    @property
    def step_code(self) -> int:
        return COUNT


@dataclass(frozen=True, slots=True)
class Values(_Count):
    """The number of tuples whose value is not null; where it is 0, other partials have no value."""

    expr: Expr

    @property
    def step_code(self) -> int:
        return COUNT

    @property
    def step_input(self) -> tuple[Expr, None]:
        return self.expr, None

    def counted(self, g: Groups) -> Bools | None:
        return g.valid(self.expr)


@dataclass(frozen=True, slots=True)
class Trues(_Count):
    """The number of tuples for which a condition is true; null counts as false."""

    expr: Expr

    def counted(self, g: Groups) -> Bools:
        return g.true(self.expr)


@dataclass(frozen=True, slots=True)
class NotAboveZero(_Count):
    """The number of values that are zero or negative, and so have no logarithm."""

    expr: Expr

    def counted(self, g: Groups) -> Bools:
        low, valid = g.floats(self.expr) <= 0.0, g.valid(self.expr)
        return low if valid is None else low & valid
