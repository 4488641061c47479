"""Every aggregate with what it means, over the types of columns that it takes."""

import math
import operator
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

from muntin import aggregates as a
from muntin.aggregates.base import Aggregate
from muntin.testing.oracle.bloom import bloom_filter

sys.path.insert(0, str(Path(__file__).parent))  # what follows lies beside this file, not installed
from meanings import (
    EXACT,
    Rows,
    arg,
    bins,
    bit_values,
    correlation,
    covariance,
    extreme,
    fold,
    frequent,
    full,
    geometric_mean,
    hashed,
    how_often,
    m4,
    mean,
    mode,
    naive_bayes,
    nearest_rank,
    present,
    quantile,
    rank,
    root,
    standardised,
    sum_,
    top,
    unique,
    variance,
    weighted_mean,
)

_unusual = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1e16, -1e16, 1.0])
# None so small that its fourth power, which kurtosis needs, is beyond floats.
_floats = _unusual | st.floats(-1e6, 1e6).map(lambda x: x if abs(x) > 1e-50 else math.copysign(0.0, x))
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
