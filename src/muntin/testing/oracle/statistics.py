"""Statistics of numbers for the oracle: exact in fractions, then rounded once.

Over infinities and NaN every statistic is NaN; without any value it is null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any


def variance(aggregate: Any, values: Sequence[Any]) -> float | None:
    """The mean squared deviation, of a sample or of the population."""
    return covariance(aggregate, [(value, value) for value in values])


def stddev(aggregate: Any, values: Sequence[Any]) -> float | None:
    """The square root of the variance."""
    squared = variance(aggregate, values)
    return None if squared is None else math.sqrt(squared)


def skewness(aggregate: Any, values: Sequence[Any]) -> float | None:
    """The mean third power of the deviations, in standard deviations; null if nothing deviates."""
    return _standardised(values, 3)


def kurtosis(aggregate: Any, values: Sequence[Any]) -> float | None:
    """The same with the fourth power, less what a normal distribution has."""
    moment = _standardised(values, 4)
    return None if moment is None else moment - 3.0


def covariance(aggregate: Any, rows: Sequence[tuple[Any, Any]]) -> float | None:
    """The mean product of the deviations of both columns, of a sample or of the population."""
    freedom = len(rows) - (0 if aggregate.population else 1)
    if freedom <= 0:
        return None
    return float(_product(rows) / freedom) if all(map(_finite, rows)) else math.nan


def correlation(aggregate: Any, rows: Sequence[tuple[Any, Any]]) -> float | None:
    """The covariance in units of both standard deviations; null if one of the columns is constant."""
    columns = list(zip(*rows, strict=True))
    if len(rows) < 2 or any(_finite(column) and _moment(column, 2) == 0 for column in columns):
        return None
    if not all(map(_finite, columns)):
        return math.nan
    product, variation = _product(rows), _moment(columns[0], 2) * _moment(columns[1], 2)
    return math.copysign(math.sqrt(product * product / variation), product)


def geometric_mean(aggregate: Any, values: Sequence[Any]) -> float | None:
    """The mean of the logarithms, as a number; null where a logarithm does not exist."""
    if any(value <= 0 for value in values):
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if _finite(values) else math.fsum(values)


def weighted_mean(aggregate: Any, rows: Sequence[tuple[Any, Any]]) -> float | None:
    """The sum of value times weight over the sum of weights; null where that is zero."""
    finite = all(map(_finite, rows))
    numbers = [(Fraction(v), Fraction(w)) if finite else (float(v), float(w)) for v, w in rows]
    weights = sum(weight for _, weight in numbers)
    return float(sum(value * weight for value, weight in numbers) / weights) if weights else None


def naive_bayes(aggregate: Any, rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Per label, in their order: how many tuples, mean and variance of each column."""
    model = []
    for label in sorted({order(row[0]): row[0] for row in rows}.items()):
        columns = list(zip(*(row[1:] for row in rows if order(row[0]) == label[0]), strict=True))
        means = [float(sum(map(Fraction, c)) / len(c)) if _finite(c) else sum(c) / len(c) for c in columns]
        spreads = [float(_moment(c, 2) / len(c)) if _finite(c) else math.nan for c in columns]
        count = len(columns[0])
        model.append({"label": label[1], "count": count, "means": means, "variances": spreads})
    return model


def _standardised(values: Sequence[Any], order: int) -> float | None:
    if not _finite(values):
        return math.nan
    if not (second := _moment(values, 2)):
        return None
    moment, n = _moment(values, order), len(values)
    # One root of one fraction: numerator and denominator alone may be beyond floats.
    squared = Fraction(n) ** (order - 2) * moment * moment / second**order
    return math.copysign(math.sqrt(squared), moment)


def _moment(values: Sequence[Any], order: int) -> Fraction:
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    return Fraction(sum((number - mean) ** order for number in numbers))


def _product(rows: Sequence[tuple[Any, Any]]) -> Fraction:
    x_mean, y_mean = (sum(map(Fraction, column)) / len(rows) for column in zip(*rows, strict=True))
    return Fraction(sum((Fraction(x) - x_mean) * (Fraction(y) - y_mean) for x, y in rows))


def _finite(values: Sequence[Any]) -> bool:
    return all(math.isfinite(value) for value in values)


def order(value: Any) -> tuple[bool, Any]:
    """A sort key: NaN is equal to itself and after every number, as in Spark."""
    return (True, 0) if value != value else (False, value)
