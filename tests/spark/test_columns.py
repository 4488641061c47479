"""Columns of a DataFrame that are odd, and what decides the order of tuples of one time."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError

sys.path.insert(0, str(Path(__file__).parent))
from streams import Running  # beside this file, not installed

TEN = w.tumbling("10 seconds")


def query(**aggregates: Any) -> mt.Query:
    return mt.windows(ten=TEN).aggregate(**aggregates).by("k").on("ts")


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "select timestamp_seconds(id) ts, id % 2 k, id v, map('a', id % 2) m, parse_json('[1]') j, null n, "
        "cast('A' as string collate UTF8_LCASE) c from range(6)"
    )


@pytest.mark.parametrize("plan", ["auto", "packed"])
@pytest.mark.parametrize(
    ("change", "wanted", "told"),
    [
        (lambda d: d.withColumn("__group", f.lit(1)), query(n=a.count()), '"__group" is for the engine'),
        (lambda d: d.withColumn("__arrival", f.lit(1)), query(n=a.count()), '"__arrival" is for the engine'),
        (
            lambda d: d.select("*", "v"),
            query(s=a.sum("v")),
            '"v" must name one column: there are "v" and "v"',
        ),
        (lambda d: d.withColumnRenamed("m", "V"), query(s=a.sum("v")), 'there are "v" and "V"; rename'),
        (lambda d: d, query(s=a.sum("v")).by("c"), 'the column "c" has the collation UTF8_LCASE'),
        (lambda d: d, query(s=a.sum("v", filter=mt.col("c") == "a")), "compared byte by byte"),
        (
            lambda d: d.withColumnRenamed("k", "window_name"),
            query(s=a.sum("v")).by().on("ts", late="route"),
            "window_name",
        ),
        (lambda d: d.withColumnRenamed("n", "reason"), query(s=a.sum("v")).on("ts", bad="route"), "reason"),
    ],
)
def test_columns_that_cannot_be_told_apart(
    events: DataFrame, change: Any, wanted: mt.Query, told: str, plan: str
) -> None:
    with pytest.raises(QueryError, match=told):
        change(events).transform(wanted, plan=plan)
    if "route" not in repr(wanted):
        with pytest.raises(QueryError, match=told):
            wanted.explain(change(events), verbose=True)


def test_a_query_that_does_not_fit_the_columns_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.schema("ts timestamp, v long").parquet(str(tmp_path))
    wanted = mt.windows(ten=TEN).aggregate(s=a.sum("v")).on("tz")
    for look in (stream.transform, wanted.explain):
        with pytest.raises(DataError, match='there is no column "tz"'):
            look(wanted) if look != wanted.explain else look(stream)
    with pytest.raises(DataError, match='there is no column "nosuch"'):
        stream.withWatermark("ts", "1 second").transform(wanted.on("ts"), tie="nosuch")


def test_maps_as_keys_variants_on_the_way_and_columns_without_a_type(events: DataFrame) -> None:
    rows = events.transform(query(s=a.sum("v")).by("m")).collect()
    assert sorted((row["m"]["a"], row["s"]) for row in rows) == [(0, 6), (1, 9)]
    rows = events.transform(query(first=a.first("v"), none=a.collect("n"))).collect()
    assert sorted((row["k"], row["first"], row["none"]) for row in rows) == [(0, 0, []), (1, 1, [])]
    routed = query(s=a.sum("v")).on("ts", bad="route")
    rows = events.drop("c", "n").withColumn("ts", f.when(f.col("v") > 0, f.col("ts"))).transform(routed)
    assert [row["v"] for row in mt.spark.bad(rows).collect()] == [0]


def test_tuples_that_differ_by_the_place_of_a_null_have_an_order(spark: SparkSession, tmp_path: Path) -> None:
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    tuples = [
        {"ts": at, "x": x, "y": y, "z": z}
        for x, y, z in ((1, None, None), (None, 1, None), (None, None, [1]), (None, None, [None, 1]))
    ]
    schema = pa.schema(
        {"ts": pa.timestamp("us", "UTC"), "x": pa.int64(), "y": pa.int64(), "z": pa.list_(pa.int64())}
    )
    wanted = mt.windows(one=w.count(1)).aggregate(x=a.first("x"), y=a.first("y"), z=a.first("z")).on("ts")
    found = []
    for number, rows in enumerate((tuples, tuples[::-1])):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        results = spark.read.parquet(str(path)).transform(wanted).collect()
        found.append([(row["window"]["start_rank"], row["x"], row["y"], row["z"]) for row in results])
    assert sorted(found[0], key=repr) == sorted(found[1], key=repr)


def test_a_tie_column_without_a_zone_knows_no_change_of_the_clock(spark: SparkSession) -> None:
    rows = spark.sql(
        "select timestamp_seconds(1) ts, timestamp_ntz'2026-03-29 02:45:00' n, 1 v "
        "union all select timestamp_seconds(1), timestamp_ntz'2026-03-29 03:30:00', 2"
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        wanted = mt.windows(ten=TEN).aggregate(order=a.collect("v")).on("ts")
        assert [row["order"] for row in rows.transform(wanted, tie="n").collect()] == [[1, 2]]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("plan", ["auto", "packed"])
def test_names_are_resolved_as_spark_resolves_them(spark: SparkSession, tmp_path: Path, plan: str) -> None:
    def frame(reader: Any) -> Any:
        rows = spark.sql(
            "select timestamp_seconds(id * 4) Ts, id V, "
            "named_struct('Shop', id % 2, 'in', named_struct('price', id)) Sale from range(6)"
        )
        rows.coalesce(1).write.mode("overwrite").parquet(str(tmp_path / "in"))
        return reader.schema(rows.schema).parquet(str(tmp_path / "in"))

    wanted = (
        mt.windows(ten=TEN)
        .aggregate(
            total=a.sum("sale.in.price"), twice=a.sum(mt.col("v") * 2, filter=mt.col("sale.in.price") > 0)
        )
        .by("sale.shop")
        .on("ts")
    )
    bounded = frame(spark.read).transform(wanted, plan=plan)
    assert bounded.columns[0] == "sale.shop"  # as the query writes it
    expected = [(0, 2, 4), (0, 4, 8), (1, 1, 2), (1, 3, 6), (1, 5, 10)]
    assert sorted((row[0], row["total"], row["twice"]) for row in bounded.collect()) == expected
    stream = frame(spark.readStream).transform(wanted, plan=plan, watermark="0 seconds")
    running = Running(stream, tmp_path / "checkpoint")
    found = [(row["sale.shop"], row["total"], row["twice"]) for row in running.catch_up()]
    running.stop()
    assert sorted(found) == expected[:-1]  # the last window is still open
    with pytest.raises(QueryError, match='one way: got "v" and "V"; write "V"'):
        frame(spark.read).transform(wanted.aggregate(more=a.max("V")))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(DataError, match='there is no column "ts"'):
            frame(spark.read).transform(wanted)
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
