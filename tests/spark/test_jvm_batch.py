"""Bounded DataFrames in the JVM: the results and the types of the packed plan and of the embedded engine."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.expressions import parse
from muntin.testing.rows import same_value

START = dt.datetime(1969, 12, 31, 23, 56, tzinfo=dt.UTC)

WINDOWS = mt.windows(
    ten=w.tumbling("10 seconds"),
    shifted=w.tumbling("7 seconds", offset="2500 ms"),
    overlapping=w.sliding("30 seconds", every="7 seconds"),
    gaps=w.sliding("3 seconds", every="10 seconds"),
    blocks=w.sliding("61500 ms", every="2 seconds", offset="700 ms"),
    growing=w.cumulate("1 minute", "15 seconds"),
    growing_long=w.cumulate("170 seconds", "10 seconds", offset="3 seconds"),
    visit=w.session("3 seconds"),
    long_visit=w.session("5 seconds"),
    day=w.calendar("day"),
    year=w.calendar("year"),
    band=w.fixed_band("1969-12-31T23:58:00", "90 seconds"),
)

ALL_TYPES = {
    "n": a.count(),
    "values": a.count("x"),
    "high": a.count_if("x > 0.5 and v < 70"),
    "total": a.sum("v"),
    "small": a.sum("i"),
    "floats": a.sum("x"),
    "price": a.sum("d"),
    "mean": a.mean("v"),
    "mean_price": a.mean("d"),
    "least": a.min("x"),
    "most": a.max("s"),
    "latest": a.max("ts"),
    "every": a.every("b"),
    "some": a.some("v > 99"),
    "bits": a.bit_xor("i"),
    "chosen": a.sum("x", filter="b"),
    "chosen_tuples": a.count(filter="v > 50"),
    "computed": a.sum(mt.col("i") * 3 - mt.col("v"), filter="v < 1000"),
}


def events(seed: int, rows: int = 400) -> pa.Table:
    rng = random.Random(seed)

    def column(value: Any, nulls: float = 0.1) -> list[Any]:
        return [None if rng.random() < nulls else value() for _ in range(rows)]

    large = [2**61, -(2**62), 5]
    return pa.table(
        {
            "ts": pa.array(
                [START + dt.timedelta(milliseconds=rng.randrange(500_000)) for _ in range(rows)],
                pa.timestamp("us", tz="UTC"),
            ),
            "t": pa.array([rng.randrange(-300, 300) for _ in range(rows)], pa.int64()),
            "k": pa.array(column(lambda: rng.choice("ab"))),
            "z": pa.array(column(lambda: rng.choice([0.0, -0.0, math.nan])), pa.float64()),
            "v": pa.array(column(lambda: rng.choice(large) if rng.random() < 0.02 else rng.randint(0, 99))),
            "i": pa.array(column(lambda: rng.randint(-99, 99)), pa.int16()),
            "x": pa.array(column(lambda: math.nan if rng.random() < 0.02 else rng.random())),
            "d": pa.array(
                column(lambda: Decimal(rng.randint(-(10**6), 10**6)).scaleb(-2)), pa.decimal128(9, 2)
            ),
            "s": pa.array(column(lambda: rng.choice(["", "a", "ä", "\U0001f600"]))),
            "b": pa.array(column(lambda: rng.random() < 0.8)),
        }
    )


def by_window(table: pa.Table, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    def name(row: dict[str, Any]) -> tuple[str, ...]:
        edges = [e.timestamp() if isinstance(e, dt.datetime) else e for e in row["window"].values()]
        return *(repr(row[key]) for key in keys), row["window_name"], repr(edges)

    return sorted(table.to_pylist(), key=name)


def check(query: mt.Query, frame: DataFrame, table: pa.Table, packed: bool = False) -> None:
    """The JVM plan gives what the embedded engine gives, in the types that the packed plan has."""
    found = frame.transform(query, plan="jvm")
    other = frame.transform(query, plan="packed")
    assert found.schema == other.schema
    ours = found.toArrow()
    same(query, ours, query.run(table))
    if packed:
        theirs = other.toArrow()
        assert ours.schema == theirs.schema
        same(query, ours, theirs)


def same(query: mt.Query, ours: pa.Table, theirs: pa.Table) -> None:
    assert len(ours) == len(theirs)
    assert len(theirs) > 0
    pairs = zip(by_window(ours, query.keys), by_window(theirs, query.keys), strict=True)
    assert [(one, other) for one, other in pairs if not same_value(one, other)] == []


@pytest.mark.parametrize("keys", [("k", "z"), ()], ids=["by key", "one stream"])
def test_all_windows_in_one_pass(spark: SparkSession, keys: tuple[str, ...]) -> None:
    table = events(1)
    query = WINDOWS.aggregate(**ALL_TYPES).by(*keys).on("ts")
    check(query, spark.createDataFrame(table).repartition(3), table, packed=bool(keys))


def test_a_window_that_is_one_slice_has_moments_too(spark: SparkSession) -> None:
    table = events(2)
    query = mt.windows(ten=w.tumbling("10 seconds", offset="3 seconds")).aggregate(
        variance=a.variance("x"),
        spread=a.stddev("i", population=True),
        lopsided=a.skewness("i"),
        tails=a.kurtosis("d"),
        together=a.covariance("x", "i", filter="b"),
        correlated=a.correlation("x", "d"),
    )
    check(query.by("k").on("ts"), spark.createDataFrame(table), table)


def test_an_integer_time_column(spark: SparkSession) -> None:
    table = events(3)
    query = mt.windows(
        ten=w.tumbling(10), gaps=w.sliding(3, every=7), visit=w.session(2), band=w.fixed_band(-5, 20)
    )
    query = query.aggregate(n=a.count(), total=a.sum("v")).by("k").on("t")
    check(query, spark.createDataFrame(table), table)


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def test_the_zone_of_the_session(spark: SparkSession) -> None:
    """Civil days on both sides of a change of the clocks; times without a zone stay as they are."""
    zone = "America/New_York"
    start = dt.datetime(2024, 3, 8, 12, tzinfo=dt.UTC)
    times = [start + dt.timedelta(minutes=37 * i) for i in range(200)]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "local": pa.array([t.replace(tzinfo=None) for t in times], pa.timestamp("us")),
            "text": [f"{t:%F %T}" for t in times],  # Spark reads Arrow's local times in its zone
            "v": pa.array(range(200)),
        }
    )
    civil = mt.windows(**{unit: w.calendar(unit, tz=zone) for unit in ("day", "week", "month", "quarter")})
    hours = mt.windows(hours=w.sliding("3 hours", every="1 hour"))
    with setting(spark, "spark.sql.session.timeZone", zone):
        frame = spark.createDataFrame(table.drop_columns("local"))
        frame = frame.selectExpr("ts", "cast(text as timestamp_ntz) as local", "v")
        check(civil.aggregate(total=a.sum("v")).on("ts"), frame, table)
        check(hours.aggregate(total=a.sum("v")).on("local"), frame, table)


EXPRESSIONS = [
    "i + 1", "i * 300 - v", "-v", "abs(v)", "i / 7", "divide(i, 7)", "i % 7", "i // 7", "x * 2", "x / 3 + i",
    "float(i)", "length(s)",
]  # fmt: skip
CONDITIONS = [
    "x > 0.5", "x <= 0.5", "x == x", "x != x", "not (x < 0.5)", "i >= 3.5", "v != 5", "s == 'a'", "s < 'b'",
    "b", "b == True", "i in [1, 2, 3, 4, None]", "not (s in ['a', ''])", "x is None", "v is not None or b",
    "v < 50 and not b",
]  # fmt: skip


def test_expressions_mean_the_same(spark: SparkSession) -> None:
    table = events(4).filter(mt.col("v") < 1000)
    computed = {f"e{i}": a.sum(parse(text)) for i, text in enumerate(EXPRESSIONS)}
    held = {f"c{i}": a.every(text) for i, text in enumerate(CONDITIONS)}
    counted = {f"n{i}": a.count_if(text) for i, text in enumerate(CONDITIONS)}
    query = mt.windows(two=w.tumbling("2 seconds")).aggregate(**computed, **held, **counted).on("ts")
    check(query, spark.createDataFrame(table), table)


def test_no_tuples_no_windows(spark: SparkSession) -> None:
    frame = spark.createDataFrame(events(5)).limit(0)
    query = WINDOWS.aggregate(**ALL_TYPES).by("k").on("ts")
    assert frame.transform(query, plan="jvm").toArrow().num_rows == 0


def test_a_tuple_without_a_time(spark: SparkSession) -> None:
    frame = spark.sql("select * from values (1, 5), (null, 7), (3, 9) as (t, v)")
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v"))
    with pytest.raises(PySparkException, match='the column "t" needs a value in every tuple: got null'):
        frame.transform(query.on("t"), plan="jvm").collect()
    (row,) = frame.transform(query.on("t", bad="skip"), plan="jvm").collect()
    assert row["total"] == 14


def test_integers_overflow_in_results_only(spark: SparkSession) -> None:
    top = 2**63 - 1
    fits = spark.createDataFrame(pa.table({"t": [1, 2, 3], "v": [top, 1, -1]}))
    query = mt.windows(one=w.tumbling(10), two=w.sliding(20, every=10)).aggregate(total=a.sum("v")).on("t")
    assert {row["total"] for row in fits.transform(query, plan="jvm").collect()} == {top}
    beyond = fits.filter("v > 0")
    with pytest.raises(PySparkException, match='a sum over "v" overflows'):
        beyond.transform(query, plan="jvm").collect()


def test_the_input_is_read_once(spark: SparkSession) -> None:
    frame = spark.range(5).selectExpr("id", "id as v")
    query = mt.windows(
        slide=w.sliding(60, every=1), visit=w.session(3), **{f"w{i}": w.tumbling(i) for i in range(1, 9)}
    )
    result = frame.transform(query.aggregate(total=a.sum("v")).on("id"), plan="jvm")
    plan = result._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Range (") == 1
