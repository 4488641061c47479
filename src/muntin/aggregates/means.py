"""mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, refuse
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.moments import means
from muntin.aggregates.partials.sums import ExactSum, FloatSum, exact_sum

__all__ = ["Mean"]

_MEAN_DIGITS = 4
"""So many more digits than its values has a mean of decimals, as in Spark."""


@dataclass(frozen=True, slots=True)
class Mean(Aggregate):
    """Arithmetic mean; null over no value.

    The partial is (n, sum), shared with Variance and Sum. Commutative, so slices keep no tuples. The
    result is float64, over decimals a decimal with four digits more.

    >>> mean = Mean("speed")
    >>> mean.lower(mean.combine(mean.lift(2.0), mean.lift(4.0)))
    3.0
    """

    column: ColumnLike

    constructor = "mean"
    invertible = True  # over floats the bound aggregate is not

    def identity(self) -> tuple[int, Any]:
        return 0, 0

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, Any]:
        return self.identity() if value is None else (1, value)

    def combine(self, p: tuple[int, Any], q: tuple[int, Any]) -> tuple[int, Any]:
        return p[0] + q[0], p[1] + q[1]

    def lower(self, p: tuple[int, Any]) -> Any:
        return p[1] / p[0] if p[0] else None

    def invert(self, whole: tuple[int, Any], part: tuple[int, Any]) -> tuple[int, Any]:
        return whole[0] - part[0], whole[1] - part[1]

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
        if not (t.is_integer(type_) or t.is_floating(type_)):
            raise refuse(self, expr, types[0], "numbers")
        total: ExactSum | FloatSum = FloatSum(expr) if t.is_floating(type_) else exact_sum(expr, type_)
        return Bound(
            pa.float64(),
            (count, total),
            lambda s: arrays.from_fixed(means(s[0], total, s[1]), s[0] > 0, pa.float64()),
        )
