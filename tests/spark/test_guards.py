"""A guard belongs to one query, and limits of a query hold in every plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files  # beside this file, not installed
from test_future import events, files  # noqa: F401  # a fixture
from test_streams import table


def query(**policies: Any) -> mt.Query:
    return mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).by("k").on("ts", **policies)


@pytest.mark.parametrize(
    ("guard", "other"),
    [
        (query(bad="skip"), query()),
        (query(), query(bad="route")),
        (query(), query(max_ahead="1 hour")),
        (query(max_ahead="1 hour"), query()),
    ],
)
def test_a_guard_of_another_query_is_refused(files: Files, guard: mt.Query, other: mt.Query) -> None:  # noqa: F811
    guarded = mt.spark.guarded(events(files), guard)
    marked = guarded.withWatermark("ts", "2 seconds")
    assert marked.transform(guard).isStreaming
    with pytest.raises(QueryError, match=r"a guard must be that of the query: it is for on\(\"ts\"\), "):
        marked.transform(other)
    with pytest.raises(QueryError, match="a guard must be that of the query"):
        guarded.transform(other, watermark="2 seconds")


def test_a_guard_on_another_column_is_refused(files: Files) -> None:  # noqa: F811
    guarded = mt.spark.guarded(events(files).withColumn("seen", f.col("ts")), query())
    on_seen = query().on("seen")
    with pytest.raises(QueryError, match=r'it is for on\("ts"\)'):
        guarded.withWatermark("seen", "2 seconds").transform(on_seen)


def test_one_guard_serves_queries_that_skip_or_route(files: Files) -> None:  # noqa: F811
    marked = mt.spark.guarded(events(files), query(bad="skip")).withWatermark("ts", "2 seconds")
    assert marked.transform(query(bad="route")).isStreaming


def test_a_guard_needs_a_query(files: Files) -> None:  # noqa: F811
    with pytest.raises(QueryError, match="guarded needs a query: got a str"):
        mt.spark.guarded(events(files), "ts")  # type: ignore[arg-type]


def test_a_wrong_delay_is_also_refused_for_a_bounded_frame(spark: SparkSession) -> None:
    with pytest.raises(QueryError, match="watermark must be a duration"):
        spark.createDataFrame(table((1, "a", 1))).transform(query(), watermark="soon")


def test_explain_tells_the_plan_that_runs_with_a_watermark(files: Files) -> None:  # noqa: F811
    assert "plan: Spark's own window()" in str(query().explain(events(files), verbose=True))


@pytest.mark.parametrize("stream", [False, True])
def test_a_limit_of_windows_is_not_for_the_jvm(spark: SparkSession, files: Files, stream: bool) -> None:  # noqa: F811
    frame = events(files) if stream else spark.createDataFrame(table((1, "a", 1), (15, "a", 2)))
    limited = query(max_windows=1)
    assert "not the JVM: the windows of a step are limited" in str(limited.explain(frame, verbose=True))
    with pytest.raises(QueryError, match="cannot run this query: the windows of a step are limited"):
        frame.transform(limited, plan="jvm", watermark="2 seconds")
    if not stream:
        with pytest.raises(Exception, match="a step must not emit more than 1 windows"):
            frame.transform(limited).collect()


@pytest.mark.parametrize("window", [w.tumbling("10 seconds"), w.count(1)], ids=["slices", "tuples"])
def test_the_packed_plan_of_a_bounded_frame_obeys_the_limit_ahead(spark: SparkSession, window: Any) -> None:
    ahead = 20 * 365 * 86_400
    frame = spark.createDataFrame(table((1, "a", 1), (ahead, "a", 64)))
    wanted = mt.windows(it=window).aggregate(total=a.sum("v")).by("k")
    skipped = wanted.on("ts", max_ahead="1 day", bad="skip")
    assert [row["total"] for row in frame.transform(skipped).collect()] == [1]
    with pytest.raises(QueryError, match='plan="jvm" cannot run this query'):
        frame.transform(skipped, plan="jvm")
    with pytest.raises(Exception, match="must not be more than 1 day ahead of the clock"):
        frame.transform(wanted.on("ts", max_ahead="1 day")).collect()
