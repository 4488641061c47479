"""variance and stddev, of a sample or of a population."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.moments import CentralMoment, deviating, total_of
from muntin.aggregates.sums import require_number

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
        (expr,) = self.inputs
        require_number(self, 0, types)
        total = total_of(expr, arrays.plain_type(types[0]))

        def lower(states: tuple[State, ...]) -> pa.Array:
            count, sums, squares = states
            freedom = count if self.population else count - 1
            differ = deviating(squares, total, sums, count)
            variances = np.where(differ, squares, 0.0) / np.maximum(freedom, 1)
            return arrays.from_fixed(self._finish(variances), freedom > 0, pa.float64())

        return Bound(pa.float64(), (Values(expr), total, CentralMoment(expr, total, 2)), lower)

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
