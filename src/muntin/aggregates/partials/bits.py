"""Bitwise folds of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials.base import States
from muntin.aggregates.partials.columns import ScalarPartial
from muntin.expressions import Expr
from muntin.scalars import ALL_BITS, ANY_BITS, ODD_BITS, Scalars

__all__ = ["BitFold", "Operation"]

Operation: TypeAlias = Literal["and", "or", "xor"]

_DECLARED: dict[Operation, Scalars] = {"and": ALL_BITS, "or": ANY_BITS, "xor": ODD_BITS}


@dataclass(frozen=True, slots=True)
class BitFold(ScalarPartial):
    """Bitwise and, or, xor of all integers; the identity where there is no value."""

    expr: Expr
    operation: Operation

    @property
    def scalars(self) -> Scalars:
        return _DECLARED[self.operation]

    def lift(self, g: Groups, needs: States) -> Ints:
        return self.lifted(g, g.bits(self.expr), g.valid(self.expr))
