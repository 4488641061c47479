"""What each aggregate means, in plain Python: the values are those of the tuples in (time, seq) order."""

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from muntin.errors import DataError

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)

Rows = list[tuple[Any, ...]]
MILLISECOND = timedelta(milliseconds=1)


class Near(NamedTuple):
    """A float with the error that it may have."""

    value: float
    error: float


def rank(value: Any) -> Any:
    return (value != value, 0 if value != value else value)


def present(rows: Rows) -> list[Any]:
    return [row[0] for row in rows if row[0] is not None]


def total(values: list[Any]) -> Any:
    if isinstance(values[0], float):
        special = [v for v in values if not math.isfinite(v)]
        return sum(special) if special else math.fsum(values)
    found = values[0]
    for value in values[1:]:
        found = EXACT.add(found, value) if isinstance(value, Decimal) else found + value
    return found


def sum_(rows: Rows, type_: pa.DataType) -> Any:
    values = present(rows)
    if not values:
        return None
    found = total(values)
    if isinstance(found, int) and not -(2**63) <= found < 2**63:
        raise DataError("overflow")
    if isinstance(found, Decimal) and found.copy_abs() >= 10 ** (min(38, type_.precision + 10) - type_.scale):
        raise DataError("overflow")
    return found


def mean(rows: Rows, type_: pa.DataType) -> Any:
    values = present(rows)
    if not values:
        return None
    if isinstance(values[0], Decimal):
        scale = type_.scale + 4
        found = EXACT.quantize(EXACT.divide(total(values), Decimal(len(values))), Decimal(1).scaleb(-scale))
        if found.copy_abs() >= 10 ** (min(38, type_.precision + 4) - scale):
            raise DataError("overflow")
        return found
    if isinstance(values[0], int):
        return float(Fraction(total(values), len(values)))
    if isinstance(values[0], timedelta):
        units = Fraction(sum(value // MILLISECOND for value in values), len(values))
        return math.copysign(math.floor(abs(units) + Fraction(1, 2)), units) * MILLISECOND
    return total(values) / len(values)


def variance(rows: Rows, population: bool = False) -> float | None:
    values = present(rows)
    freedom = len(values) - (not population)
    if not values or freedom <= 0:
        return None
    if not all(math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    middle = sum(exact) / len(exact)
    return float(sum((x - middle) ** 2 for x in exact) / freedom)


def deviations(values: list[Any]) -> list[Fraction]:
    middle = sum(map(Fraction, values)) / len(values)
    return [Fraction(value) - middle for value in values]


def standardised(values: list[Any], order: int) -> Near | float | None:
    """A number without a unit: how far it may be off does not depend on how large the values are."""
    if not all(map(math.isfinite, values)):
        return math.nan
    d = deviations(values) if values else []
    if not any(d):
        return None
    second, moment = sum(x**2 for x in d), sum(x**order for x in d)
    found = math.sqrt(Fraction(len(d)) ** (order - 2) * moment**2 / second**order)
    return Near(math.copysign(found, moment) - 3 * (order == 4), 1e-12)


def covariance(rows: Rows, less: int) -> Any:
    if len(rows) <= less:
        return None
    if not all(math.isfinite(value) for row in rows for value in row):
        return math.nan
    x, y = (deviations(list(column)) for column in zip(*rows, strict=True))
    found = sum(map(operator.mul, x, y)) / (len(rows) - less)
    return Near(float(found), 1e-9 * math.sqrt(sum(d * d for d in x) * sum(d * d for d in y)))


def correlation(rows: Rows) -> Any:
    columns = [list(column) for column in zip(*rows, strict=True)]
    finite = [all(map(math.isfinite, column)) for column in columns]
    if len(rows) < 2 or any(ok and not any(deviations(c)) for c, ok in zip(columns, finite, strict=True)):
        return None
    if not all(finite):
        return math.nan
    x, y = map(deviations, columns)
    product, variation = sum(map(operator.mul, x, y)), sum(d * d for d in x) * sum(d * d for d in y)
    return Near(math.copysign(math.sqrt(product**2 / variation), product), 1e-9)


def geometric_mean(values: list[Any]) -> float | None:
    if not values or any(value <= 0 for value in values):
        return None
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def weighted_mean(rows: Rows) -> Any:
    rows = [(float(value), float(weight)) for value, weight in rows]
    weights = total([weight for _, weight in rows]) if rows else 0.0
    if not weights:
        return None
    products = [value * weight for value, weight in rows]
    # Where weights cancel, so do the digits of the result.
    return Near(total(products) / weights, 1e-12 * sum(map(abs, products)) / abs(weights))


def naive_bayes(rows: Rows) -> list[dict[str, Any]]:
    model = []
    for key in sorted({rank(label) for label, _ in rows}):
        found = [(value, label) for label, value in rows if rank(label) == key]
        values = [value for value, _ in found]
        middle = Near(float(total(values)) / len(values), 1e-12 * float(max(map(abs, values))))
        spread = variance(found, True)
        model.append({"label": found[0][1], "count": len(values), "means": [middle], "variances": [spread]})
    return model


def fold(join: Callable[[int, int], int], values: list[int]) -> int | None:
    return functools.reduce(join, values) if values else None


def how_often(rows: Rows, choose: Callable[..., Any]) -> int:
    return sum(rank(value) == rank(extreme(rows, choose)) for value in present(rows))


def root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def quantile(rows: Rows, q: float) -> float | None:
    values = [float(value) for value in sorted(present(rows), key=rank)]
    if not values:
        return None
    place = q * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    return low if low == high else (math.ceil(place) - place) * low + (place - math.floor(place)) * high


def arg(rows: Rows, largest: bool) -> Any:
    ranked = [(rank(by), value) for value, by in rows if by is not None]
    if not ranked:
        return None
    best = (max if largest else min)(key for key, _ in ranked)
    return next(value for key, value in ranked if key == best)


def full(rows: Rows) -> Rows:
    return [row for row in rows if None not in row]


def unique(values: list[Any]) -> list[Any]:
    return [value for i, value in enumerate(values) if rank(value) not in map(rank, values[:i])]


def mode(values: list[Any]) -> Any:
    counts = Counter(map(rank, values))
    most = sorted((-count, key) for key, count in counts.items())
    return next((value for value in values if rank(value) == most[0][1]), None)


def m4(values: list[Any]) -> dict[str, Any] | None:
    if not values:
        return None
    first, *_, last = sorted(values, key=rank) * 2
    return {"min": first, "max": last, "first": values[0], "last": values[-1]}


def top(pairs: Rows, k: int) -> list[Any]:
    left, found = [pair for pair in pairs if pair[1] is not None], []
    while left and len(found) < k:
        best = max(rank(by) for _, by in left)
        place = next(i for i, (_, by) in enumerate(left) if rank(by) == best)
        found.append(left.pop(place)[0])
    return found


def bins(rows: Rows, edges: Any) -> list[dict[str, Any]]:
    values = [float(value) for value in present(rows) if not math.isnan(value)]
    closed = edges == 3
    if closed:
        values = [value for value in values if math.isfinite(value)]
        if not values:
            return []
        low, high = min(values), max(values)
        low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
        edges = [low, low + (high / 3 - low / 3), low + 2 * (high / 3 - low / 3), high]
    found = [
        {"start": low, "end": high, "count": sum(low <= v < high for v in values)}
        for low, high in pairwise(edges)
    ]
    found[-1]["count"] += closed * values.count(edges[-1])
    return found


def hashed(rows: Rows) -> list[Any]:
    return [value for value in present(rows) if value != ""]


def nearest_rank(rows: Rows, q: float) -> float | None:
    values = sorted(float(value) for value in present(rows) if value == value)
    return values[max(0, math.ceil(q * len(values)) - 1)] if values else None


def frequent(values: list[Any]) -> list[dict[str, Any]]:
    found = sorted((-count, value) for value, count in Counter(values).items())
    return [{"item": value, "count": -n, "lower": -n, "upper": -n} for n, value in found]


def bit_values(rows: Rows, type_: pa.DataType) -> list[Any]:
    """What a filter hashes: values as they are, decimals as they are written, and 64 bits of integers."""
    values = present(rows)
    if pa.types.is_decimal(type_):
        return pa.array(values, type_).cast(pa.string()).to_pylist()
    return [value - 2**64 if isinstance(value, int) and value >= 2**63 else value for value in values]


def extreme(rows: Rows, choose: Callable[..., Any]) -> Any:
    return choose(present(rows), key=rank, default=None)
