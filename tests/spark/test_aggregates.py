"""Every aggregate that Spark has too, over random data of every type: the same types and values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.expressions import parse

GROUP = 20
GROUPS = 40
INTEGERS = ["i8", "i16", "i32", "i64"]
NUMBERS = [*INTEGERS, "f32", "f64", "dec", "long"]
OTHERS = ["flag", "text", "raw", "day", "moment", "span"]


def data() -> pa.Table:
    """40 groups of 20 tuples, with nulls; some hold a single value, some none at all."""
    rng = np.random.default_rng(2024)
    size = GROUP * GROUPS
    group = np.arange(size) // GROUP
    floats = rng.choice([0.0, -0.0, 1.5, -2.25, 1e9 + 0.1, 3e-5, math.inf, math.nan], size)
    floats[group > 8] = rng.normal(0, 100, size)[group > 8]
    floats[group == 10] = 0.1  # equal values deviate by nothing
    columns = {
        "i8": pa.array(rng.integers(-128, 128, size), pa.int8()),
        "i16": pa.array(rng.integers(-3, 4, size), pa.int16()),
        "i32": pa.array(rng.integers(-(10**9), 10**9, size), pa.int32()),
        "i64": pa.array(rng.integers(-(10**12), 10**12, size), pa.int64()),
        "f32": pa.array(floats.astype(np.float32)),
        "f64": pa.array(floats),
        "dec": pa.array([Decimal(int(n)).scaleb(-2) for n in rng.integers(-(10**6), 10**6, size)], DECIMAL),
        "long": pa.array([Decimal(int(n)) ** 2 for n in rng.integers(0, 10**9, size)], pa.decimal128(28, 4)),
        "flag": pa.array(rng.random(size) < 0.7),
        "text": pa.array(rng.choice(["", "a", "ä", "z", "\U0001f600"], size)),
        "raw": pa.array([bytes([n]) for n in rng.integers(0, 256, size)], pa.binary()),
        "day": pa.array(rng.integers(-(10**4), 10**4, size), pa.int32()).cast(pa.date32()),
        "moment": pa.array(rng.integers(-(10**15), 10**15, size)).cast(pa.timestamp("us", "UTC")),
        "span": pa.array(rng.integers(-(10**9), 10**9, size)).cast(pa.duration("us")),
    }
    empty = (group == 0) | ((group == 1) & (np.arange(size) % GROUP != 7))
    nulls = {name: pa.array(empty | (rng.random(size) < 0.2) & (group != 2)) for name in columns}
    some = {name: pa.compute.if_else(nulls[name], None, column) for name, column in columns.items()}
    return pa.table({"at": np.arange(size), "g": group, **some})


DECIMAL = pa.decimal128(10, 2)


def cases() -> Iterator[tuple[Any, str]]:
    """Aggregates with what Spark calls them."""
    yield a.count(), "count(*)"
    for x in (*NUMBERS, *OTHERS):
        yield a.count(x), f"count({x})"
        yield a.min(x), f"min({x})"
        yield a.max(x), f"max({x})"
        yield a.first(x), f"first({x})"
        yield a.last(x, ignore_nulls=True), f"last({x}, true)"
        yield a.arg_max(x, by="at"), f"max_by({x}, at)"
        yield a.arg_min(x, by=parse("at * 7 % 20")), f"min_by({x}, at * 7 % 20)"
        yield a.collect(x), f"collect_list({x})"
        yield a.collect_set(x), f"collect_set({x})"
        yield a.mode(x), f"mode({x}, true)"
    for x in (*NUMBERS, "span"):
        yield a.sum(x), f"sum({x})"
        yield a.mean(x), f"avg({x})"
    for x in NUMBERS:
        yield a.variance(x), f"var_samp({x})"
        yield a.variance(x, population=True), f"var_pop({x})"
        yield a.stddev(x), f"stddev_samp({x})"
        yield a.stddev(x, population=True), f"stddev_pop({x})"
        yield a.skewness(x), f"skewness({x})"
        yield a.kurtosis(x), f"kurtosis({x})"
        yield a.covariance(x, "i8"), f"covar_samp({x}, i8)"
        yield a.covariance("f64", x, population=True), f"covar_pop(f64, {x})"
        yield a.correlation(x, "i8"), f"corr({x}, i8)"
        yield a.median(x), f"median({x})"
        yield a.quantile(x, 0.3), f"percentile({x}, 0.3)"
        yield a.percentiles(x, [0.1, 0.9]), f"percentile({x}, array(0.1D, 0.9D))"
    for x in INTEGERS:
        yield a.bit_and(x), f"bit_and({x})"
        yield a.bit_or(x), f"bit_or({x})"
        yield a.bit_xor(x), f"bit_xor({x})"
    yield a.count_if("i16 > 0"), "count_if(i16 > 0)"
    yield a.every("flag"), "every(flag)"
    yield a.some("i8 > 100"), "some(i8 > 100)"
    yield a.concat("text", ", "), "string_agg(text, ', ')"
    yield a.sum("i64", filter="flag"), "sum(i64) filter (where flag)"
    yield a.mean("f64", filter="i16 > 0"), "avg(f64) filter (where i16 > 0)"
    yield a.sum(a.col("i16") * a.col("f64")), "sum(i16 * f64)"
    yield a.count_distinct("f64"), "count(distinct f64)"
    yield a.count_distinct("i16", "text"), "count(distinct i16, text)"


CASES = list(cases())


def sketches() -> Iterator[tuple[Any, str, str]]:
    """Sketches, what Spark calls its own, and by how much ours and theirs differ as Spark reads them."""
    apart = "theta_sketch_estimate(theta_difference({}, {}))"
    both_ways = f"{apart.format('{0}', '{1}')} + {apart.format('{1}', '{0}')}"
    for x in ("i32", "i64", "f32", "f64", "text"):
        yield a.theta(x, result="bytes"), f"theta_sketch_agg({x})", both_ways
    yield a.theta("i8", result="bytes"), "theta_sketch_agg(cast(i8 as int))", both_ways
    more = "hll_sketch_estimate(hll_union({0}, {1})) - hll_sketch_estimate({0})"
    for x in ("i32", "i64", "text"):
        yield a.approx_count_distinct(x, result="bytes"), f"hll_sketch_agg({x}, 12)", more
    at = "kll_sketch_get_quantile_double({}, 0.3D)"
    off = f"if(kll_sketch_get_n_double({{0}}) = 0, 0, {at.format('{0}')} - {at.format('{1}')})"
    yield a.approx_quantile("i32", 0.3, result="bytes"), "kll_sketch_agg_double(cast(i32 as double))", off


SKETCHES = list(sketches())


def test_spark_gives_the_same(spark: SparkSession) -> None:
    own = own_results()
    theirs, between = spark_results(spark, own)
    wrong = {}
    for i, (_, sql) in enumerate(CASES):
        if found := differences(own[f"c{i}"], theirs[f"c{i}"], unordered="collect_set" in sql):
            wrong[sql] = found
    assert wrong == {}
    # Values hash alike, and bytes mean the same: Spark finds no difference between the sketches.
    assert between == dict.fromkeys([theirs for _, theirs, _ in SKETCHES], 0)


def own_results() -> pa.Table:
    named = {f"c{i}": aggregate for i, (aggregate, _) in enumerate(CASES)}
    named |= {f"s{i}": sketch for i, (sketch, _, _) in enumerate(SKETCHES)}
    query = mt.windows(group=w.tumbling(GROUP)).aggregate(**named).on("at")
    return query.run(data().drop_columns("g")).to_arrow()


WITHOUT_COUNTERPART = {
    "UserAggregate": "user code",
    "aggregate": "user code",
    "bloom": "no such function in Spark's SQL",
    "col": "not an aggregate",
    "count_min": "another layout of the sketch",
    "frequent_items": "approx_top_k returns another structure",
    "geometric_mean": "no such function in Spark's SQL",
    "histogram": "histogram_numeric chooses its bins by another rule",
    "m4": "no such function in Spark's SQL",
    "max_count": "no such function in Spark's SQL",
    "min_count": "no such function in Spark's SQL",
    "naive_bayes": "no such function in Spark's SQL",
    "nth": "nth_value is a function over windows of rows only",
    "top_k": "max_by(x, y, k) leaves the order of equal ones open",
    "weighted_mean": "no such function in Spark's SQL",
}


def test_every_aggregate_is_compared_or_has_a_reason() -> None:
    compared = {aggregate.constructor for aggregate, *_ in (*CASES, *SKETCHES)}
    assert compared | WITHOUT_COUNTERPART.keys() == set(a.__all__)
    assert not compared & WITHOUT_COUNTERPART.keys()


def spark_results(spark: SparkSession, own: pa.Table) -> tuple[pa.Table, dict[str, float]]:
    spark.createDataFrame(data()).coalesce(1).createOrReplaceTempView("stream")
    found = {}
    for distinct in (False, True):  # apart: counting distinct values, Spark loses the order of the others
        names = {f"c{i}": sql for i, (_, sql) in enumerate(CASES) if ("distinct" in sql) == distinct}
        columns = ", ".join(f"{sql} as {name}" for name, sql in names.items())
        table = spark.sql(f"select {columns} from stream group by g order by g").toArrow()
        found |= {name: table[name] for name in names}
    return pa.table(found), differing_sketches(spark, own)


def differing_sketches(session: SparkSession, own: pa.Table) -> dict[str, float]:
    """By how much the sketches differ from Spark's own of the same groups, as Spark sees it."""
    ours = own.select([f"s{i}" for i in range(len(SKETCHES))]).append_column("g", pa.array(range(GROUPS)))
    session.createDataFrame(ours).createOrReplaceTempView("ours")
    made = ", ".join(f"{theirs} as t{i}" for i, (_, theirs, _) in enumerate(SKETCHES))
    sums = [f"sum(abs({sql.format(f's{i}', f't{i}')}))" for i, (_, _, sql) in enumerate(SKETCHES)]
    (row,) = session.sql(
        f"select {', '.join(sums)} from ours join (select g, {made} from stream group by g) using (g)"
    ).collect()
    return {theirs: apart for (_, theirs, _), apart in zip(SKETCHES, row, strict=True)}


def differences(own: pa.ChunkedArray, theirs: pa.ChunkedArray, unordered: bool) -> list[Any]:
    """The types if they differ, otherwise the groups whose values do, with both values."""
    if plain(own.type) != plain(theirs.type):
        return [own.type, theirs.type]
    values = [own.to_pylist(), theirs.to_pylist()]
    if unordered:
        values = [[sorted(one, key=lambda value: (value != value, value)) for one in side] for side in values]
    pairs = enumerate(zip(*values, strict=True))
    return [(group, one, other) for group, (one, other) in pairs if not same(one, other)]


def plain(type_: pa.DataType) -> pa.DataType:
    return pa.list_(type_.value_type) if pa.types.is_list(type_) else type_


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and bool(one == other)
