"""The aggregate of a list of tuples, for the oracle: one line or one small function per aggregate.

Every function takes the values in (time, arrival) order. Nulls are skipped, as in
SQL; without any value the result is null, unless the aggregate counts or collects.
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
from muntin.testing.oracle.statistics import order

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
    if name in _OF_PAIRS:
        return _OF_PAIRS[name](aggregate, [(row[0], row[-1]) for row in rows if row[-1] is not None])
    if getattr(aggregate, "ignore_nulls", True):
        rows = [row for row in rows if None not in row]
    if name in _OF_ROWS:
        return _OF_ROWS[name](aggregate, rows)
    values = [row[0] for row in rows]
    if name in _OF_VALUES:
        return _OF_VALUES[name](aggregate, values)
    if name in _OF_SOME_VALUES:
        return _OF_SOME_VALUES[name](aggregate, values) if values else None
    raise QueryError(f"the oracle does not know the aggregate {name}")


def _sum(values: list[Any]) -> Any:
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


def _mean(values: list[Any]) -> Any:
    if isinstance(values[0], float):
        return _float_sum(values) / len(values)
    if isinstance(values[0], Decimal):  # four decimals more, rounded half away from zero, as in Spark
        digits = min(38, 4 - int(values[0].as_tuple().exponent))
        with localcontext(prec=_DIGITS):
            return (sum(values, Decimal(0)) / len(values)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    if isinstance(values[0], dt.timedelta):  # to the microsecond, half of one away from zero
        mean = Fraction(sum(value // _MICROSECOND for value in values), len(values))
        return math.floor(abs(mean) + Fraction(1, 2)) * (-1 if mean < 0 else 1) * _MICROSECOND
    return float(Fraction(sum(values), len(values)))


def _count_of(extreme: Callable[..., Any], values: list[Any]) -> int:
    """How often the smallest or the largest value occurs."""
    return sum(order(value) == order(extreme(values, key=order)) for value in values)


def _collect_set(values: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for value in values:
        if all(order(value) != order(other) for other in distinct):
            distinct.append(value)
    return distinct


def _mode(values: list[Any]) -> Any:
    """The smallest of the values that occur most often."""
    keys = [order(value) for value in values]
    return max(sorted(values, key=order), key=lambda value: keys.count(order(value)))


def _histogram(aggregate: Any, values: list[Any]) -> list[dict[str, Any]]:
    """With `bins`, between the extremes and the last bin with its end; as in NumPy around a single value."""
    if hasattr(aggregate, "edges"):
        edges, last = aggregate.edges, aggregate.edges[-1]
    else:
        values = [float(value) for value in values if math.isfinite(value)]
        if not values:
            return []
        low, high, bins = min(values), max(values), aggregate.bins
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges, last = [low + k * (high / bins - low / bins) for k in range(bins)] + [high], math.inf
    ends = [*edges[1:-1], last]
    return [
        {"start": start, "end": shown, "count": len([v for v in values if start <= v < end])}
        for start, shown, end in zip(edges[:-1], edges[1:], ends, strict=True)
    ]


def _by(pair: tuple[Any, Any]) -> Any:
    """The sort key of a value and its `by`; Python's sort, min and max leave equal ones in their order."""
    return order(pair[1])


def _interpolated(values: list[Any], q: float) -> float:
    """The value at place q * (n - 1) of the sorted values, on a straight line between neighbours."""
    ordered = sorted(values, key=order)
    place = q * (len(ordered) - 1)
    below, above = float(ordered[math.floor(place)]), float(ordered[math.ceil(place)])
    part = place - math.floor(place)
    return below if below == above else (1 - part) * below + part * above


def _approx_quantile(values: list[Any], q: float) -> float | None:
    """Exact, as the sketch of few values is."""
    numbers = sorted(float(value) for value in values if value == value)
    return numbers[max(0, math.ceil(q * len(numbers)) - 1)] if numbers else None


def _approx_distinct(values: list[Any]) -> int:
    """Exact, as above; the sketches that hash leave the empty string out."""
    return len({order(value) for value in values if value != ""})


def _frequent_items(values: list[Any]) -> list[dict[str, Any]]:
    counts = [(-values.count(value), value) for value in set(values)]
    return [{"item": v, "count": -n, "lower": -n, "upper": -n} for n, v in sorted(counts)]


def _count_min(values: list[Any], items: Sequence[Any]) -> list[dict[str, Any]]:
    """Exact unless all hashes of two values collide, which those of few values do not."""
    return [{"item": item, "count": values.count(item) if item != "" else 0} for item in items]


def _user_defined(functions: Any, rows: list[tuple[Any, ...]]) -> Any:
    """The user's own functions, one tuple after the other."""
    if not rows:
        return None
    result = functools.reduce(functions.combine, [functions.lift(*row) for row in rows])
    return result if functions.lower is None else functions.lower(result)


Function = Callable[[Any, list[Any]], Any]
"""Of the aggregate as the user declared it, and of its input."""

_OF_SOME_VALUES: dict[str, Function] = {  # null without any value
    "sum": lambda _, values: _sum(values),
    "mean": lambda _, values: _mean(values),
    "geometric_mean": statistics.geometric_mean,
    "bit_and": lambda _, values: functools.reduce(operator.and_, values),
    "bit_or": lambda _, values: functools.reduce(operator.or_, values),
    "bit_xor": lambda _, values: functools.reduce(operator.xor, values),
    "every": lambda _, values: all(values),
    "some": lambda _, values: any(values),
    "min": lambda _, values: min(values, key=order),
    "max": lambda _, values: max(values, key=order),
    "first": lambda _, values: values[0],
    "last": lambda _, values: values[-1],
    "nth": lambda nth, values: values[-nth.n] if len(values) >= nth.n else None,
    "m4": lambda _, v: {"min": min(v, key=order), "max": max(v, key=order), "first": v[0], "last": v[-1]},
    "concat": lambda concat, values: concat.separator.join(values),
    "mode": lambda _, values: _mode(values),
    "median": lambda _, values: _interpolated(values, 0.5),
    "quantile": lambda quantile, values: _interpolated(values, quantile.q),
    "percentiles": lambda percentiles, values: [_interpolated(values, q) for q in percentiles.q],
    "approx_quantile": lambda quantile, values: _approx_quantile(values, quantile.q),
    "variance": statistics.variance,
    "stddev": statistics.stddev,
    "skewness": statistics.skewness,
    "kurtosis": statistics.kurtosis,
}

_OF_VALUES: dict[str, Function] = {
    "count_if": lambda _, values: values.count(True),
    "min_count": lambda _, values: _count_of(min, values),
    "max_count": lambda _, values: _count_of(max, values),
    "collect": lambda _, values: values,
    "collect_set": lambda _, values: _collect_set(values),
    "histogram": _histogram,
    "approx_count_distinct": lambda _, values: _approx_distinct(values),
    "theta": lambda _, values: _approx_distinct(values),
    "frequent_items": lambda _, values: _frequent_items(values),
    "count_min": lambda count_min, values: _count_min(values, count_min.items),
    "bloom": lambda bloom, values: bloom_filter(values, bloom.size, bloom.error),
}

_OF_ROWS: dict[str, Function] = {
    "count": lambda _, rows: len(rows),
    "count_distinct": lambda _, rows: len({tuple(map(order, row)) for row in rows}),
    "covariance": statistics.covariance,
    "correlation": statistics.correlation,
    "naive_bayes": statistics.naive_bayes,
    "weighted_mean": statistics.weighted_mean,
    "aggregate": lambda aggregate, rows: _user_defined(aggregate.functions, rows),
}

_OF_PAIRS: dict[str, Function] = {  # of a value and a `by`, which must not be null
    "arg_min": lambda _, pairs: min(pairs, key=_by, default=(None, None))[0],
    "arg_max": lambda _, pairs: max(pairs, key=_by, default=(None, None))[0],
    "top_k": lambda top, pairs: [value for value, _ in sorted(pairs, key=_by, reverse=True)[: top.k]],
}
