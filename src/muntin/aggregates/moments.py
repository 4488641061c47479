"""variance, stddev, skewness and kurtosis: how far, how lopsided, how heavy-tailed the values spread."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import NUMBERS, require
from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Ints, Order, State
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.moments import CentralMoment, deviating, total_of

__all__ = ["Kurtosis", "Skewness", "Stddev", "Variance"]

Moments = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _OfMoments(Aggregate):
    """The scalar partial is (n, mean, M2, ...): the sums of the powers of the deviations from the mean."""

    column: ColumnLike

    empty: ClassVar[Moments] = (0, 0.0, 0.0)
    orders: ClassVar[tuple[int, ...]] = (2,)
    """The moments that the result needs."""

    def lift(self, value: Any, at: Order = ORIGIN) -> Moments:
        return self.empty if value is None else (1, float(value), *self.empty[2:])

    def combine(self, p: Moments, q: Moments) -> Moments:
        if not p[0] or not q[0]:
            return p if p[0] else q
        return self.join(p, q)

    @abstractmethod
    def join(self, p: Moments, q: Moments) -> Moments:
        """As `combine`, where both have values."""

    @abstractmethod
    def results(self, n: Ints, differ: Bools, second: Floats, highest: Floats) -> pa.Array:
        """The results from the second and the highest moment, and where values `differ`."""

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, require(self, types, NUMBERS)
        total = total_of(expr, type_)

        def lower(states: tuple[State, ...]) -> pa.Array:
            n, sums, second = states[:3]
            return self.results(n, deviating(second, total, sums, n), second, states[-1])

        moments = (CentralMoment(expr, total, order) for order in self.orders)
        return Bound(pa.float64(), (Values(expr), total, *moments), lower)


@dataclass(frozen=True, slots=True)
class Variance(_OfMoments):
    """The mean squared deviation from the mean, stable for small spreads around large values.

    Of a sample (divided by n - 1; null over a single value) or of the whole population. The scalar
    partial is (n, mean, M2), combined by Chan's formula.

    >>> variance = Variance("speed", population=True)
    >>> variance.lower(variance.combine(variance.lift(1e9 + 1), variance.lift(1e9 + 3)))
    1.0
    """

    population: bool = False

    def join(self, p: Moments, q: Moments) -> Moments:
        n, apart = p[0] + q[0], q[1] - p[1]
        return n, p[1] + apart * q[0] / n, p[2] + q[2] + apart * apart * p[0] * q[0] / n

    def lower(self, p: Moments) -> float | None:
        freedom = p[0] if self.population else p[0] - 1
        return p[2] / freedom if freedom > 0 else None

    def results(self, n: Ints, differ: Bools, second: Floats, highest: Floats) -> pa.Array:
        freedom = n if self.population else n - 1
        variances = np.where(differ, second, 0.0) / np.maximum(freedom, 1)
        return arrays.from_fixed(self._finish(variances), freedom > 0, pa.float64())

    def _finish(self, variances: Floats) -> Floats:
        return variances


@dataclass(frozen=True, slots=True)
class Stddev(Variance):
    """The square root of the variance.

    >>> stddev = Stddev("speed")
    >>> stddev.lower(stddev.combine(stddev.lift(1), stddev.lift(3))) == 2**0.5
    True
    """

    def lower(self, p: Moments) -> float | None:
        variance = Variance.lower(self, p)
        return None if variance is None else math.sqrt(variance)

    def _finish(self, variances: Floats) -> Floats:
        return np.sqrt(variances)


@dataclass(frozen=True, slots=True)
class _Shape(_OfMoments):
    """The scalar partial is (n, mean, M2, M3, M4), combined by Pébay's formulas."""

    empty = (0, 0.0, 0.0, 0.0, 0.0)

    def join(self, p: Moments, q: Moments) -> Moments:
        n = p[0] + q[0]
        mean = p[1] + (q[1] - p[1]) * q[0] / n
        return n, mean, *(x + y for x, y in zip(_about(mean, p), _about(mean, q), strict=True))

    def lower(self, p: Moments) -> float | None:
        with np.errstate(all="ignore"):
            return float(self.shape(p[0], np.float64(p[2]), p[self.orders[-1]])) if p[2] != 0.0 else None

    @staticmethod
    @abstractmethod
    def shape(n: Any, second: Any, highest: Any) -> Any:
        """The result from the number of values, the second moment and the highest one."""

    def results(self, n: Ints, differ: Bools, second: Floats, highest: Floats) -> pa.Array:
        with np.errstate(all="ignore"):  # moments beyond floats
            shapes = self.shape(n, np.where(differ, second, 1.0), highest)
        return arrays.from_fixed(shapes, differ, pa.float64())


@dataclass(frozen=True, slots=True)
class Skewness(_Shape):
    """The third standardised moment of the population; null where the values do not differ.

    >>> skewness = Skewness("delay")
    >>> p, q, r = (skewness.lift(x) for x in (1, 1, 4))
    >>> round(skewness.lower(skewness.combine(skewness.combine(p, q), r)), 6)
    0.707107
    """

    orders = (2, 3)

    @staticmethod
    def shape(n: Any, second: Any, highest: Any) -> Any:
        return n**0.5 * highest / second**1.5


@dataclass(frozen=True, slots=True)
class Kurtosis(_Shape):
    """The fourth standardised moment of the population minus 3, that of a normal distribution.

    Null where the values do not differ.

    >>> kurtosis = Kurtosis("delay")
    >>> kurtosis.lower(kurtosis.combine(kurtosis.lift(1), kurtosis.lift(3)))
    -2.0
    """

    orders = (2, 4)

    @staticmethod
    def shape(n: Any, second: Any, highest: Any) -> Any:
        return n * highest / (second * second) - 3.0


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
