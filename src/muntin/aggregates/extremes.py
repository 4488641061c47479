"""min and max, over every type that has an order, and how often they occur."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import ORDERED, require
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, joined
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.extrema import ArrowExtremum, KeyExtremum
from muntin.aggregates.partials.extreme_counts import ExtremeCount
from muntin.aggregates.partials.step_codes import FLOAT_KEY, NONE, WORD

__all__ = ["Max", "MaxCount", "Min", "MinCount", "rank"]

_WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class _Extreme(Aggregate):
    column: ColumnLike

    kind = "distributive"
    largest = False

    def lift(self, value: Any, at: Order = ORIGIN) -> Any:
        return value

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, lambda p, q: q if (rank(q) > rank(p)) == self.largest else p)

    def lower(self, p: Any) -> Any:
        return p

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, require(self, types, ORDERED)
        if not arrays.has_keys(type_):
            return Bound(type_, (ArrowExtremum(expr, self.largest),), lambda s: s[0])
        return Bound(
            type_,
            (Values(expr), KeyExtremum(expr, self.largest)),
            lambda s: arrays.from_keys(s[1], s[0] > 0, type_),
            only_overflows=True,
            value_code=_value_code(type_),
        )


def _value_code(type_: pa.DataType) -> int:
    """How the order key of an extreme is lowered in the compiled step."""
    if not pa.types.is_primitive(type_) or type_.bit_width != _WORD_BITS or pa.types.is_uint64(type_):
        return NONE
    return FLOAT_KEY if pa.types.is_floating(type_) else WORD


@dataclass(frozen=True, slots=True)
class Min(_Extreme):
    """The smallest value; null over none. NaN is larger than every number, as in Spark.

    >>> smallest = Min("price")
    >>> smallest.lower(smallest.combine(smallest.lift(3), smallest.lift(-2)))
    -2
    """


@dataclass(frozen=True, slots=True)
class Max(_Extreme):
    """The largest value; null over none. NaN is larger than every number, as in Spark.

    >>> largest = Max("price")
    >>> largest.lower(largest.combine(largest.lift(-3), largest.lift(-2)))
    -2
    """

    largest = True


@dataclass(frozen=True, slots=True)
class _ExtremeCount(Aggregate):
    column: ColumnLike

    largest = False

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Any, int] | None:
        return None if value is None else (value, 1)

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, self._join)

    def _join(self, p: tuple[Any, int], q: tuple[Any, int]) -> tuple[Any, int]:
        p_rank, q_rank = rank(p[0]), rank(q[0])
        if p_rank == q_rank:
            return p[0], p[1] + q[1]
        return q if (q_rank > p_rank) == self.largest else p

    def lower(self, p: tuple[Any, int] | None) -> int:
        return 0 if p is None else p[1]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, require(self, types, ORDERED)
        kind = KeyExtremum if arrays.has_keys(type_) else ArrowExtremum
        return Bound(pa.int64(), (ExtremeCount(kind(expr, self.largest)),), lambda s: pa.array(s[0]))


@dataclass(frozen=True, slots=True)
class MinCount(_ExtremeCount):
    """How often the smallest value occurs; 0 over none.

    >>> lowest = MinCount("price")
    >>> lowest.lower(lowest.combine(lowest.lift(2), lowest.combine(lowest.lift(2), lowest.lift(3))))
    2
    """


@dataclass(frozen=True, slots=True)
class MaxCount(_ExtremeCount):
    """How often the largest value occurs; 0 over none.

    >>> peaks = MaxCount("load")
    >>> peaks.lower(peaks.combine(peaks.lift(2), peaks.combine(peaks.lift(2), peaks.lift(3))))
    1
    """

    largest = True


def rank(value: Any) -> tuple[bool, Any]:
    """Orders Python values as columns are ordered: NaN last, and equal to itself.

    >>> rank(float("nan")) > rank(float("inf")), rank(float("nan")) == rank(float("nan"))
    (True, True)
    """
    return (True, 0) if value != value else (False, value)  # only NaN differs from itself
