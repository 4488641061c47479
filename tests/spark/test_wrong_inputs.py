"""Wrong inputs on Spark, and the answers: the rule, the value and the cure."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError

QUERY = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).on("ts")


def test_times_that_are_texts(spark: SparkSession) -> None:
    texts = spark.createDataFrame([("2024-01-31 12:00:00", 1)], "ts string, v long")
    for call in (lambda: texts.transform(QUERY), lambda: QUERY.explain(texts)):
        with pytest.raises(QueryError) as error:
            call()
        assert str(error.value) == (
            'the time column "ts" must be a timestamp or an integer: got texts; write '
            'events.withColumn("ts", f.to_timestamp("ts")), or with a format, '
            'f.to_timestamp("ts", "MM/dd/yyyy HH:mm")'
        )
    times = texts.withColumn("ts", f.to_timestamp("ts"))
    assert [row["total"] for row in times.transform(QUERY).collect()] == [1]


def test_seconds_since_1970_have_a_recipe(spark: SparkSession) -> None:
    seconds = spark.createDataFrame([(1_706_702_400, 1)], "ts long, v long")
    with pytest.raises(QueryError, match=r'got "10 seconds"; .*f.timestamp_seconds\(column\) on Spark'):
        seconds.transform(QUERY)
    times = seconds.withColumn("ts", f.timestamp_seconds("ts"))
    assert [row["total"] for row in times.transform(QUERY).collect()] == [1]


def test_a_frame_is_transformed_and_not_run(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 1)], "ts long, v long")
    with pytest.raises(DataError, match=r"of Spark does not run in this process: use df.transform\(query\)"):
        QUERY.run(frame)
    with pytest.raises(DataError, match=r"use df.transform\(query\)"):
        QUERY.operator().process(frame)


def test_stats_wants_a_running_stream(spark: SparkSession) -> None:
    with pytest.raises(QueryError, match=r"stats takes a running stream: got a DataFrame; pass what"):
        QUERY.stats(spark.range(3))
