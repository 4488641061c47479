"""quantile and median, exact."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, refuse
from muntin.aggregates.extremes import rank
from muntin.aggregates.partials.runs import SortedRuns
from muntin.errors import QueryError

__all__ = ["Median", "Quantile"]


@dataclass(frozen=True, slots=True)
class _Percentile(Aggregate):
    column: ColumnLike

    kind = "holistic"

    def fraction(self) -> float:
        """Which part of the values lies below the result."""
        return 0.5

    def identity(self) -> tuple[Any, ...]:
        return ()

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Any, ...]:
        return () if value is None else (value,)

    def combine(self, p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        merged = list(p)
        for value in q:
            bisect.insort(merged, value, key=rank)
        return tuple(merged)

    def lower(self, p: tuple[Any, ...]) -> float | None:
        if not p:
            return None
        position = self.fraction() * (len(p) - 1)
        low, high = float(p[math.floor(position)]), float(p[math.ceil(position)])
        between = position - math.floor(position)
        return low if low == high else (1.0 - between) * low + between * high

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, arrays.plain_type(types[0])
        if not (t.is_integer(type_) or t.is_floating(type_) or arrays.is_decimal(type_)):
            raise refuse(self, expr, types[0], "numbers")
        runs = SortedRuns(expr, as_float=arrays.is_decimal(type_))
        return Bound(pa.float64(), (runs,), lambda s: runs.quantiles(s[0], self.fraction(), type_))


@dataclass(frozen=True, slots=True)
class Median(_Percentile):
    """The value in the middle, or between the two in the middle; null over none.

    >>> median = Median("latency")
    >>> median.lower(median.combine(median.lift(1), median.lift(4)))
    2.5
    """

    constructor = "median"


@dataclass(frozen=True, slots=True)
class Quantile(_Percentile):
    """The value below which the fraction `q` of the values lies; null over none.

    Exact, between two values by linear interpolation, like Spark's `percentile`. Slices keep their
    values sorted, equal ones once with a count; all quantiles of a column share them.

    >>> p95 = Quantile("latency", 0.95)
    >>> p95.lower(p95.combine(p95.lift(0), p95.lift(100)))
    95.0
    """

    q: float

    constructor = "quantile"

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        if isinstance(self.q, bool) or not isinstance(self.q, (int, float)) or not 0 <= self.q <= 1:
            raise QueryError(f"q must be a number from 0 to 1: got {self.q!r}")

    def fraction(self) -> float:
        return float(self.q)
