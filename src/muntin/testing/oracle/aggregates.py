"""The aggregate of a list of tuples, for the oracle: one small function per aggregate.

Every function takes the values in (time, arrival) order. Nulls are skipped, as in
SQL; without any value the result is null.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import operator
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

from muntin.errors import DataError, QueryError
from muntin.testing.oracle import statistics
from muntin.testing.oracle.bloom import bloom_filter
from muntin.testing.oracle.expressions import evaluate

__all__ = ["aggregate_value"]

_MICROSECOND = dt.timedelta(microseconds=1)
_DIGITS = 100
"""Enough for sums and quotients of decimals; Python rounds to 28."""


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
    if name == "count_distinct":
        return len({tuple(map(_order, row)) for row in rows if None not in row})
    if name == "top_k":
        return _top_k([(row[0], row[-1]) for row in rows if row[-1] is not None], aggregate.k)
    if name == "aggregate":
        counted = [row for row in rows if None not in row or not aggregate.ignore_nulls]
        return _user_defined(aggregate.functions, counted)
    if name in _BY_ROWS:
        return _BY_ROWS[name](aggregate, [row for row in rows if None not in row])
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
    with localcontext(prec=_DIGITS):
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
        return _decimal_mean(values)
    if isinstance(values[0], dt.timedelta):  # to the microsecond, half of one away from zero
        mean = Fraction(sum(value // _MICROSECOND for value in values), len(values))
        return math.floor(abs(mean) + Fraction(1, 2)) * (-1 if mean < 0 else 1) * _MICROSECOND
    return float(Fraction(sum(values), len(values)))


def _decimal_mean(values: list[Decimal]) -> Decimal:
    """With four decimals more than the values have, rounded half away from zero, as in Spark."""
    decimals = min(38, 4 - int(values[0].as_tuple().exponent))
    with localcontext(prec=_DIGITS):
        return (sum(values, Decimal(0)) / len(values)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def _min(aggregate: Any, values: list[Any]) -> Any:
    return min(values, key=_order, default=None)


def _max(aggregate: Any, values: list[Any]) -> Any:
    return max(values, key=_order, default=None)


def _min_count(aggregate: Any, values: list[Any]) -> int:
    return sum(_order(value) == _order(_min(aggregate, values)) for value in values)


def _max_count(aggregate: Any, values: list[Any]) -> int:
    return sum(_order(value) == _order(_max(aggregate, values)) for value in values)


def _count_if(aggregate: Any, values: list[Any]) -> int:
    return values.count(True)


def _every(aggregate: Any, values: list[Any]) -> bool | None:
    return all(values) if values else None


def _some(aggregate: Any, values: list[Any]) -> bool | None:
    return any(values) if values else None


def _first(aggregate: Any, values: list[Any]) -> Any:
    return values[0] if values else None


def _last(aggregate: Any, values: list[Any]) -> Any:
    return values[-1] if values else None


def _collect(aggregate: Any, values: list[Any]) -> list[Any]:
    return values


def _concat(aggregate: Any, values: list[Any]) -> str | None:
    return aggregate.separator.join(values) if values else None


def _collect_set(aggregate: Any, values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if all(_order(value) != _order(other) for other in found):
            found.append(value)
    return found


def _mode(aggregate: Any, values: list[Any]) -> Any:
    """The smallest of the values that occur most often."""
    if not values:
        return None
    ordered = sorted(values, key=_order)
    keys = [_order(value) for value in ordered]
    most = max(keys.count(key) for key in keys)
    return next(value for value, key in zip(ordered, keys, strict=True) if keys.count(key) == most)


def _nth(aggregate: Any, values: list[Any]) -> Any:
    """The n-th from the end."""
    return values[-aggregate.n] if len(values) >= aggregate.n else None


def _m4(aggregate: Any, values: list[Any]) -> dict[str, Any] | None:
    if not values:
        return None
    ordered = sorted(values, key=_order)
    return {"min": ordered[0], "max": ordered[-1], "first": values[0], "last": values[-1]}


def _histogram(aggregate: Any, values: list[Any]) -> list[dict[str, Any]]:
    if hasattr(aggregate, "edges"):
        edges, last = aggregate.edges, aggregate.edges[-1]
    else:
        values = [float(value) for value in values if math.isfinite(value)]
        if not values:
            return []
        edges, last = _equal_edges(min(values), max(values), aggregate.bins), math.inf
    ends = [*edges[1:-1], last]
    return [
        {"start": start, "end": shown, "count": len([v for v in values if start <= v < end])}
        for start, shown, end in zip(edges[:-1], edges[1:], ends, strict=True)
    ]


def _equal_edges(low: float, high: float, bins: int) -> list[float]:
    """As NumPy does, one value lies in the middle of a range of length 1."""
    if low == high:
        low, high = low - 0.5, high + 0.5
    return [low + k * (high / bins - low / bins) for k in range(bins)] + [high]


def _top_k(pairs: list[tuple[Any, Any]], k: int) -> list[Any]:
    """The values with the k largest `by`; Python's sort leaves equal ones in their order."""
    pairs = sorted(pairs, key=lambda pair: _order(pair[1]), reverse=True)
    return [value for value, _ in pairs[:k]]


def _median(aggregate: Any, values: list[Any]) -> float | None:
    return _interpolated(values, 0.5)


def _quantile(aggregate: Any, values: list[Any]) -> float | None:
    return _interpolated(values, aggregate.q)


def _percentiles(aggregate: Any, values: list[Any]) -> list[float | None] | None:
    return [_interpolated(values, q) for q in aggregate.q] if values else None


def _approx_quantile(aggregate: Any, values: list[Any]) -> float | None:
    """Exact: a sketch of so few values forgets none."""
    numbers = sorted(float(value) for value in values if value == value)
    return numbers[max(0, math.ceil(aggregate.q * len(numbers)) - 1)] if numbers else None


def _hashed(aggregate: Any, values: list[Any]) -> list[Any]:
    """The sketches that hash leave the empty string out."""
    return [value for value in values if value != ""]


def _few_distinct(aggregate: Any, values: list[Any]) -> int:
    """Exact, as above."""
    return len({_order(value) for value in _hashed(aggregate, values)})


def _frequent_items(aggregate: Any, values: list[Any]) -> list[dict[str, Any]]:
    found = [(-values.count(value), value) for value in set(values)]
    return [{"item": v, "count": -n, "lower": -n, "upper": -n} for n, v in sorted(found)]


def _count_min(aggregate: Any, values: list[Any]) -> list[dict[str, Any]]:
    """Exact unless all hashes of two values collide, which those of few values do not."""
    hashed = _hashed(aggregate, values)
    return [{"item": item, "count": hashed.count(item)} for item in aggregate.items]


def _bloom(aggregate: Any, values: list[Any]) -> bytes:
    return bloom_filter(values, aggregate.size, aggregate.error)


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
    "variance": statistics.variance,
    "stddev": statistics.stddev,
    "skewness": statistics.skewness,
    "kurtosis": statistics.kurtosis,
    "geometric_mean": statistics.geometric_mean,
    "bit_and": statistics.bit_and,
    "bit_or": statistics.bit_or,
    "bit_xor": statistics.bit_xor,
    "count_if": _count_if,
    "every": _every,
    "some": _some,
    "min": _min,
    "max": _max,
    "min_count": _min_count,
    "max_count": _max_count,
    "first": _first,
    "last": _last,
    "nth": _nth,
    "m4": _m4,
    "collect": _collect,
    "collect_set": _collect_set,
    "concat": _concat,
    "mode": _mode,
    "histogram": _histogram,
    "median": _median,
    "quantile": _quantile,
    "percentiles": _percentiles,
    "approx_quantile": _approx_quantile,
    "approx_count_distinct": _few_distinct,
    "theta": _few_distinct,
    "frequent_items": _frequent_items,
    "count_min": _count_min,
    "bloom": _bloom,
}

_BY_ROWS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "covariance": statistics.covariance,
    "correlation": statistics.correlation,
    "naive_bayes": statistics.naive_bayes,
    "weighted_mean": statistics.weighted_mean,
}
