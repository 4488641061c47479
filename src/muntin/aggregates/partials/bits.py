"""Bitwise folds of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from muntin.aggregates.base import Groups, Ints, State
from muntin.aggregates.partials.columns import NumericPartial
from muntin.deferred_import import DeferredImport
from muntin.expressions import Expr

if TYPE_CHECKING:
    from muntin.aggregates.partials import bit_kernels
else:
    bit_kernels = DeferredImport("muntin.aggregates.partials.bit_kernels")

__all__ = ["BitFold", "Operation"]

Operation: TypeAlias = Literal["and", "or", "xor"]

_CODES = {"and": 0, "or": 1, "xor": 2}


@dataclass(frozen=True, slots=True)
class BitFold(NumericPartial):
    """All integers joined bit by bit; where there is none, the identity."""

    expr: Expr
    operation: Operation

    @property
    def invertible(self) -> bool:
        return self.operation == "xor"

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Ints:
        out = self._identity(g.n)
        values, valid, code = g.bits(self.expr), g.valid(self.expr), _CODES[self.operation]
        if g.ordered:
            bit_kernels.bit_runs(values, valid, *g.runs(), code, out)
        else:
            bit_kernels.bit_scatter(values, valid, g.ids(), code, out)
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
        out = self._identity(len(lo))
        bit_kernels.bit_rows(state, rows, lo, hi, _CODES[self.operation], out)
        return out

    def invert(self, whole: Ints, part: Ints) -> Ints:
        return whole ^ part

    def _identity(self, rows: int) -> Ints:
        return np.full(rows, -1 if self.operation == "and" else 0, dtype=np.int64)
