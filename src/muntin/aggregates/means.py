"""mean, geometric_mean and weighted_mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State, joined, refuse
from muntin.aggregates.filtering import Complete
from muntin.aggregates.partials.counts import NotAboveZero, Values
from muntin.aggregates.partials.exact_sums import exact_sum
from muntin.aggregates.partials.float_sums import FloatSum, LogSum, ProductSum
from muntin.aggregates.partials.moments import total_of
from muntin.aggregates.sums import require_number

__all__ = ["GeometricMean", "Mean", "WeightedMean"]

_MEAN_DIGITS = 4
"""The digits that a mean of decimals has in addition to those of its values, as in Spark."""


@dataclass(frozen=True, slots=True)
class Mean(Aggregate):
    """Arithmetic mean; null over no value.

    The partial is (n, sum), shared with Variance and Sum. Commutative, so slices keep no tuples. The
    result is float64; over decimals a decimal with four digits more, over durations a duration, rounded
    to its unit.

    >>> mean = Mean("speed")
    >>> mean.lower(mean.combine(mean.lift(2.0), mean.lift(4.0)))
    3.0
    """

    column: ColumnLike

    constructor = "mean"
    invertible = True  # over floats the bound aggregate is not

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, Any] | None:
        return None if value is None else (1, value)

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, lambda p, q: (p[0] + q[0], p[1] + q[1]))

    def lower(self, p: tuple[int, Any] | None) -> Any:
        return None if p is None else p[1] / p[0]

    def invert(self, whole: Any, part: Any) -> Any:
        if part is None:
            return whole
        return (whole[0] - part[0], whole[1] - part[1]) if whole[0] > part[0] else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, arrays.plain_type(types[0])
        count = Values(expr)
        if arrays.is_decimal(type_):
            exact = exact_sum(expr, type_)
            result = pa.decimal128(
                min(38, type_.precision + _MEAN_DIGITS), min(38, type_.scale + _MEAN_DIGITS)
            )
            factor = 10 ** (result.scale - type_.scale)
            return Bound(result, (count, exact), lambda s: exact.quotients(s[1], s[0], factor, result))
        if t.is_duration(type_):
            exact = exact_sum(expr, type_)
            return Bound(
                type_,
                (count, exact),
                lambda s: arrays.from_fixed(exact.rounded_means(s[1], s[0]), s[0] > 0, type_),
            )
        if not (t.is_integer(type_) or t.is_floating(type_)):
            raise refuse(self, expr, types[0], "numbers or durations")
        total = total_of(expr, type_)
        return Bound(
            pa.float64(),
            (count, total),
            lambda s: arrays.from_fixed(total.means(s[1], s[0]), s[0] > 0, pa.float64()),
        )


@dataclass(frozen=True, slots=True)
class GeometricMean(Aggregate):
    """The n-th root of the product of n values; null over none, and where a value is zero or negative.

    It is computed from the sum of the logarithms, so no product overflows. `filter="x > 0"` leaves out
    what has no logarithm, as `exp(avg(ln(x)))` does in Spark.

    >>> growth = GeometricMean("factor")
    >>> growth.lower(growth.combine(growth.lift(1), growth.lift(4)))
    2.0
    >>> growth.lower(growth.combine(growth.lift(1), growth.lift(0)))
    """

    column: ColumnLike

    constructor = "geometric_mean"

    def identity(self) -> tuple[int, float, int]:
        return 0, 0.0, 0

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, float, int]:
        if value is None:
            return self.identity()
        return (1, 0.0, 1) if value <= 0 else (1, math.log(value), 0)

    def combine(self, p: tuple[int, float, int], q: tuple[int, float, int]) -> tuple[int, float, int]:
        return p[0] + q[0], p[1] + q[1], p[2] + q[2]

    def lower(self, p: tuple[int, float, int]) -> float | None:
        return math.exp(p[1] / p[0]) if p[0] and not p[2] else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,) = self.inputs
        require_number(self, 0, types)
        logs = LogSum(expr)
        return Bound(
            pa.float64(),
            (Values(expr), logs, NotAboveZero(expr)),
            lambda s: arrays.from_fixed(
                np.exp(logs.means(s[1], s[0])), (s[0] > 0) & (s[2] == 0), pa.float64()
            ),
        )


@dataclass(frozen=True, slots=True)
class WeightedMean(Aggregate):
    """The mean of a column where each value counts as much as its weight; null over none.

    Tuples without a value or without a weight are skipped. Null also where the weights sum to zero.
    With the price as column and the volume as weight it is the volume-weighted average price.

    >>> vwap = WeightedMean("price", weight="volume")
    >>> vwap.lower(vwap.combine(vwap.lift(10.0, 1), vwap.lift(20.0, 3)))
    17.5
    """

    column: ColumnLike
    weight: ColumnLike

    constructor = "weighted_mean"
    column_fields: ClassVar[tuple[str, ...]] = ("column", "weight")

    def identity(self) -> tuple[float, float]:
        return 0.0, 0.0

    def lift(self, value: Any, weight: Any, at: Order = ORIGIN) -> tuple[float, float]:
        if value is None or weight is None:
            return self.identity()
        return float(value) * float(weight), float(weight)

    def combine(self, p: tuple[float, float], q: tuple[float, float]) -> tuple[float, float]:
        return p[0] + q[0], p[1] + q[1]

    def lower(self, p: tuple[float, float]) -> float | None:
        return p[0] / p[1] if p[1] else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        expr, weight = self.inputs
        require_number(self, 0, types)
        require_number(self, 1, types)
        products, weights = ProductSum(expr, weight), FloatSum(weight)

        def lower(states: tuple[State, ...]) -> pa.Array:
            total, weighed = products.floats(states[0]), weights.floats(states[1])
            with np.errstate(invalid="ignore"):  # inf / inf
                means = total / np.where(weighed == 0.0, 1.0, weighed)
            return arrays.from_fixed(means, weighed != 0.0, pa.float64())

        both = (expr, weight)
        return Bound(pa.float64(), (Complete(products, both), Complete(weights, both)), lower)
