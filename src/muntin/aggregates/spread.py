"""variance and stddev, of a sample or of a population."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State, refuse
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.moments import SquaredDeviations
from muntin.aggregates.partials.sums import ExactSum, FloatSum, exact_sum

__all__ = ["Stddev", "Variance"]

Moments = tuple[int, float, float]


@dataclass(frozen=True, slots=True)
class Variance(Aggregate):
    """The mean squared deviation from the mean, stable for small spreads around large values.

    Of a sample (divided by n - 1; null over a single value) or of the whole population. The scalar
    partial is (n, mean, M2), combined by Chan's formula.

    >>> variance = Variance("speed", population=True)
    >>> variance.lower(variance.combine(variance.lift(1e9 + 1), variance.lift(1e9 + 3)))
    1.0
    """

    column: ColumnLike
    population: bool = False

    constructor = "variance"

    def identity(self) -> Moments:
        return 0, 0.0, 0.0

    def lift(self, value: Any, at: Order = ORIGIN) -> Moments:
        return self.identity() if value is None else (1, float(value), 0.0)

    def combine(self, p: Moments, q: Moments) -> Moments:
        if not p[0] or not q[0]:
            return p if p[0] else q
        n, apart = p[0] + q[0], q[1] - p[1]
        return n, p[1] + apart * q[0] / n, p[2] + q[2] + apart * apart * p[0] * q[0] / n

    def lower(self, p: Moments) -> float | None:
        freedom = p[0] if self.population else p[0] - 1
        return p[2] / freedom if freedom > 0 else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, arrays.plain_type(types[0])
        if not (t.is_integer(type_) or t.is_floating(type_) or arrays.is_decimal(type_)):
            raise refuse(self, expr, types[0], "numbers")
        total: ExactSum | FloatSum = exact_sum(expr, type_) if t.is_integer(type_) else FloatSum(expr)
        return Bound(pa.float64(), (Values(expr), total, SquaredDeviations(expr, total)), self._lower_columns)

    def _lower_columns(self, states: tuple[State, ...]) -> pa.Array:
        count, _, squares = states
        freedom = count if self.population else count - 1
        found = np.maximum(squares, 0.0) / np.maximum(freedom, 1)
        return arrays.from_fixed(self._finish(found), freedom > 0, pa.float64())

    def _finish(self, variance: Any) -> Any:
        return variance


@dataclass(frozen=True, slots=True)
class Stddev(Variance):
    """The square root of the variance.

    >>> stddev = Stddev("speed")
    >>> stddev.lower(stddev.combine(stddev.lift(1), stddev.lift(3))) == 2**0.5
    True
    """

    constructor = "stddev"

    def lower(self, p: Moments) -> float | None:
        freedom = p[0] if self.population else p[0] - 1
        return math.sqrt(p[2] / freedom) if freedom > 0 else None

    def _finish(self, variance: Any) -> Any:
        return np.sqrt(variance)
