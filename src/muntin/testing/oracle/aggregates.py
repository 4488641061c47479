"""The aggregate of a list of tuples, for the oracle: one small function per aggregate.

Every function takes the values in (time, arrival) order. Nulls are skipped, as in
SQL; without any value the result is null.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from muntin.errors import DataError, QueryError
from muntin.testing.oracle.expressions import evaluate

__all__ = ["aggregate_value"]


def aggregate_value(aggregate: Any, content: Sequence[Any]) -> Any:
    """The value of an aggregate over tuples that are in (time, arrival) order.

    `content` holds objects with a `row`: the tuples of one window.
    """
    name = aggregate.constructor
    if aggregate.filter is not None:
        content = [item for item in content if evaluate(aggregate.filter, item.row) is True]
    rows = [tuple(evaluate(column, item.row) for column in aggregate.inputs) for item in content]
    if name == "count":
        return len([row for row in rows if None not in row])
    if name in ("arg_min", "arg_max"):
        return _arg_extreme([(value, by) for value, by in rows if by is not None], largest=name == "arg_max")
    if name == "aggregate":
        return _user_defined(aggregate.functions, [row for row in rows if None not in row])
    if name not in _BY_VALUES:
        raise QueryError(f"the oracle does not know the aggregate {name}")
    values = [value for (value,) in rows]
    if getattr(aggregate, "ignore_nulls", True):
        values = [value for value in values if value is not None]
    return _BY_VALUES[name](aggregate, values)


def _order(value: Any) -> tuple[bool, Any]:
    """Sorts NaN after every number, as Spark does."""
    nan = isinstance(value, float) and math.isnan(value)
    return (nan, 0 if nan else value)


def _sum(aggregate: Any, values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], float):
        return _float_sum(values)
    total = functools.reduce(operator.add, values)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise DataError(f"the sum overflows 64-bit integers: {total}")
    return total


def _float_sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # beyond the largest float, or infinities of both signs
        return sum(values)


def _mean(aggregate: Any, values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], float):
        return _float_sum(values) / len(values)
    if isinstance(values[0], Decimal):
        return sum(values) / len(values)
    return float(Fraction(sum(values), len(values)))


def _variance(aggregate: Any, values: list[Any]) -> float | None:
    """Exact in fractions, then rounded once."""
    divisor = len(values) - (0 if aggregate.population else 1)
    if divisor <= 0:
        return None
    if not all(math.isfinite(value) for value in values):
        return math.nan
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    return float(sum((number - mean) ** 2 for number in numbers) / divisor)


def _stddev(aggregate: Any, values: list[Any]) -> float | None:
    variance = _variance(aggregate, values)
    return None if variance is None else math.sqrt(variance)


def _min(aggregate: Any, values: list[Any]) -> Any:
    return min(values, key=_order, default=None)


def _max(aggregate: Any, values: list[Any]) -> Any:
    return max(values, key=_order, default=None)


def _first(aggregate: Any, values: list[Any]) -> Any:
    return values[0] if values else None


def _last(aggregate: Any, values: list[Any]) -> Any:
    return values[-1] if values else None


def _collect(aggregate: Any, values: list[Any]) -> list[Any]:
    return values


def _median(aggregate: Any, values: list[Any]) -> float | None:
    return _interpolated(values, 0.5)


def _quantile(aggregate: Any, values: list[Any]) -> float | None:
    return _interpolated(values, aggregate.q)


def _interpolated(values: list[Any], q: float) -> float | None:
    """The value at place q * (n - 1) of the sorted values, on a straight line between neighbours."""
    if not values:
        return None
    ordered = sorted(values, key=_order)
    place = q * (len(ordered) - 1)
    below, above = float(ordered[math.floor(place)]), float(ordered[math.ceil(place)])
    part = place - math.floor(place)
    return below if below == above else (1 - part) * below + part * above


def _arg_extreme(pairs: list[tuple[Any, Any]], largest: bool) -> Any:
    """The value that comes with the extreme `by`; the earliest one when several do."""
    if not pairs:
        return None
    extreme = (max if largest else min)((by for _, by in pairs), key=_order)
    return next(value for value, by in pairs if _order(by) == _order(extreme))


def _user_defined(functions: Any, rows: list[tuple[Any, ...]]) -> Any:
    """The user's own functions, one tuple after the other."""
    if not rows:
        return None
    result = functools.reduce(functions.combine, [functions.lift(*row) for row in rows])
    return result if functions.lower is None else functions.lower(result)


_BY_VALUES: dict[str, Callable[[Any, list[Any]], Any]] = {
    "sum": _sum,
    "mean": _mean,
    "variance": _variance,
    "stddev": _stddev,
    "min": _min,
    "max": _max,
    "first": _first,
    "last": _last,
    "collect": _collect,
    "median": _median,
    "quantile": _quantile,
}
