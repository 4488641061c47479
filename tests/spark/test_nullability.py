"""Columns of results may be null where those of Spark's own functions may."""

from datetime import datetime, timedelta
from typing import Any, Literal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

TUPLES = StructType(
    [
        StructField("ts", TimestampType(), nullable=False),
        StructField("k", IntegerType(), nullable=False),
        StructField("other", IntegerType(), nullable=True),
        StructField("v", LongType(), nullable=True),
    ]
)
IN_JVM = {
    "total": (a.sum("v"), "sum(v)"),
    "mean": (a.mean("v"), "avg(v)"),
    "least": (a.min("v"), "min(v)"),
    "tuples": (a.count(), "count(*)"),
    "values": (a.count("v"), "count(v)"),
    "some": (a.count("v", filter="v > 1"), "count(v) filter (where v > 1)"),
    "large": (a.count_if("v > 1"), "count_if(v > 1)"),
}
IN_PYTHON = IN_JVM | {
    "all": (a.collect("v"), "collect_list(v)"),
    "set": (a.collect_set("v"), "collect_set(v)"),
    "distinct": (a.count_distinct("v"), "count(distinct v)"),
    "near": (a.approx_count_distinct("v"), "approx_count_distinct(v)"),
    "newest": (a.last("v"), "last(v)"),
    "median": (a.median("v"), "median(v)"),
}


def tuples(spark: SparkSession) -> DataFrame:
    start = datetime(2026, 1, 1)
    rows = [(start + timedelta(seconds=i), i % 2, None, None if i % 5 < 3 else i) for i in range(20)]
    return spark.createDataFrame(rows, TUPLES)


def query(aggregates: dict[str, tuple[Any, str]], bad: Literal["fail", "route"] = "fail") -> mt.Query:
    asked = {name: ours for name, (ours, _) in aggregates.items()}
    return mt.windows(two=w.tumbling("2 seconds")).aggregate(**asked).by("k", "other").on("ts", bad=bad)


@pytest.mark.parametrize(("plan", "aggregates"), [("jvm", IN_JVM), ("packed", IN_JVM), ("packed", IN_PYTHON)])
def test_as_of_sparks_own_functions(
    spark: SparkSession, plan: str, aggregates: dict[str, tuple[Any, str]]
) -> None:
    events = tuples(spark)
    ours = mt.spark.transform(query(aggregates), events, plan)
    own = [f.expr(theirs).alias(name) for name, (_, theirs) in aggregates.items()]
    theirs = events.groupBy("k", "other", f.window("ts", "2 seconds")).agg(*own)
    for field in theirs.schema:
        assert (field.name, ours.schema[field.name].dataType) == (field.name, field.dataType)
        assert (field.name, ours.schema[field.name].nullable) == (field.name, field.nullable)
    assert not any(ours.schema[name].nullable for name in ("window_name", "kind", "revision"))
    assert len(ours.collect()) == theirs.count()


def test_rows_of_routed_tuples_have_no_window(spark: SparkSession) -> None:
    results = mt.spark.transform(query(IN_PYTHON, bad="route"), tuples(spark))
    optional = {"window_name", "window", "revision", "tuples", "all", "bad"}
    assert all(results.schema[name].nullable for name in optional)
    assert not results.schema["kind"].nullable
    assert results.count() == 20


def test_lists_that_may_hold_nulls_say_so(spark: SparkSession) -> None:
    rows = [(datetime(2026, 1, 1), None, 9, ["x", None]), (datetime(2026, 1, 1), "bob", 5, ["y"])]
    events = spark.createDataFrame(rows, "ts timestamp, customer string, amount int, tags array<string>")
    asked = mt.windows(two=w.tumbling("2 seconds")).aggregate(
        top=a.top_k("customer", 2, by="amount"), tags=a.arg_max("tags", by="amount"), all=a.collect("tags")
    )
    results = mt.spark.transform(asked.on("ts"), events)
    contains = {name: results.schema[name].dataType.containsNull for name in ("top", "tags", "all")}
    assert contains == {"top": True, "tags": True, "all": False}
    assert results.selectExpr("explode(tags) as tag").where("tag is null").count() == 1
    assert results.selectExpr("explode(top) as one").where("one is null").count() == 1
