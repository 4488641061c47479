"""covariance and correlation: how two columns move together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import NUMBERS, require
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, Partial, State
from muntin.aggregates.filtering import Complete
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.moments import CoMoments, Total, deviating, total_of

__all__ = ["Correlation", "Covariance"]

Moments = tuple[int, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Dependence(Aggregate):
    """The scalar partial is (n, mean of x, mean of y, sums of dx * dy, dx**2 and dy**2)."""

    x: ColumnLike
    y: ColumnLike

    column_fields: ClassVar[tuple[str, ...]] = ("x", "y")
    empty = (0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def lift(self, x: Any, y: Any, at: Order = ORIGIN) -> Moments:
        return self.empty if x is None or y is None else (1, float(x), float(y), 0.0, 0.0, 0.0)

    def combine(self, p: Moments, q: Moments) -> Moments:
        if not p[0] or not q[0]:
            return p if p[0] else q
        n, dx, dy = p[0] + q[0], q[1] - p[1], q[2] - p[2]
        share, both = q[0] / n, p[0] * q[0] / n
        return (
            n,
            p[1] + dx * share,
            p[2] + dy * share,
            p[3] + q[3] + dx * dy * both,
            p[4] + q[4] + dx * dx * both,
            p[5] + q[5] + dy * dy * both,
        )

    def _totals(self, types: tuple[pa.DataType, ...]) -> tuple[Total, Total]:
        x, y = (total_of(expr, require(self, types, NUMBERS, k)) for k, expr in enumerate(self.inputs))
        return x, y

    def _partials(self, x: Total, y: Total) -> tuple[Partial, ...]:
        x_expr, y_expr = self.inputs
        partials = (Values(x_expr), x, y, CoMoments(x_expr, y_expr, x, y))
        return tuple(Complete(partial, self.inputs) for partial in partials)


@dataclass(frozen=True, slots=True)
class Covariance(_Dependence):
    """The mean product of the deviations of two columns from their means.

    Of a sample (divided by n - 1; null over a single tuple) or of the whole population. Tuples
    without both values are skipped.

    >>> covariance = Covariance("height", "weight", population=True)
    >>> covariance.lower(covariance.combine(covariance.lift(1, 10), covariance.lift(3, 30)))
    10.0
    """

    population: bool = False

    def lower(self, p: Moments) -> float | None:
        freedom = p[0] if self.population else p[0] - 1
        return p[3] / freedom if freedom > 0 else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        def lower(states: tuple[State, ...]) -> pa.Array:
            freedom = states[0] if self.population else states[0] - 1
            covariance = states[3][:, 0] / np.maximum(freedom, 1)
            return arrays.from_fixed(covariance, freedom > 0, pa.float64())

        return Bound(pa.float64(), self._partials(*self._totals(types)), lower)


@dataclass(frozen=True, slots=True)
class Correlation(_Dependence):
    """Pearson's coefficient of correlation, from -1 to 1; null where one of the columns does not vary.

    Tuples without both values are skipped.

    >>> correlation = Correlation("height", "weight")
    >>> correlation.lower(correlation.combine(correlation.lift(1, 10), correlation.lift(3, 8)))
    -1.0
    """

    def lower(self, p: Moments) -> float | None:
        return p[3] / float(_root(p[4], p[5])) if p[0] > 1 and p[4] != 0.0 and p[5] != 0.0 else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        x_total, y_total = self._totals(types)

        def lower(states: tuple[State, ...]) -> pa.Array:
            count, x, y, moments = states
            product, dx, dy = moments.T
            vary = deviating(dx, x_total, x, count) & deviating(dy, y_total, y, count) & (count > 1)
            root = _root(np.where(vary, dx, 1.0), np.where(vary, dy, 1.0))
            # Where squares overflow, the quotient would be 0, as if there were no correlation: give NaN.
            quotient = np.divide(product, root, out=np.full(len(root), np.nan), where=np.isfinite(root))
            return arrays.from_fixed(np.clip(quotient, -1.0, 1.0), vary, pa.float64())

        return Bound(pa.float64(), self._partials(x_total, y_total), lower)


def _root(a: Any, b: Any) -> Any:
    """The square root of a * b, also where the product leaves the range of floats."""
    with np.errstate(over="ignore", under="ignore"):
        product = np.multiply(a, b)
    inside = (product > 0.0) & (product < np.inf)
    return np.where(inside, np.sqrt(product), np.sqrt(a) * np.sqrt(b))
