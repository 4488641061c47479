"""skewness and kurtosis: how lopsided, how heavy-tailed the values are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Ints, Order, State
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.moments import CentralMoment, deviating, total_of
from muntin.aggregates.sums import require_number

__all__ = ["Kurtosis", "Skewness"]

Moments = tuple[int, float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Shape(Aggregate):
    """The scalar partial is (n, mean, M2, M3, M4), combined by Pébay's formulas."""

    column: ColumnLike

    order: ClassVar[int]

    def identity(self) -> Moments:
        return 0, 0.0, 0.0, 0.0, 0.0

    def lift(self, value: Any, at: Order = ORIGIN) -> Moments:
        return self.identity() if value is None else (1, float(value), 0.0, 0.0, 0.0)

    def combine(self, p: Moments, q: Moments) -> Moments:
        if not p[0] or not q[0]:
            return p if p[0] else q
        n = p[0] + q[0]
        mean = p[1] + (q[1] - p[1]) * q[0] / n
        (p2, p3, p4), (q2, q3, q4) = _about(mean, p), _about(mean, q)
        return n, mean, p2 + q2, p3 + q3, p4 + q4

    def lower(self, p: Moments) -> float | None:
        with np.errstate(all="ignore"):
            return float(self.shape(p[0], np.float64(p[2]), p[1 + self.order - 1])) if p[2] != 0.0 else None

    @staticmethod
    def shape(n: Any, second: Any, moment: Any) -> Any:
        """The result from the number of values, the second moment and the one of this order."""
        raise NotImplementedError

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,) = self.inputs
        require_number(self, 0, types)
        total = total_of(expr, arrays.plain_type(types[0]))

        def lower(states: tuple[State, ...]) -> pa.Array:
            count, sums, second, moment = states
            return self._lower_columns(count, second, moment, deviating(second, total, sums, count))

        moments = (CentralMoment(expr, total, 2), CentralMoment(expr, total, self.order))
        return Bound(pa.float64(), (Values(expr), total, *moments), lower)

    def _lower_columns(self, count: Ints, second: Floats, moment: Floats, differ: Bools) -> pa.Array:
        with np.errstate(all="ignore"):  # moments beyond floats
            shapes = self.shape(count, np.where(differ, second, 1.0), moment)
        return arrays.from_fixed(shapes, differ, pa.float64())


@dataclass(frozen=True, slots=True)
class Skewness(_Shape):
    """The third standardised moment of the population; null where the values do not differ.

    >>> skewness = Skewness("delay")
    >>> p, q, r = (skewness.lift(x) for x in (1, 1, 4))
    >>> round(skewness.lower(skewness.combine(skewness.combine(p, q), r)), 6)
    0.707107
    """

    constructor = "skewness"
    order = 3

    @staticmethod
    def shape(n: Any, second: Any, moment: Any) -> Any:
        return n**0.5 * moment / second**1.5


@dataclass(frozen=True, slots=True)
class Kurtosis(_Shape):
    """The fourth standardised moment of the population minus 3, that of a normal distribution.

    Null where the values do not differ.

    >>> kurtosis = Kurtosis("delay")
    >>> kurtosis.lower(kurtosis.combine(kurtosis.lift(1), kurtosis.lift(3)))
    -2.0
    """

    constructor = "kurtosis"
    order = 4

    @staticmethod
    def shape(n: Any, second: Any, moment: Any) -> Any:
        return n * moment / (second * second) - 3.0


def _about(mean: float, p: Moments) -> tuple[float, float, float]:
    """The second, third and fourth moment of p about another mean."""
    n, own, second, third, fourth = p
    d = own - mean
    square = d * d  # a power beyond floats would be an error, a product is infinite
    return (
        second + n * square,
        third + 3 * d * second + n * square * d,
        fourth + 4 * d * third + 6 * square * second + n * square * square,
    )
