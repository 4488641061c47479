"""Counts: of all tuples, and of those with a value."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.aggregates.base import Groups, Ints, State
from muntin.aggregates.partials.columns import NumericPartial
from muntin.expressions import Expr

__all__ = ["Rows", "Values"]


class _Count(NumericPartial):
    __slots__ = ()

    @property
    def invertible(self) -> bool:
        return True

    def reduce(
        self,
        state: Ints,
        rows: Ints | None,
        lo: Ints,
        hi: Ints,
        before: tuple[State, ...],
        after: tuple[State, ...],
    ) -> Ints:
        from muntin.aggregates.partials.sum_kernels import add_rows

        out: Ints = self.zeros(len(lo))
        add_rows(state, rows, lo, hi, out)
        return out

    def invert(self, whole: Ints, part: Ints) -> Ints:
        return whole - part


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
        if valid is None:
            return g.sizes()
        from muntin.aggregates.partials.sum_kernels import count_runs, count_scatter

        out: Ints = self.zeros(g.n)
        if g.ordered:
            count_runs(valid, *g.runs(), out)
        else:
            count_scatter(valid, g.ids(), out)
        return out
