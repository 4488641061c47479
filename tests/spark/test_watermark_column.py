"""The watermark of a stream must be that of the query's time, also behind functions in Python."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files, Running  # beside this file, not installed

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
QUERY = mt.windows(ten=w.tumbling("10 seconds")).aggregate(n=a.count(), total=a.sum("v")).on("ts")


def at(second: float) -> dt.datetime:
    return START + dt.timedelta(seconds=second)


def table(*seconds: float) -> pa.Table:
    """Tuples with a time, and a second time an hour ahead of it."""
    stamp = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "ts": pa.array([at(s) for s in seconds], stamp),
            "seen": pa.array([at(s + 3600) for s in seconds], stamp),
            "v": pa.array([int(s) for s in seconds], pa.int64()),
        }
    )


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path / "in", "ts timestamp, seen timestamp, v long", "2 seconds")


def unmarked(files: Files) -> DataFrame:
    reader = files.spark.readStream.schema(files.schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(files.folder))


def same(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    return batches


def test_a_watermark_on_another_column_is_refused_behind_a_python_map(files: Files) -> None:
    events = unmarked(files).withWatermark("seen", "1 second")
    mapped = events.mapInArrow(same, events.schema)
    for frame in (events, mapped, mapped.select("ts", "v")):
        with pytest.raises(QueryError, match=r'"ts" has none, it is on "seen"; .* watermark="10 seconds"'):
            frame.transform(QUERY)


def test_a_time_that_is_computed_from_the_marked_one_has_no_watermark(files: Files) -> None:
    events = unmarked(files).withWatermark("ts", "1 second")
    shifted = events.withColumn("ts", f.col("ts") - f.expr("interval 1 day"))
    with pytest.raises(QueryError, match="needs a watermark on its time column"):
        shifted.transform(QUERY)


def test_a_time_that_is_computed_beside_a_python_map_has_no_watermark(files: Files) -> None:
    events = unmarked(files)
    in_front = events.mapInArrow(same, events.schema).withWatermark("ts", "1 second")
    behind = events.withWatermark("ts", "1 second").mapInArrow(same, events.schema)
    for mapped in (in_front, behind):
        for time in (f.col("seen"), f.col("ts") - f.expr("interval 1 day")):
            with pytest.raises(QueryError, match="needs a watermark on its time column"):
                mapped.withColumn("ts", time).transform(QUERY)
        kept = mapped.where("v > 0").withColumnRenamed("ts", "its").withColumnRenamed("its", "ts")
        assert kept.transform(QUERY).isStreaming


def test_each_stream_of_a_union_needs_the_watermark(files: Files) -> None:
    events = unmarked(files)
    marked = events.withWatermark("ts", "1 second")
    for united in (marked.union(events), marked.union(events).where("v > 0"), events.union(marked)):
        with pytest.raises(QueryError, match="every stream of a union needs the watermark"):
            united.transform(QUERY)
    assert marked.union(marked.where("v > 0")).transform(QUERY).isStreaming
    assert events.union(events).transform(QUERY, watermark="1 second").isStreaming


def test_the_column_that_had_the_watermark_can_be_stated(files: Files, tmp_path: Path) -> None:
    events = unmarked(files).select(f.col("ts").alias("sent"), "v").withWatermark("sent", "2 seconds")

    def renamed(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return (batch.rename_columns(["ts", "v"]) for batch in batches)

    mapped = events.mapInArrow(renamed, "ts timestamp, v long")
    with pytest.raises(QueryError, match='watermark_from="sent"'):
        mapped.transform(QUERY)
    with pytest.raises(QueryError, match=r'got "seen", and the watermark is on "sent"'):
        mapped.transform(QUERY, watermark_from="seen")
    running = Running(mapped.transform(QUERY, watermark_from="sent"), tmp_path / "checkpoint")
    for seconds in ((1, 5, 13), (3, 25)):
        files.put(table(*seconds))
        running.catch_up()
    running.stop()
    # The tuple at 3 is late by the watermark of "sent".
    assert [(row["n"], row["total"]) for row in running.all()] == [(2, 6), (1, 13)]


def test_an_integer_time_gets_a_cure_that_works(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "in", "ts long, v long", "2 seconds")
    millis = [int(at(s).timestamp() * 1000) for s in (1, 5, 13, 30)]
    files.put(pa.table({"ts": pa.array(millis, pa.int64()), "v": pa.array([1, 2, 4, 8], pa.int64())}))
    query = mt.windows(ten=w.tumbling(10_000)).aggregate(total=a.sum("v")).on("ts")
    cure = r'events\.withColumn\("ts", f\.timestamp_millis\("ts"\)\)\.transform\(query, watermark="10 sec'
    with pytest.raises(QueryError, match=cure):
        unmarked(files).transform(query)
    timed = unmarked(files).withColumn("ts", f.timestamp_millis("ts"))
    query = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).on("ts")
    running = Running(timed.transform(query, watermark="10 seconds"), tmp_path / "checkpoint")
    found = [row["total"] for row in running.catch_up()]
    running.stop()
    assert sorted(found) == [3, 4]
    local = unmarked(files).withColumn("ts", f.timestamp_millis("ts").cast("timestamp_ntz"))
    with pytest.raises(QueryError, match=r'f\.col\("ts"\)\.cast\("timestamp"\)'):
        local.transform(query, watermark="10 seconds")
    cured = local.withColumn("ts", f.col("ts").cast("timestamp"))
    assert cured.transform(query, watermark="10 seconds").isStreaming


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_windows_that_spark_keeps_are_refused_outside_the_mode_append(
    files: Files, tmp_path: Path, mode: str
) -> None:
    results = unmarked(files).withWatermark("ts", "2 seconds").transform(QUERY, plan="jvm")
    with pytest.raises(Exception, match=r"mode append only: for update use transform\(query"):
        Running(results, tmp_path / "checkpoint", mode=mode).catch_up()
