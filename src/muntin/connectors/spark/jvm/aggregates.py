"""Aggregates as Spark's own functions: lift, combine and lower. Equal partials are computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa
from pyarrow import types as t
from pyspark.sql import functions as f

from muntin.aggregates import base, bits, counts, dependence, extremes, moments, sums
from muntin.expressions import Expr

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Partials", "lowered", "only_uncombined", "unfit"]

Aggregation: TypeAlias = Callable[..., Any]
"""One of Spark's aggregate functions; it returns a Column."""
Kinds: TypeAlias = tuple[pa.DataType, ...]
"""The types of the inputs of an aggregate."""

_HALF = 32
_LOW = 2**_HALF - 1
_MEAN_DIGITS = 13
"""The most digits of decimals whose means Spark's division rounds once, and correctly."""


@dataclass
class Partials:
    """The partial columns of a slice, p0, p1, ..., made when aggregates ask for them."""

    columns: Mapping[Expr, Column]
    lifts: list[Column] = field(default_factory=list)
    combines: list[Aggregation] = field(default_factory=list)
    _known: dict[tuple[str, base.Aggregate], Column] = field(default_factory=dict)

    def part(self, of: base.Aggregate, name: str, lift: Column, combine: Aggregation) -> Column:
        """The partial of this name over the inputs and the filter of the aggregate."""
        key = (name, of)
        if key not in self._known:
            number = len(self.lifts)
            self.lifts.append(lift.alias(f"p{number}"))
            self.combines.append(combine)
            self._known[key] = f.col(f"p{number}")
        return self._known[key]

    def combined(self) -> list[Column]:
        """The partials of a window, from those of its slices."""
        return [combine(f.col(f"p{i}")).alias(f"p{i}") for i, combine in enumerate(self.combines)]

    def inputs(self, of: base.Aggregate) -> list[Column]:
        """The inputs of an aggregate, null where its filter is not true."""
        columns = [self.columns[expr] for expr in of.inputs]
        if of.filter is None:
            return columns
        condition = self.columns[cast(Expr, of.filter)]
        return [f.when(condition, column) for column in columns or [f.lit(1)]]

    def count(self, of: base.Aggregate) -> Column:
        """The number of tuples, or of values."""
        (column,) = self.inputs(of) or [f.lit(1)]
        return self.part(counts.Count(*of.inputs, filter=of.filter), "count", f.count(column), f.sum)

    def total(self, of: base.Aggregate, kind: pa.DataType) -> Column | tuple[Column, Column]:
        """The sum; of 64-bit integers the sums of their upper and lower halves, which cannot overflow."""
        (column,) = self.inputs(of)
        key = sums.Sum(*of.inputs, filter=of.filter)
        if kind != pa.int64():
            return self.part(key, "sum", f.sum(column), f.sum)
        upper = self.part(key, "upper", f.sum(f.shiftright(column, _HALF)), f.sum)
        lower = self.part(key, "lower", f.sum(column.bitwiseAND(f.lit(_LOW))), f.sum)
        return upper + f.shiftright(lower, _HALF), lower.bitwiseAND(f.lit(_LOW))


def _count(of: base.Aggregate, kinds: Kinds, partials: Partials) -> Column:
    return partials.count(of)


def _count_if(of: base.Aggregate, kinds: Kinds, partials: Partials) -> Column:
    (condition,) = partials.inputs(of)
    return partials.part(of, "true", f.count_if(condition), f.sum)


def _sum(of: base.Aggregate, kinds: Kinds, partials: Partials) -> Column:
    total = partials.total(of, kinds[0])
    if not isinstance(total, tuple):
        return total
    upper, lower = total
    message = f'a sum over "{of.inputs[0]}" overflows: it does not fit into 64 bits; cast the column'
    whole = f.shiftleft(upper, _HALF).bitwiseOR(lower)
    beyond = (upper >= 2 ** (_HALF - 1)) | (upper < -(2 ** (_HALF - 1)))
    return f.when(beyond, f.raise_error(message).cast("bigint")).otherwise(whole)


def _mean(of: base.Aggregate, kinds: Kinds, partials: Partials) -> Column:
    (kind,) = kinds
    count, total = partials.count(of), partials.total(of, kind)
    if isinstance(total, tuple):
        total = total[0].cast("double") * f.lit(2.0**_HALF) + total[1].cast("double")
    if t.is_decimal(kind):  # with eleven digits more than the result: rounding twice makes no tie
        total = total.cast(f"decimal({kind.precision + 14}, {kind.scale + 4})")
        return f.when(count > 0, total / count.cast("decimal(10, 0)"))
    return f.when(count > 0, total.cast("double") / count.cast("double"))


def _of_spark(of: base.Aggregate, kinds: Kinds, partials: Partials) -> Column:
    """A function of Spark that also combines its own results; those of moments are never combined."""
    name = (_COMBINED | _MOMENTS)[type(of)]
    if isinstance(of, moments.Variance | dependence.Covariance):
        name += "_pop" if of.population else "_samp"
    function: Aggregation = getattr(f, name)
    return partials.part(of, name, function(*partials.inputs(of)), function)


Lowering: TypeAlias = "Callable[[Any, Kinds, Partials], Column]"

_COMPOSED: dict[type, Lowering] = {
    counts.Count: _count,
    counts.CountIf: _count_if,
    sums.Sum: _sum,
    sums.Mean: _mean,
}
_COMBINED: dict[type, str] = {
    extremes.Min: "min",
    extremes.Max: "max",
    counts.Every: "bool_and",
    counts.Some: "bool_or",
    bits.BitAnd: "bit_and",
    bits.BitOr: "bit_or",
    bits.BitXor: "bit_xor",
}
_MOMENTS: dict[type, str] = {
    moments.Variance: "var",
    moments.Stddev: "stddev",
    moments.Skewness: "skewness",
    moments.Kurtosis: "kurtosis",
    dependence.Covariance: "covar",
    dependence.Correlation: "corr",
}


def lowered(of: base.Aggregate, kinds: Kinds, partials: Partials) -> Column:
    """The result as a column over partials."""
    lower: Lowering = _COMPOSED.get(type(of), _of_spark)
    return lower(of, kinds, partials)


def only_uncombined(of: base.Aggregate) -> bool:
    """Whether Spark computes it only for windows of one slice.

    SQL cannot combine the deviations of two slices from their common mean without a loss of digits.
    """
    return type(of) in _MOMENTS


def unfit(of: base.Aggregate, kinds: Kinds) -> bool:
    """Whether Spark has no such function, or not over inputs of these types."""
    if type(of) not in _COMPOSED | _COMBINED | _MOMENTS or any(map(t.is_null, kinds)):
        return True
    if isinstance(of, sums.Sum | sums.Mean):
        wide = isinstance(of, sums.Mean) and t.is_decimal(kinds[0]) and kinds[0].precision > _MEAN_DIGITS
        return wide or not (t.is_integer(kinds[0]) or t.is_floating(kinds[0]) or t.is_decimal(kinds[0]))
    if isinstance(of, extremes.Min | extremes.Max):
        return bool(t.is_nested(kinds[0]) or t.is_duration(kinds[0]))
    return False
