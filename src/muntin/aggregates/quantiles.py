"""quantile, percentiles and median, exact."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import NUMBERS, require
from muntin.aggregates.arguments import FRACTION, Rule, must, validate
from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State
from muntin.aggregates.extremes import rank
from muntin.aggregates.partials.runs import SortedRuns

__all__ = ["Median", "Percentiles", "Quantile"]

_FRACTIONS = Rule(
    "be a list of numbers from 0 to 1, like [0.5, 0.95]", lambda q: isinstance(q, (list, tuple)) and bool(q)
)


@dataclass(frozen=True, slots=True)
class _Quantile(Aggregate):
    """The scalar partial is the sorted tuple of the values."""

    column: ColumnLike

    type: ClassVar[pa.DataType] = pa.float64()
    kind = "holistic"
    empty = ()

    def fractions(self) -> tuple[float, ...]:
        """The fractions of the values that lie below each result."""
        return (0.5,)

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Any, ...]:
        return () if value is None else (value,)

    def combine(self, p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        merged = list(p)
        for value in q:
            bisect.insort(merged, value, key=rank)
        return tuple(merged)

    def lower(self, p: tuple[Any, ...]) -> Any:
        return _interpolated(p, self.fractions()[0]) if p else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, require(self, types, NUMBERS)
        runs = SortedRuns(expr, as_float=arrays.is_decimal(type_))

        def lower(states: tuple[State, ...]) -> pa.Array:
            return self.results(*runs.quantiles(states[0], self.fractions(), type_))

        return Bound(self.type, (runs,), lower)

    def results(self, values: Floats, there: Bools) -> pa.Array:
        """The column of results, from one column of values per fraction; null where not `there`."""
        return arrays.from_fixed(values[:, 0], there, pa.float64())


@dataclass(frozen=True, slots=True)
class Median(_Quantile):
    """The value in the middle, or between the two in the middle; null over none.

    >>> median = Median("latency")
    >>> median.lower(median.combine(median.lift(1), median.lift(4)))
    2.5
    """


@dataclass(frozen=True, slots=True)
class Quantile(_Quantile):
    """The value below which the fraction `q` of the values lies; null over none.

    Exact, between two values by linear interpolation, like Spark's `percentile`. Slices keep their
    values sorted, equal ones once with a count; all quantiles of a column share them.

    >>> p95 = Quantile("latency", 0.95)
    >>> p95.lower(p95.combine(p95.lift(0), p95.lift(100)))
    95.0
    """

    q: float = field(metadata=must(FRACTION))

    def fractions(self) -> tuple[float, ...]:
        return (float(self.q),)


@dataclass(frozen=True, slots=True)
class Percentiles(_Quantile):
    """Several quantiles as a list, in the order of `q`; null over no value.

    >>> spread = Percentiles("latency", [0.25, 0.75])
    >>> spread.lower(spread.combine(spread.lift(0), spread.lift(100)))
    [25.0, 75.0]
    """

    q: Sequence[float] = field(metadata=must(_FRACTIONS))

    type = pa.list_(pa.float64())

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        for q in self.q:
            validate("each of q", q, (FRACTION,))
        object.__setattr__(self, "q", tuple(map(float, self.q)))

    def fractions(self) -> tuple[float, ...]:
        return tuple(self.q)

    def lower(self, p: tuple[Any, ...]) -> list[float] | None:
        return [_interpolated(p, q) for q in self.fractions()] if p else None

    def results(self, values: Floats, there: Bools) -> pa.Array:
        ends = np.cumsum(there, dtype=np.int32) * np.int32(len(self.q))
        offsets = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
        return pa.ListArray.from_arrays(offsets, pa.array(values[there].reshape(-1)), mask=pa.array(~there))


def _interpolated(values: tuple[Any, ...], q: float) -> float:
    """The value at place q * (n - 1) of sorted values, on a straight line between its neighbours."""
    position = q * (len(values) - 1)
    low, high = float(values[math.floor(position)]), float(values[math.ceil(position)])
    between = position - math.floor(position)
    return low if low == high else (1.0 - between) * low + between * high
