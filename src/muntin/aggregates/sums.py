"""sum, mean, geometric_mean and weighted_mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import NUMBERS, SUMMABLE, require
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Ints, Order, State, joined
from muntin.aggregates.counts import Tally
from muntin.aggregates.filtering import Complete
from muntin.aggregates.partials.counts import NotAboveZero, Values
from muntin.aggregates.partials.exact_sums import exact_sum
from muntin.aggregates.partials.float_sums import FloatSum, LogSum, ProductSum
from muntin.aggregates.partials.moments import total_of
from muntin.aggregates.partials.step_codes import (
    FLOAT_MEAN,
    FLOAT_SUM,
    FLOAT_TOTAL,
    INTEGER_MEAN,
    INTEGER_SUM,
    INTEGER_TOTAL,
    NONE,
)
from muntin.errors import DataError

__all__ = ["GeometricMean", "Mean", "Sum", "WeightedMean"]

_SUM_DIGITS, _MEAN_DIGITS = 10, 4
"""The digits that a sum and a mean of decimals have in addition to those of the values, as in Spark."""


@dataclass(frozen=True, slots=True)
class _OfTotal(Aggregate):
    """The partial is (n, sum): without n, nothing would distinguish a sum of 0 from no value."""

    column: ColumnLike

    invertible = True  # over floats the bound aggregate is not

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, Any] | None:
        return None if value is None else (1, value)

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, lambda p, q: (p[0] + q[0], p[1] + q[1]))

    def invert(self, whole: Any, part: Any) -> Any:
        if part is None:
            return whole
        return (whole[0] - part[0], whole[1] - part[1]) if whole[0] > part[0] else None


@dataclass(frozen=True, slots=True)
class Sum(_OfTotal):
    """The sum of the values; null over none. An integer that overflows is an error, never a wrap.

    Integers give int64, floats float64, decimals ten digits more, durations durations.

    >>> total = Sum("amount")
    >>> total.lower(total.combine(total.lift(2), total.lift(-5)))
    -3
    """

    kind = "distributive"

    def lower(self, p: tuple[int, Any] | None) -> Any:
        total = None if p is None else p[1]
        if isinstance(total, int) and not -(2**63) <= total < 2**63:
            raise DataError(f'a sum over "{self.column}" overflows: {total} does not fit into 64 bits')
        return total

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, require(self, types, SUMMABLE)
        if t.is_floating(type_):
            floats = FloatSum(expr)
            return _over_values(floats, pa.float64(), lambda n, total: floats.floats(total), FLOAT_TOTAL)
        exact = exact_sum(expr, type_)
        if arrays.is_decimal(type_):
            decimal = pa.decimal128(min(38, type_.precision + _SUM_DIGITS), type_.scale)
            partials = (Values(expr), exact)
            return Bound(decimal, partials, lambda s: exact.decimals(s[1], s[0] > 0, decimal))
        result = type_ if t.is_duration(type_) else pa.int64()
        code = INTEGER_TOTAL if exact.step_code == INTEGER_SUM else NONE
        return _over_values(exact, result, lambda n, total: exact.integers(total), code)


@dataclass(frozen=True, slots=True)
class Mean(_OfTotal):
    """Arithmetic mean; null over no value.

    The partial is (n, sum), shared with Variance and Sum. Commutative, so slices keep no tuples. The
    result is float64; over decimals a decimal with four digits more, over durations a duration, rounded
    to its unit.

    >>> mean = Mean("speed")
    >>> mean.lower(mean.combine(mean.lift(2.0), mean.lift(4.0)))
    3.0
    """

    def lower(self, p: tuple[int, Any] | None) -> Any:
        return None if p is None else p[1] / p[0]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, require(self, types, SUMMABLE)
        if t.is_duration(type_):
            exact = exact_sum(expr, type_)
            return _over_values(exact, type_, lambda n, total: exact.rounded_means(total, n))
        if not arrays.is_decimal(type_):
            total = total_of(expr, type_)
            code = {INTEGER_SUM: INTEGER_MEAN, FLOAT_SUM: FLOAT_MEAN}.get(total.step_code, NONE)
            return _over_values(total, pa.float64(), lambda n, sums: total.means(sums, n), code)
        exact = exact_sum(expr, type_)
        scale = min(38, type_.scale + _MEAN_DIGITS)
        result = pa.decimal128(min(38, type_.precision + _MEAN_DIGITS), scale)
        factor = 10 ** (scale - type_.scale)
        return Bound(result, (Values(expr), exact), lambda s: exact.quotients(s[1], s[0], factor, result))


def _over_values(
    total: Any, type_: pa.DataType, results: Callable[[Ints, State], Any], code: int = NONE
) -> Bound:
    """The results from the numbers of values and their totals; null over none."""
    return Bound(
        type_,
        (Values(total.expr), total),
        lambda s: arrays.from_fixed(results(*s), s[0] > 0, type_),
        only_overflows=True,
        value_code=code,
    )


@dataclass(frozen=True, slots=True)
class GeometricMean(Tally):
    """The n-th root of the product of n values; null over none, and where a value is zero or negative.

    It is computed from the sum of the logarithms, so no product overflows. `filter="x > 0"` leaves out
    values without a logarithm, as `exp(avg(ln(x)))` does in Spark.

    >>> growth = GeometricMean("factor")
    >>> growth.lower(growth.combine(growth.lift(1), growth.lift(4)))
    2.0
    >>> growth.lower(growth.combine(growth.lift(1), growth.lift(0)))
    """

    column: ColumnLike

    empty = (0, 0.0, 0)
    invertible, invert = False, Aggregate.invert

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, float, int]:
        if value is None:
            return self.empty
        return (1, 0.0, 1) if value <= 0 else (1, math.log(value), 0)

    def lower(self, p: tuple[int, float, int]) -> float | None:
        return math.exp(p[1] / p[0]) if p[0] and not p[2] else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,) = self.inputs
        require(self, types, NUMBERS)
        logs = LogSum(expr)

        def lower(states: tuple[State, ...]) -> pa.Array:
            n, total, unfit = states
            return arrays.from_fixed(np.exp(logs.means(total, n)), (n > 0) & (unfit == 0), pa.float64())

        return Bound(pa.float64(), (Values(expr), logs, NotAboveZero(expr)), lower)


@dataclass(frozen=True, slots=True)
class WeightedMean(Tally):
    """The mean of a column where each value counts as much as its weight; null over none.

    Tuples without a value or without a weight are skipped. Null also where the weights sum to zero.
    With the price as column and the volume as weight it is the volume-weighted average price.

    >>> vwap = WeightedMean("price", weight="volume")
    >>> vwap.lower(vwap.combine(vwap.lift(10.0, 1), vwap.lift(20.0, 3)))
    17.5
    """

    column: ColumnLike
    weight: ColumnLike

    column_fields: ClassVar[tuple[str, ...]] = ("column", "weight")
    empty = (0.0, 0.0)
    invertible, invert = False, Aggregate.invert

    def lift(self, value: Any, weight: Any, at: Order = ORIGIN) -> tuple[float, float]:
        if value is None or weight is None:
            return self.empty
        return float(value) * float(weight), float(weight)

    def lower(self, p: tuple[float, float]) -> float | None:
        return p[0] / p[1] if p[1] else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        for which in (0, 1):
            require(self, types, NUMBERS, which)
        products, weights = ProductSum(*self.inputs), FloatSum(self.inputs[1])

        def lower(states: tuple[State, ...]) -> pa.Array:
            total, weighed = products.floats(states[0]), weights.floats(states[1])
            with np.errstate(invalid="ignore"):  # inf / inf
                means = total / np.where(weighed == 0.0, 1.0, weighed)
            return arrays.from_fixed(means, weighed != 0.0, pa.float64())

        partials = (Complete(products, self.inputs), Complete(weights, self.inputs))
        return Bound(pa.float64(), partials, lower)
