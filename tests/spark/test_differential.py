"""Beside Spark's own `window`, `session_window` and aggregates, over random data, batch and streaming."""

from __future__ import annotations

import datetime as dt
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
COLUMNS = "ts timestamp, k string, v long, x double"
STEPS, ROWS = 3, 200

AGGREGATES = {
    "n": a.count(),
    "total": a.sum("v"),
    "mean": a.mean("x"),
    "least": a.min("x"),
    "most": a.max("v"),
}
THEIRS = ["count(*) n", "sum(v) total", "avg(x) mean", "min(x) least", "max(v) most"]


def steps(seed: int, disorder: int) -> list[pa.Table]:
    """Micro-batches of tuples that are up to a number of seconds out of order."""
    rng = random.Random(seed)
    size = STEPS * ROWS
    times = sorted(
        (rng.randrange(240_000) for _ in range(size)), key=lambda t: t + rng.randint(0, disorder * 1000)
    )
    table = pa.table(
        {
            "ts": pa.array(
                [START + dt.timedelta(milliseconds=t) for t in times], pa.timestamp("us", tz="UTC")
            ),
            "k": pa.array([rng.choice(["a", "b", None]) for _ in range(size)]),
            "v": pa.array([rng.randint(-9, 9) for _ in range(size)]),
            "x": pa.array([rng.choice([None, rng.random()]) for _ in range(size)]),
        }
    )
    return [table.slice(i * ROWS, ROWS) for i in range(STEPS)]


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Sorted, and without the columns that Spark's own results lack."""
    names = [name for name in ("k", "window", *AGGREGATES, "spread") if name in table.column_names]
    found = table.select(names).to_pylist()
    return sorted(found, key=lambda row: (str(row["k"]), row["window"]["start"], row["window"]["end"]))


def same(ours: pa.Table, theirs: pa.Table) -> None:
    assert len(theirs) > 0
    floats = ("mean", "least", "spread")
    expected = [
        row | {name: pytest.approx(row[name]) for name in floats if name in row} for row in rows(theirs)
    ]
    assert rows(ours) == expected


def theirs(frame: DataFrame, window: Column) -> DataFrame:
    return frame.groupBy(window.alias("window"), "k").agg(*map(f.expr, THEIRS))


def test_bounded(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.concat_tables(steps(1, 60))).repartition(3)
    query = mt.windows(
        ten=w.tumbling("10 seconds", offset="3 seconds"),
        slide=w.sliding("40 seconds", every="2 seconds"),
        visit=w.session("2 seconds"),
        stay=w.session("4 seconds"),
    )
    ours = frame.transform(query.aggregate(**AGGREGATES).by("k").on("ts"), plan="jvm").toArrow()
    for name, window in {
        "ten": f.window("ts", "10 seconds", None, "3 seconds"),
        "slide": f.window("ts", "40 seconds", "2 seconds"),
        "visit": f.session_window("ts", "2 seconds"),
        "stay": f.session_window("ts", "4 seconds"),
    }.items():
        same(ours.filter(pa.compute.equal(ours["window_name"], name)), theirs(frame, window).toArrow())


def run(results: DataFrame, folder: Path, name: str) -> pa.Table:
    running = (
        results.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(folder / name))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    return results.sparkSession.table(name).toArrow()


def source(spark: SparkSession, folder: Path, tables: list[pa.Table], delay: str) -> DataFrame:
    (folder / "in").mkdir()
    for number, table in enumerate(tables):
        path = folder / "in" / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))  # the order in which Spark reads them
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / "in")).withWatermark("ts", delay)


def test_a_stream_handed_over_and_packed(spark: SparkSession, tmp_path: Path) -> None:
    tables = steps(2, 60)
    frame = source(spark, tmp_path, tables, "5 seconds")
    query = mt.windows(ten=w.tumbling("10 seconds", offset="3 seconds"))
    query = query.aggregate(**AGGREGATES, spread=a.stddev("v")).by("k").on("ts")
    handed, packed = frame.transform(query, plan="jvm"), frame.transform(query, plan="packed")
    assert handed.schema == packed.schema
    ours, others = run(handed, tmp_path, "handed"), run(packed, tmp_path, "packed")
    assert ours.schema == others.schema
    same(ours, others)
    assert set(zip(*(ours[c].to_pylist() for c in ("window_name", "kind", "revision")), strict=True)) == {
        ("ten", "final", 0)
    }
    # In the output mode update window() would show windows that are not complete.
    with pytest.raises(Exception, match=r'use transform\(query, plan="packed"\)'):
        handed.writeStream.format("noop").outputMode("update").start()
    # Some tuples came too late, and some windows never closed.
    assert sum(ours["n"].to_pylist()) < STEPS * ROWS
    assert len(ours) < len(query.run(pa.concat_tables(tables)))


def test_a_stream_beside_window_and_session_window(spark: SparkSession, tmp_path: Path) -> None:
    frame = source(spark, tmp_path, steps(3, 20), "25 seconds")
    query = mt.windows(slide=w.sliding("40 seconds", every="10 seconds"), visit=w.session("2 seconds"))
    ours = run(frame.transform(query.aggregate(**AGGREGATES).by("k").on("ts")), tmp_path, "ours")
    for name, window in {
        "slide": f.window("ts", "40 seconds", "10 seconds"),
        "visit": f.session_window("ts", "2 seconds"),
    }.items():
        theirs_ = run(theirs(frame, window), tmp_path, name)
        same(ours.filter(pa.compute.equal(ours["window_name"], name)), theirs_)


def test_a_stream_handed_over_fails_on_a_tuple_without_a_time(spark: SparkSession, tmp_path: Path) -> None:
    (table, *_) = steps(4, 0)
    bad = pa.table(
        {**dict(zip(table.column_names, table.columns, strict=True)), "ts": pa.nulls(ROWS, table["ts"].type)}
    )
    frame = source(spark, tmp_path, [table, bad], "5 seconds")
    query = mt.windows(ten=w.tumbling("10 seconds")).aggregate(n=a.count())
    with pytest.raises(Exception, match='the column "ts" needs a value in every tuple: got null'):
        run(frame.transform(query.on("ts"), plan="jvm"), tmp_path, "fails")
    assert len(run(frame.transform(query.on("ts", bad="skip"), plan="jvm"), tmp_path, "skips")) > 0
