"""`events.transform(query)` on local Spark: bounded and streaming, beside the embedded engine."""

from __future__ import annotations

import datetime as dt
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
DISORDER, DELAY = 150, 5

QUERIES = {
    "time": mt.windows(
        ten=w.tumbling("10 seconds"),
        smooth=w.sliding("30 seconds", every="10 seconds"),
        visit=w.session("3 seconds"),
        day=w.calendar("day", tz="Europe/Berlin"),
    ),
    "tuples": mt.windows(
        five=w.count(5),
        last=w.last(3, every="10 seconds"),
        high=w.threshold(mt.col("v") > 50),
        ten=w.tumbling("10 seconds"),
    ),
}


def query(name: str, keys: tuple[str, ...] = ("k",)) -> mt.Query:
    return (
        QUERIES[name]
        .aggregate(total=a.sum("v"), mean=a.mean("x"), first=a.first("v"), all=a.collect("v"), n=a.count())
        .by(*keys)
        .on("ts", allowed_lateness="3 minutes")
    )


def events(seed: int, rows: int = 400) -> pa.Table:
    """Tuples up to DISORDER seconds out of order, no two at one time."""
    rng = random.Random(seed)
    times = rng.sample(range(rows * 700), rows)
    times.sort(key=lambda t: t + rng.randint(0, DISORDER * 1000))
    return pa.table(
        {
            "ts": pa.array(
                [START + dt.timedelta(milliseconds=t) for t in times], pa.timestamp("us", tz="UTC")
            ),
            "k": pa.array([rng.choice(["a", "b", "c", None]) for _ in range(rows)]),
            "v": pa.array([rng.randint(0, 100) for _ in range(rows)]),
            "x": pa.array([rng.choice([None, rng.random()]) for _ in range(rows)]),
        }
    )


def rows_of(table: pa.Table | mt.Results) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def close(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == theirs | {"mean": pytest.approx(theirs["mean"])}


@pytest.mark.parametrize("keys", [("k",), ()], ids=["by key", "one stream"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_bounded_frame_gives_what_the_embedded_engine_gives(
    spark: SparkSession, name: str, keys: tuple[str, ...]
) -> None:
    table = events(1)
    frame = spark.createDataFrame(table).repartition(3)
    found = frame.transform(query(name, keys)).toArrow()
    expected = query(name, keys).run(table)
    close(rows_of(found), rows_of(expected))


def stream(spark: SparkSession, folder: Path, steps: list[pa.Table]) -> DataFrame:
    folder.mkdir()
    for number, step in enumerate(steps):
        path = folder / f"{number:03}.parquet"
        pq.write_table(step, path)
        os.utime(path, (number, number))  # the order in which Spark reads them
    schema = "ts timestamp, k string, v long, x double"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_gives_what_the_embedded_engine_gives(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    table = events(2)
    steps = [table.slice(i, 80) for i in range(0, len(table), 80)]
    frame = stream(spark, tmp_path / "in", steps).withWatermark("ts", f"{DELAY} seconds")
    running = (
        frame.transform(query(name))
        .writeStream.format("memory")
        .queryName(f"results_{name}")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    found = spark.table(f"results_{name}").toArrow()
    # Spark moves the watermark after a micro-batch: tuples are judged by the one before.
    operator = query(name).operator()
    expected = []
    for step in steps:
        operator.process(step)
        expected.append(operator.advance(_watermark(steps, len(expected))))
    expected.append(operator.advance(_watermark(steps, len(steps))))
    close(rows_of(found), rows_of(mt.Results.concat(expected)))
    assert {row["kind"] for row in found.to_pylist()} >= {"final", "update"}


def _watermark(steps: list[pa.Table], number: int) -> dt.datetime:
    """Of micro-batch `number`: the newest time of the batches before it, less the delay, in whole ms."""
    seen = [max(step.column("ts").to_pylist()) for step in steps[:number]]
    return max(seen) - dt.timedelta(seconds=DELAY) if seen else dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def test_without_the_rocksdb_state_store_the_cure_is_named(spark: SparkSession, tmp_path: Path) -> None:
    frame = stream(spark, tmp_path / "in", [events(3)]).withWatermark("ts", "1 second")
    setting = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(setting)
    spark.conf.unset(setting)
    try:
        with pytest.raises(mt.MuntinError, match=r"spark\.conf\.set\("):
            frame.transform(query("time"))
    finally:
        spark.conf.set(setting, before)


def test_without_a_watermark_the_cure_is_named(spark: SparkSession, tmp_path: Path) -> None:
    frame = stream(spark, tmp_path / "in", [events(3)])
    with pytest.raises(mt.MuntinError, match=r'withWatermark\("ts"'):
        frame.transform(query("time"))
    # Functions in Python drop the mark of the column, but not the watermark.
    marked = frame.withWatermark("ts", "1 second").mapInArrow(lambda batches: batches, frame.schema)
    assert marked.transform(query("time")).columns[0] == "k"
