"""sum: exact over integers, durations and decimals, compensated over floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, joined, refuse
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.exact_sums import exact_sum
from muntin.aggregates.partials.float_sums import FloatSum
from muntin.errors import DataError

__all__ = ["Sum", "require_number"]

_SUM_DIGITS = 10
"""The digits that a sum of decimals has in addition to those of its values, as in Spark."""


@dataclass(frozen=True, slots=True)
class Sum(Aggregate):
    """The sum of the values; null over none. An integer that overflows is an error, never a wrap.

    Integers give int64, floats float64, decimals ten digits more, durations durations. The partial is
    (n, sum): without n, nothing would tell a sum of 0 from no value.

    >>> total = Sum("amount")
    >>> total.lower(total.combine(total.lift(2), total.lift(-5)))
    -3
    """

    column: ColumnLike

    constructor = "sum"
    invertible = True  # over floats the bound aggregate is not
    kind = "distributive"

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, Any] | None:
        return None if value is None else (1, value)

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, lambda p, q: (p[0] + q[0], p[1] + q[1]))

    def lower(self, p: tuple[int, Any] | None) -> Any:
        total = None if p is None else p[1]
        if isinstance(total, int) and not -(2**63) <= total < 2**63:
            raise DataError(f'a sum over "{self.column}" overflows: {total} does not fit into 64 bits')
        return total

    def invert(self, whole: Any, part: Any) -> Any:
        if part is None:
            return whole
        return (whole[0] - part[0], whole[1] - part[1]) if whole[0] > part[0] else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, arrays.plain_type(types[0])
        count = Values(expr)
        if t.is_floating(type_):
            floats = FloatSum(expr)
            return Bound(
                pa.float64(),
                (count, floats),
                lambda s: arrays.from_fixed(floats.floats(s[1]), s[0] > 0, pa.float64()),
            )
        if not (t.is_integer(type_) or t.is_duration(type_) or arrays.is_decimal(type_)):
            raise refuse(self, expr, types[0], "numbers or durations")
        exact = exact_sum(expr, type_)
        if arrays.is_decimal(type_):
            decimal = pa.decimal128(min(38, type_.precision + _SUM_DIGITS), type_.scale)
            return Bound(decimal, (count, exact), lambda s: exact.decimals(s[1], s[0] > 0, decimal))
        result = type_ if t.is_duration(type_) else pa.int64()
        return Bound(
            result, (count, exact), lambda s: arrays.from_fixed(exact.integers(s[1]), s[0] > 0, result)
        )


def require_number(aggregate: Aggregate, which: int, types: tuple[pa.DataType, ...]) -> None:
    """A DataError if this input holds no numbers."""
    type_ = arrays.plain_type(types[which])
    if not (t.is_integer(type_) or t.is_floating(type_) or arrays.is_decimal(type_)):
        raise refuse(aggregate, aggregate.inputs[which], types[which], "numbers")
