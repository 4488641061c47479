"""Every aggregate over columns, through random lifts, joins and reductions, against plain Python."""

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings

from muntin import aggregates as a
from muntin.aggregates.base import Aggregate, Bound, Groups, with_needs
from muntin.errors import DataError
from muntin.testing.oracle.bloom import bloom_filter

EXACT = Context(prec=200, rounding=ROUND_HALF_UP)

# --- the inputs ---------------------------------------------------------------------------

_floats = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1e16, -1e16, 1.0]) | st.floats(-1e6, 1e6)
_times = st.integers(-(2**40), 2**40)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    small = st.integers(-50, 50) | st.integers(-(10**digits) + 1, 10**digits - 1)
    return small.map(lambda n: EXACT.scaleb(Decimal(n), -scale))


TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 5) | st.integers(0, 2**64 - 1),
    pa.float64(): _floats,
    pa.float32(): st.floats(-1e6, 1e6, width=32) | st.just(math.nan),
    pa.decimal128(9, 2): _decimals(9, 2),
    pa.decimal128(38, 6): _decimals(38, 6),
    pa.bool_(): st.booleans(),
    pa.timestamp("us", "UTC"): _times,
    pa.timestamp("s"): st.integers(-(10**9), 10**9),
    pa.date32(): st.integers(-(10**4), 10**4),
    pa.duration("ms"): _times,
    pa.string(): st.text("aä\U0001f600", max_size=3),
    pa.binary(): st.binary(max_size=2),
    pa.dictionary(pa.int32(), pa.string()): st.text("ab", max_size=2),
    pa.list_(pa.int64()): st.lists(st.integers(0, 3), max_size=2),
}


def number(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


# --- what each aggregate means: the values are those of the tuples in (time, seq) order ----------

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


def standardised(values: list[Any], order: int) -> float | None:
    if not all(map(math.isfinite, values)):
        return math.nan
    d = deviations(values) if values else []
    if not any(d):
        return None
    second, moment = sum(x**2 for x in d), sum(x**order for x in d)
    found = math.sqrt(Fraction(len(d)) ** (order - 2) * moment**2 / second**order)
    return math.copysign(found, moment) - 3 * (order == 4)


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


CASES: dict[str, list[tuple[Aggregate, Callable[[Rows, pa.DataType], Any]]]] = {
    "aggregate": [
        (
            a.aggregate("x", lift=lambda v: [repr(v)], combine=lambda p, q: p + q, lower=" ".join,
                        commutative=False, type=pa.string()),
            lambda rows, _: " ".join(map(repr, present(rows))) or None,
        ),
        (
            a.aggregate("x", "y", lift=lambda x, y: (1, {repr((x, y))}), type=pa.string(),
                        combine=lambda p, q: (p[0] + q[0], p[1] | q[1]),
                        lower=lambda p: f"{p[0]} {sorted(p[1])}"),
            lambda rows, _: (
                f"{len(full)} {sorted({repr(row) for row in full})}"
                if (full := [row for row in rows if None not in row]) else None
            ),
        ),
        (
            a.aggregate("x", lift=lambda v: 1, combine=lambda p, q: p + q, identity=0,
                        invert=lambda p, q: p - q),
            lambda rows, _: len(present(rows)) or None,
        ),
    ],
    "approx_count_distinct": [
        (a.approx_count_distinct("x"), lambda rows, _: len(unique(hashed(rows)))),
    ],
    "approx_quantile": [
        (a.approx_quantile("x", 0.7), lambda rows, _: nearest_rank(rows, 0.7)),
        (a.approx_quantile("x", 0), lambda rows, _: nearest_rank(rows, 0)),
    ],
    "arg_max": [(a.arg_max("x", by="y"), lambda rows, _: arg(rows, True))],
    "arg_min": [(a.arg_min("x", by="y"), lambda rows, _: arg(rows, False))],
    "bit_and": [(a.bit_and("x"), lambda rows, _: fold(operator.and_, present(rows)))],
    "bit_or": [(a.bit_or("x"), lambda rows, _: fold(operator.or_, present(rows)))],
    "bit_xor": [(a.bit_xor("x"), lambda rows, _: fold(operator.xor, present(rows)))],
    "bloom": [(a.bloom("x", 50, 0.1), lambda rows, t: bloom_filter(bit_values(rows, t), 50, 0.1))],
    "collect": [(a.collect("x"), lambda rows, _: present(rows))],
    "collect_set": [(a.collect_set("x"), lambda rows, _: unique(present(rows)))],
    "concat": [(a.concat("x", ", "), lambda rows, _: ", ".join(present(rows)) if present(rows) else None)],
    "correlation": [(a.correlation("x", "y"), lambda rows, _: correlation(full(rows)))],
    "count": [
        (a.count(), lambda rows, _: len(rows)),
        (a.count("x"), lambda rows, _: len(present(rows))),
    ],
    "count_distinct": [
        (a.count_distinct("x"), lambda rows, _: len(unique(present(rows)))),
        (a.count_distinct("x", "y"), lambda rows, _: len({(rank(x), rank(y)) for x, y in full(rows)})),
    ],
    "count_if": [(a.count_if("x"), lambda rows, _: present(rows).count(True))],
    "covariance": [
        (a.covariance("x", "y"), lambda rows, _: covariance(full(rows), 1)),
        (a.covariance("x", "y", population=True), lambda rows, _: covariance(full(rows), 0)),
    ],
    "every": [(a.every("x"), lambda rows, _: all(present(rows)) if present(rows) else None)],
    "count_min": [
        (a.count_min("x", [1, 5]), lambda rows, _: [
            {"item": item, "count": present(rows).count(item)} for item in (1, 5)
        ]),
    ],
    "first": [
        (a.first("x"), lambda rows, _: rows[0][0] if rows else None),
        (a.first("x", ignore_nulls=True), lambda rows, _: next(iter(present(rows)), None)),
    ],
    "geometric_mean": [(a.geometric_mean("x"), lambda rows, _: geometric_mean(present(rows)))],
    "frequent_items": [(a.frequent_items("x"), lambda rows, _: frequent(present(rows)))],
    "histogram": [
        (a.histogram("x", edges=[-math.inf, 0, 2.5]), lambda rows, _: bins(rows, [-math.inf, 0, 2.5])),
        (a.histogram("x", bins=3), lambda rows, _: bins(rows, 3)),
    ],
    "kurtosis": [(a.kurtosis("x"), lambda rows, _: standardised(present(rows), 4))],
    "last": [
        (a.last("x"), lambda rows, _: rows[-1][0] if rows else None),
        (a.last("x", ignore_nulls=True), lambda rows, _: next(iter(present(rows)[::-1]), None)),
    ],
    "m4": [(a.m4("x"), lambda rows, _: m4(present(rows)))],
    "max": [(a.max("x"), lambda rows, _: extreme(rows, max))],
    "max_count": [(a.max_count("x"), lambda rows, _: how_often(rows, max))],
    "mean": [(a.mean("x"), mean)],
    "median": [(a.median("x"), lambda rows, _: quantile(rows, 0.5))],
    "min": [(a.min("x"), lambda rows, _: extreme(rows, min))],
    "min_count": [(a.min_count("x"), lambda rows, _: how_often(rows, min))],
    "mode": [(a.mode("x"), lambda rows, _: mode(present(rows)))],
    "naive_bayes": [(a.naive_bayes("x", columns=["y"]), lambda rows, _: naive_bayes(full(rows)))],
    "nth": [
        (a.nth("x", 1), lambda rows, _: rows[-1][0] if rows else None),
        (a.nth("x", 3), lambda rows, _: rows[-3][0] if len(rows) > 2 else None),
        (a.nth("x", 2, ignore_nulls=True), lambda rows, _: [None, None, *present(rows)][-2]),
    ],
    "percentiles": [
        (
            a.percentiles("x", [0.9, 0.2]),
            lambda rows, _: [quantile(rows, 0.9), quantile(rows, 0.2)] if present(rows) else None,
        ),
    ],
    "quantile": [
        (a.quantile("x", 0.3), lambda rows, _: quantile(rows, 0.3)),
        (a.quantile("x", 1), lambda rows, _: quantile(rows, 1)),
    ],
    "skewness": [(a.skewness("x"), lambda rows, _: standardised(present(rows), 3))],
    "some": [(a.some("x"), lambda rows, _: any(present(rows)) if present(rows) else None)],
    "stddev": [
        (a.stddev("x"), lambda rows, _: root(variance(rows))),
        (a.stddev("x", population=True), lambda rows, _: root(variance(rows, True))),
    ],
    "sum": [(a.sum("x"), sum_)],
    "theta": [(a.theta("x"), lambda rows, _: len(unique(hashed(rows))))],
    "top_k": [
        (a.top_k("x", 2), lambda rows, _: top([(row[0], row[0]) for row in rows], 2)),
        (a.top_k("x", 3, by="y"), lambda rows, _: top(rows, 3)),
    ],
    "variance": [
        (a.variance("x"), lambda rows, _: variance(rows)),
        (a.variance("x", population=True), lambda rows, _: variance(rows, True)),
    ],
    "weighted_mean": [(a.weighted_mean("x", weight="y"), lambda rows, _: weighted_mean(full(rows)))],
}  # fmt: skip

RESULT: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "count": lambda _: pa.int64(),
    "approx_count_distinct": lambda _: pa.int64(),
    "bloom": lambda _: pa.binary(),
    "collect": pa.list_,
    "collect_set": pa.list_,
    "count_distinct": lambda _: pa.int64(),
    "count_min": lambda t: pa.list_(pa.struct({"item": t, "count": pa.int64()})),
    "frequent_items": lambda t: pa.list_(
        pa.struct({"item": t, "count": pa.int64(), "lower": pa.int64(), "upper": pa.int64()})
    ),
    "theta": lambda _: pa.int64(),
    "histogram": lambda _: pa.list_(
        pa.struct({"start": pa.float64(), "end": pa.float64(), "count": pa.int64()})
    ),
    "naive_bayes": lambda t: pa.list_(
        pa.struct({"label": t, "count": pa.int64()}
                  | dict.fromkeys(["means", "variances"], pa.list_(pa.float64())))
    ),
    "m4": lambda t: pa.struct({"min": t, "max": t, "first": t, "last": t}),
    "percentiles": lambda _: pa.list_(pa.float64()),
    "top_k": pa.list_,
    "sum": lambda t: (
        pa.decimal128(min(38, t.precision + 10), t.scale) if pa.types.is_decimal(t)
        else pa.int64() if pa.types.is_integer(t)
        else pa.float64() if pa.types.is_floating(t)
        else t
    ),
    "mean": lambda t: (
        pa.decimal128(min(38, t.precision + 4), t.scale + 4) if pa.types.is_decimal(t)
        else t if pa.types.is_duration(t)
        else pa.float64()
    ),
}  # fmt: skip
RESULT |= dict.fromkeys(["count_if", "max_count", "min_count"], lambda _: pa.int64())
RESULT |= dict.fromkeys(["every", "some"], lambda _: pa.bool_())
STATISTICS = ["correlation", "covariance", "geometric_mean", "kurtosis", "skewness", "weighted_mean"]
STATISTICS += ["approx_quantile", "median", "quantile", "stddev", "variance"]
RESULT |= dict.fromkeys(STATISTICS, lambda _: pa.float64())


def is_fraction(type_: pa.DataType) -> bool:
    return pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def makes_sense(name: str, inputs: list[pa.DataType]) -> bool:
    if name in ("approx_count_distinct", "bloom", "theta"):
        return not pa.types.is_nested(inputs[0]) and (name == "bloom" or not pa.types.is_binary(inputs[0]))
    if name == "frequent_items":
        return makes_sense("theta", inputs) and not is_fraction(inputs[0])
    if name == "count_min":
        return pa.types.is_integer(inputs[0])
    if name in STATISTICS or name in ("histogram", "percentiles"):
        return all(map(number, inputs))
    if name == "naive_bayes":
        return not pa.types.is_nested(inputs[0]) and number(inputs[1])
    if name in ("mean", "sum"):
        return number(inputs[0]) or pa.types.is_duration(inputs[0])
    if name in ("bit_and", "bit_or", "bit_xor"):
        return pa.types.is_integer(inputs[0])
    if name in ("count_if", "every", "some"):
        return pa.types.is_boolean(inputs[0])
    if name in ("min", "max", "min_count", "max_count", "arg_min", "arg_max", "m4", "mode", "top_k"):
        return not pa.types.is_nested(inputs[-1])
    if name in ("collect_set", "count_distinct"):
        return not any(map(pa.types.is_nested, inputs))
    if name == "concat":
        return pa.types.is_string(inputs[0]) or pa.types.is_dictionary(inputs[0])
    return True


# --- the states under test beside what they should contain --------------------------------------


@dataclass
class Rowset:
    """Rows of all partials of an aggregate, and the tuples that each row stands for."""

    bound: Bound
    states: dict[Any, Any]
    content: list[list[tuple[int, int, tuple[Any, ...]]]]
    expected: Callable[[Rows], Any] = field(repr=False)

    @property
    def partials(self) -> tuple[Any, ...]:
        return with_needs(self.bound.partials)

    def of(self, states: dict[Any, Any], content: list[Any]) -> "Rowset":
        for partial, state in states.items():
            assert partial.size(state) == len(content)
            assert partial.nbytes(state) >= 0
            weights = partial.weights(state)
            assert weights is None or len(weights) == len(content)
        return Rowset(self.bound, states, content, self.expected)

    def join(self, other: "Rowset") -> "Rowset":
        states = {p: p.concat([self.states[p], other.states[p]]) for p in self.partials}
        return self.of(states, self.content + other.content)

    def take(self, index: list[int]) -> "Rowset":
        rows = np.array(index, dtype=np.int64)
        states = {p: p.take(self.states[p], rows) for p in self.partials}
        return self.of(states, [self.content[i] for i in index])

    def reduce(self, rows: list[int] | None, ranges: list[tuple[int, int]]) -> "Rowset":
        lo, hi = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
        index = None if rows is None else np.array(rows, dtype=np.int64)
        after: dict[Any, Any] = {}
        windows: dict[Any, Any] = {}
        for p in self.partials:
            before = tuple(self.states[q] for q in p.needs)
            then = tuple(after[q] for q in p.needs)
            after[p] = p.reduce(self.states[p], index, lo.copy(), hi.copy(), before, then)
            windows[p] = p.window(self.states[p], index, lo.copy(), hi.copy(), before, then)
        places = list(range(len(self.content))) if rows is None else rows
        content = [[item for r in places[b:e] for item in self.content[r]] for b, e in ranges]
        Rowset(self.bound, windows, content, self.expected).check()
        return self.of(after, content)

    def snapshot(self) -> "Rowset":
        states = {}
        for p in self.partials:
            columns = p.to_arrow(self.states[p])
            sink = pa.BufferOutputStream()
            batch = pa.record_batch(columns)
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write(batch)
            table = pa.ipc.open_stream(sink.getvalue()).read_all().combine_chunks()
            back = {
                name: table[name].chunk(0) if table[name].num_chunks else pa.array([], table[name].type)
                for name in table.column_names
            }
            states[p] = p.from_arrow(back)
        return self.of(states, self.content)

    def check(self) -> None:
        want, overflow = [], False
        for row in self.content:
            try:
                want.append(self.expected([values for _, _, values in sorted(row, key=lambda r: r[:2])]))
            except DataError:
                overflow = True
        states = tuple(self.states[p] for p in self.bound.partials)
        if overflow:
            with pytest.raises(DataError, match="overflow"):
                self.bound.lower(states)
            return
        found = self.bound.lower(states)
        assert found.type == self.bound.type
        found.validate(full=True)
        spread = max(
            (abs(float(v[0])) for row in self.content for *_, v in row if v and is_finite(v[0])), default=1.0
        )
        for one, other in zip(found.to_pylist(), want, strict=True):
            assert same(one, other, spread), (one, other)


def is_finite(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and math.isfinite(value)


def same(one: Any, other: Any, spread: float) -> bool:
    if isinstance(other, Near):
        return bool(abs(one - other.value) <= other.error) or same(one, other.value, 0.0)
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12 * spread)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other, [spread] * len(one)))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key], spread) for key in one)
    return bool(one == other)


@st.composite
def rowsets(draw: st.DrawFn, aggregate: Aggregate, name: str, expected: Any) -> Rowset:
    one_by_one = name in STATISTICS  # each of its inputs by itself decides
    sensible = [type_ for type_ in TYPES if not one_by_one or makes_sense(name, [type_])]
    types = [draw(st.sampled_from(sensible)) for _ in aggregate.inputs]
    assume(makes_sense(name, types))
    bound = aggregate.bind(tuple(types))
    plain = types[0].value_type if types and pa.types.is_dictionary(types[0]) else (types or [None])[0]
    if name != "aggregate":
        assert bound.type == RESULT.get(name, lambda t: t)(plain)
    seqs = iter(draw(st.permutations(range(60))))
    rowset = None
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(0, 4))
        m = draw(st.integers(0, 12))
        group = [draw(st.integers(-1, n - 1)) for _ in range(m)]
        time = [draw(st.integers(-3, 3)) for _ in range(m)]
        seq = [next(seqs) for _ in range(m)]
        nulls = st.none() if draw(st.booleans()) else st.nothing()
        columns = [[draw(TYPES[type_] | nulls) for _ in range(m)] for type_ in types]
        shape = draw(st.sampled_from(["scatter", "ordered", "offsets"]))
        if shape != "scatter":
            order = sorted(range(m), key=lambda i: (group[i], time[i], seq[i]))
            group, time, seq, *columns = ([c[i] for i in order] for c in (group, time, seq, *columns))
        lifted = _lift(aggregate, bound, types, n, group, time, seq, columns, shape, expected)
        rowset = lifted if rowset is None else rowset.join(lifted)
    assert rowset is not None
    return rowset


def _lift(aggregate, bound, types, n, group, time, seq, columns, shape, expected):
    numbers = {k: np.array(v, dtype=np.int64) for k, v in (("group", group), ("time", time), ("seq", seq))}
    offsets = np.searchsorted(numbers["group"], np.arange(n + 1)) if shape == "offsets" else None
    # One entry before, one after, sliced away: arrays may start anywhere in their buffers.
    padded = [
        pa.array([None, *c, None], type_).slice(1, len(c)) for c, type_ in zip(columns, types, strict=True)
    ]
    values = dict(zip(aggregate.inputs, padded, strict=True))
    group_or_none = None if shape == "offsets" else numbers["group"]
    g = Groups(n, group_or_none, shape != "scatter", numbers["time"], numbers["seq"], values, offsets)
    states: dict[Any, Any] = {}
    for p in with_needs(bound.partials):
        states[p] = p.lift(g, tuple(states[q] for q in p.needs))
    content: list[list[Any]] = [[] for _ in range(n)]
    rows = list(zip(*(array.to_pylist() for array in padded), strict=True)) if padded else [()] * len(group)
    for i, k in enumerate(group):
        if k >= 0:
            content[k].append((time[i], seq[i], rows[i]))
    first = types[0] if types else None
    return Rowset(bound, {}, [], lambda rows: expected(rows, first)).of(states, content)


# --- the tests ------------------------------------------------------------------------------


def test_every_constructor_is_covered() -> None:
    assert set(CASES) == {name for name in a.__all__ if name.islower()} - {"col"}


ALL = [pytest.param(name, *case, id=f"{case[0]}") for name, cases in CASES.items() for case in cases]


@pytest.mark.parametrize(("name", "aggregate", "expected"), ALL)
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_any_tree_of_reductions_equals_recomputation(
    name: str, aggregate: Aggregate, expected: Any, data: st.DataObject
) -> None:
    rowset = data.draw(rowsets(aggregate, name, expected))
    rowset.check()
    for _ in range(data.draw(st.integers(0, 3))):
        size = len(rowset.content)
        step = data.draw(st.sampled_from(["take", "ranges", "gather", "snapshot"]))
        if step == "take":
            rowset = rowset.take(data.draw(st.permutations(range(size))))
        elif step == "ranges":
            rowset = rowset.reduce(None, data.draw(ranges(size)))
        elif step == "gather" and size:
            rows = data.draw(st.lists(st.integers(0, size - 1), max_size=6))
            rowset = rowset.reduce(rows, data.draw(ranges(len(rows))))
        else:
            rowset = rowset.snapshot()
    rowset.check()


def ranges(size: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    edge = st.integers(0, size)
    return st.lists(st.tuples(edge, edge).map(lambda pair: (min(pair), max(pair))), max_size=4)


@pytest.mark.parametrize(("name", "aggregate", "expected"), ALL)
@settings(max_examples=settings.default.max_examples // 4)
@given(data=st.data())
def test_invert_leaves_the_rest(name: str, aggregate: Aggregate, expected: Any, data: st.DataObject) -> None:
    if not aggregate.invertible:
        return
    rowset = data.draw(rowsets(aggregate, name, expected))
    if not rowset.bound.invertible:
        return
    size = len(rowset.content)
    cut = data.draw(st.integers(0, size))
    whole, part, rest = (rowset.reduce(None, [edges]) for edges in ((0, size), (0, cut), (cut, size)))
    states = {p: p.invert(whole.states[p], part.states[p]) for p in rowset.partials}
    rest.of(states, rest.content).check()


@pytest.mark.parametrize(("name", "aggregate", "expected"), ALL)
def test_types_without_meaning_are_refused(name: str, aggregate: Aggregate, expected: Any) -> None:
    for type_ in TYPES:
        types = [type_] * len(aggregate.inputs)
        if types and not makes_sense(name, types):
            with pytest.raises(DataError, match=f'{name} needs .*: "[xy]" is'):
                aggregate.bind(tuple(types))


@pytest.mark.parametrize(
    "aggregate", [case[0] for name, cases in CASES.items() if name != "aggregate" for case in cases]
)
def test_parameters_recreate_the_aggregate(aggregate: Aggregate) -> None:
    assert getattr(a, aggregate.constructor)(**aggregate.parameters()) == aggregate
