"""Tuples from the future: a guard keeps them away from the watermark, which Spark never takes back."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files, Running  # beside this file, not installed
from test_streams import at, brief, table

FUTURE = (dt.datetime(2100, 1, 1, tzinfo=dt.UTC) - at(0)).total_seconds()


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path / "in", "ts timestamp, k string, v long", "2 seconds")


def events(files: Files) -> DataFrame:
    reader = files.spark.readStream.schema(files.schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(files.folder))


def query(**policies: Any) -> mt.Query:
    return (
        mt.windows(ten=w.tumbling("10 seconds"), three=w.last(3, every="10 seconds"))
        .aggregate(total=a.sum("v"))
        .by("k")
        .on("ts", **policies)
    )


def feed(files: Files, running: Running, *tables: pa.Table) -> list[tuple[Any, ...]]:
    for one in tables:
        files.put(one)
        running.catch_up()
    return brief([row for row in running.all() if row["kind"] == "final"])


BATCHES = (
    table((1, "a", 1), (5, "b", 2), (FUTURE, "a", 64)),
    table((8, "a", 4), (12, "b", 8)),
    table((25, "a", 16)),
)
TEN = [("ten", 0, 10, "a", 5, "final"), ("ten", 0, 10, "b", 2, "final"), ("ten", 10, 20, "b", 8, "final")]


@pytest.mark.parametrize("way", ["watermark", "guarded"])
@pytest.mark.parametrize("bad", ["skip", "route"])
def test_a_tuple_from_the_future_is_a_bad_one_and_moves_no_watermark(
    files: Files, tmp_path: Path, way: str, bad: str
) -> None:
    wanted = query(bad=bad)
    if way == "watermark":
        results = events(files).transform(wanted, watermark="2 seconds")
    else:
        results = mt.spark.guarded(events(files), wanted).withWatermark("ts", "2 seconds").transform(wanted)
    running = Running(results, tmp_path / "checkpoint")
    found = feed(files, running, *BATCHES)
    stats = wanted.stats(running.query)
    running.stop()
    assert [row for row in found if row[0] == "ten"] == TEN
    assert ("three", 1, 10, "a", 5, "final") in found
    assert (stats.bad, stats.late) == (1, 0)
    assert stats.newest == at(25)
    routed = [row for row in running.all() if row["kind"] == "bad"]
    if bad == "route":
        assert [(row["bad"]["v"], row["bad"]["ts"].year) for row in routed] == [(64, 2100)]
        assert "must not be more than 366 days ahead of the clock" in routed[0]["bad"]["reason"]
    else:
        assert routed == []


@pytest.mark.parametrize("plan", ["packed", "jvm"])
def test_where_bad_tuples_are_fatal_the_stream_goes_on_once_it_is_gone(
    files: Files, tmp_path: Path, plan: str
) -> None:
    wanted = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).by("k").on("ts")
    checkpoint = tmp_path / "checkpoint"
    running = Running(events(files).transform(wanted, plan=plan, watermark="2 seconds"), checkpoint)
    with pytest.raises(StreamingQueryException, match="must not be more than 366 days ahead of the clock"):
        feed(files, running, *BATCHES)
    repaired = events(files).where("ts < '2100-01-01'")
    running = Running(repaired.transform(wanted, plan=plan, watermark="2 seconds"), checkpoint)
    found = feed(files, running, *BATCHES[1:])
    running.stop()
    assert found == TEN


def test_spark_s_own_window_skips_tuples_from_the_future(files: Files, tmp_path: Path) -> None:
    wanted = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).by("k")
    results = events(files).transform(wanted.on("ts", bad="skip"), plan="jvm", watermark="2 seconds")
    running = Running(results, tmp_path / "checkpoint")
    found = feed(files, running, *BATCHES)
    running.stop()
    assert found == TEN


def test_a_poisoned_checkpoint_goes_on_with_a_guard(files: Files, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    running = Running(events(files).withWatermark("ts", "2 seconds").transform(query()), checkpoint)
    cure = (
        r'start the stream again from its checkpoint with events\.transform\(query, watermark="10 seconds"\)'
    )
    with pytest.raises(StreamingQueryException, match=cure):
        feed(files, running, BATCHES[0])
    # Without the tuple it fails again: Spark's watermark is in the checkpoint.
    repaired = events(files).where("ts < '2100-01-01'")
    again = Running(repaired.withWatermark("ts", "2 seconds").transform(query()), checkpoint)
    with pytest.raises(StreamingQueryException, match=cure):
        feed(files, again, BATCHES[1])
    guarded = Running(repaired.transform(query(), watermark="2 seconds"), checkpoint)
    found = feed(files, guarded, BATCHES[2], table((27, "b", 32)), table((28, "b", 0)))
    guarded.stop()
    assert [row for row in found if row[0] == "ten"] == TEN
    assert ("three", 1, 10, "a", 5, "final") in found


def test_a_limit_without_a_guard_is_refused(files: Files) -> None:
    wanted = query(max_ahead="1 hour")
    assert "tuples more than 1 hour ahead of the clock" in str(wanted.explain(events(files), verbose=True))
    assert "tuples more than 366 days ahead of the clock" in str(query().explain(events(files), verbose=True))
    with pytest.raises(QueryError, match=r"mt\.spark\.guarded\(events, query\)"):
        events(files).withWatermark("ts", "2 seconds").transform(wanted)
    with pytest.raises(QueryError, match='there already is one on "ts"'):
        events(files).withWatermark("ts", "2 seconds").transform(wanted, watermark="2 seconds")
    with pytest.raises(QueryError, match="watermark must be a duration"):
        events(files).transform(wanted, watermark=5)


def test_a_bounded_frame_needs_no_watermark(spark: SparkSession) -> None:
    frame = spark.createDataFrame(table((1, "a", 1), (FUTURE, "a", 64)))
    ten = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).by("k").on("ts")
    found = mt.spark.guarded(frame, ten).transform(ten, watermark="2 seconds").collect()
    assert sorted(row["total"] for row in found) == [1, 64]
    limited = ten.on("ts", max_ahead="1 day", bad="skip")
    assert [row["total"] for row in frame.transform(limited).collect()] == [1]
