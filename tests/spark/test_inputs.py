"""DataFrames with columns that are easily mistaken: their names, maps, intervals, watermarks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError

TEN = mt.windows(ten=w.tumbling("10 seconds"))


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    start = datetime(2026, 1, 1)
    rows = [(start + timedelta(seconds=i), "aA"[i % 2], i, {"x": i}) for i in range(4)]
    return spark.createDataFrame(rows, "ts timestamp, shop string, v int, tags map<string, int>")


def test_a_computed_column_with_the_name_of_another_is_refused(events: DataFrame) -> None:
    by_shop = TEN.aggregate(n=a.count()).by(f.upper("shop").alias("shop")).on("ts")
    with pytest.raises(QueryError, match=r'"shop" is there already; .*alias\("shop_computed"\)'):
        events.transform(by_shop)
    twice = TEN.aggregate(x=a.sum((f.col("v") * 2).alias("y")), z=a.sum((f.col("v") * 3).alias("y"))).on("ts")
    with pytest.raises(QueryError, match='"y" is there already'):
        events.transform(twice)
    other_case = TEN.aggregate(n=a.count()).by(f.col("SHOP")).on("ts")
    assert sorted(row["SHOP"] for row in events.transform(other_case).collect()) == ["A", "a"]
    fine = TEN.aggregate(n=a.count()).by(f.upper("shop").alias("key")).on(f.col("ts"))
    assert [(row["key"], row["n"]) for row in events.transform(fine).collect()] == [("A", 4)]


def test_maps_and_intervals(events: DataFrame) -> None:
    routed = TEN.aggregate(total=a.sum("v")).on("ts", bad="route")
    assert [row["total"] for row in events.transform(routed).collect()] == [6]
    spanned = events.select("*", f.expr("interval 2 months").alias("span"))
    for plan in ("jvm", "packed"):
        query = TEN.aggregate(total=a.sum("v")).on("ts")
        assert [row["total"] for row in mt.spark.transform(query, spanned, plan).collect()] == [6]


def test_columns_called_late_or_bad(events: DataFrame) -> None:
    counted = TEN.aggregate(late=a.count_if("v > 2"))
    with pytest.raises(QueryError, match='the column "late" is for routed tuples'):
        events.transform(counted.on("ts", bad="route"))
    assert "late" in mt.spark.windows(events.transform(counted.on("ts"))).columns
    with pytest.raises(QueryError, match="does not route its late tuples"):
        mt.spark.late(events.transform(counted.on("ts")))


def test_a_watermark_on_another_column_is_refused(spark: SparkSession) -> None:
    stream = (
        spark.readStream.format("rate").load().selectExpr("timestamp as ts", "timestamp as event", "value")
    )
    query = TEN.aggregate(n=a.count()).on("event", allowed_lateness="1 second")
    with pytest.raises(QueryError, match='a watermark on its time column: "event" has none'):
        stream.withWatermark("ts", "1 second").transform(query)
    assert stream.withWatermark("event", "1 second").transform(query).isStreaming


def test_one_query_over_two_parts_of_a_stream(spark: SparkSession) -> None:
    query = TEN.aggregate(n=a.count()).on("timestamp", allowed_lateness="1 second")
    parts = [
        spark.readStream.format("rate").load().withWatermark("timestamp", "1 second").transform(query)
        for _ in range(2)
    ]
    assert parts[0].unionByName(parts[1]).isStreaming
