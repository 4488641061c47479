"""The current table from all revisions: of results that were written, and of a stream that writes them."""

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
from muntin.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files  # beside this file, not installed
from test_streams import at, table

BATCHES = [
    table((1, "a", 1), (2, "b", 2), (20, "a", 4)),
    table((40, "b", 8), (61, "a", 16)),
    table(
        (7, "a", 32), (3, "b", 64), (90, "b", 128)
    ),  # late, for windows that were emitted: one session fuses
    table((13, "a", 256), (200, "a", 512), (26, "b", 1024)),
]


def revising(*keys: str) -> mt.Query:
    return (
        mt.windows(ten=w.tumbling("10 seconds"), visit=w.session("8 seconds"), three=w.count(3))
        .aggregate(total=a.sum("v"), all=a.collect("v"))
        .by(*keys)
        .on("ts", allowed_lateness="10 minutes")
    )


def emitted(query: mt.Query, batches: list[pa.Table]) -> mt.Results:
    """All revisions, where the watermark is two seconds behind the newest tuple."""
    op, rows, newest = query.operator(), [], at(0)
    for batch in batches:
        rows.append(op.process(batch))
        newest = max(newest, *batch["ts"].to_pylist())
        rows.append(op.advance(newest - dt.timedelta(seconds=2)))
    return mt.Results.concat(rows)


def plain(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(row) for row in rows)


@pytest.mark.parametrize(
    "keys", [[], ["k"], ["the.key", "none"]], ids=["no key", "a key", "odd names and nulls"]
)
def test_latest_equals_that_of_the_embedded_results(
    spark: SparkSession, tmp_path: Path, keys: list[str]
) -> None:
    batches = [
        batch.append_column("the.key", batch["k"]).append_column("none", pa.nulls(len(batch), pa.string()))
        for batch in BATCHES
    ]
    results = emitted(revising(*keys), batches)
    revisions = results.to_arrow(nested=True)
    assert {"retract", "update"} <= set(revisions["kind"].to_pylist())
    again = pa.concat_tables([revisions.slice(i, 1) for i in reversed(range(len(revisions)))])
    pq.write_table(pa.concat_tables([again, revisions]), tmp_path / "revisions.parquet")  # each row twice
    written = spark.read.parquet(str(tmp_path / "revisions.parquet"))
    found = mt.spark.latest(written)
    assert found.columns == written.columns
    pq.write_table(results.latest().to_arrow(nested=True), tmp_path / "expected.parquet")
    expected = spark.read.parquet(str(tmp_path / "expected.parquet"))
    assert plain([row.asDict(True) for row in found.collect()]) == plain(
        [row.asDict(True) for row in expected.collect()]
    )


def test_latest_needs_all_columns_and_a_bounded_table(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "in", "ts timestamp, k string, v long", "2 seconds")
    with pytest.raises(QueryError, match=r"got a stream; write its results to a table"):
        mt.spark.latest(files.frame().transform(revising("k")))
    with pytest.raises(QueryError, match='"revision" is not there; call it before columns are dropped'):
        mt.spark.latest(spark.range(1).selectExpr("'t' window_name", "1 window", "'final' kind"))


def test_a_stream_keeps_a_current_table_by_day_in_plain_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """The recipe of docs/spark.md; the last micro-batch is repeated, as after a kill before its commit."""
    files = Files(spark, tmp_path / "in", "ts timestamp, k string, v long", "2 seconds")
    query, revisions, current = revising("k"), str(tmp_path / "revisions"), str(tmp_path / "current")

    def write(batch: DataFrame, number: int) -> None:
        with_day = batch.withColumn("day", f.to_date("window.start"))
        # A folder of its own for each micro-batch: a repeated one replaces its folder.
        with_day.write.mode("overwrite").partitionBy("day").parquet(f"{revisions}/batch={number}")
        days = [row["day"] for row in with_day.select("day").distinct().collect()]
        if days:
            rows = batch.sparkSession.read.parquet(revisions).where(f.col("day").isin(days))
            latest = mt.spark.latest(rows.drop("batch", "day")).withColumn("day", f.to_date("window.start"))
            options = latest.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
            options.partitionBy("day").parquet(current)

    def run() -> None:
        stream = files.frame().transform(query).writeStream.foreachBatch(write)
        running = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        running.processAllAvailable()
        running.stop()

    for batch in BATCHES[:3]:
        files.put(batch)
    run()
    last = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    files.put(BATCHES[3])
    run()
    expected = emitted(query, BATCHES).latest().to_arrow(nested=True)
    pq.write_table(expected, tmp_path / "expected.parquet")
    rows, right = (
        spark.read.parquet(current).drop("day"),
        spark.read.parquet(str(tmp_path / "expected.parquet")),
    )
    assert rows.where("revision > 0").count()
    # A window is emitted again in each micro-batch that changes it, and those of the two differ.
    found, wanted = (frame.drop("kind", "revision").collect() for frame in (rows, right))
    assert plain([row.asDict(True) for row in found]) == plain([row.asDict(True) for row in wanted])
