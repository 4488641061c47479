"""Silent keys on local Spark: a stream forgets them, also after a restart, and a batch agrees."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files, Running  # beside this file, not installed

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
SCHEMA = "ts timestamp, k string, v long"
QUERY = (
    mt.windows(
        c=w.count(3, emit_partial=True),
        p=w.punctuation(mt.col("v") == 0),
        empty=w.tumbling("10 seconds", emit_empty=True),
    )
    .aggregate(total=a.sum("v"), n=a.count())
    .by("k")
    .on("ts", forget_keys_after="30 seconds")
)
ROWS = [
    [(1, "a", 0), (2, "a", 1), (3, "b", 2)],
    [(25, "b", 4), (40, "c", 0)],  # "a" is forgotten at 32, "b" has an empty window
    [(60, "c", 1), (61, "a", 8), (62, "a", 16)],
    [(200, "d", 0)],
]


def table(rows: list[tuple[int, str, int]]) -> pa.Table:
    times = [START + dt.timedelta(seconds=row[0]) for row in rows]
    columns = [
        pa.array(times, pa.timestamp("us", tz="UTC")),
        *map(pa.array, list(zip(*rows, strict=True))[1:]),
    ]
    return pa.table(columns, names=["ts", "k", "v"])


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    def second(edge: dt.datetime) -> float:
        return (edge.replace(tzinfo=dt.UTC) - START).total_seconds()

    found = [(row, row["window"]) for row in rows]
    return sorted(
        (row["k"], row["window_name"], second(edges["start"]), second(edges["end"]), row["n"])
        for row, edges in found
    )


def test_a_stream_forgets_silent_keys_and_a_batch_splits_them_alike(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = Files(spark, tmp_path / "in", SCHEMA, "0 seconds")
    parts: list[list[dict[str, Any]]] = []
    for rows in ROWS:
        running = Running(files.frame().transform(QUERY), tmp_path / "checkpoint")
        files.put(table(rows))
        parts.append(running.catch_up())
        running.stop()  # the next micro-batch goes on from the checkpoint
    # The watermark at 40 was enough for the first life of "a", though no tuple of it came.
    assert [row for row in brief(parts[1]) if row[0] == "a"] == [
        ("a", "c", 1.0, 2.000001, 2),
        ("a", "empty", 0.0, 10.0, 2),
        ("a", "p", 1.0, 2.000001, 2),
    ]
    batch = spark.createDataFrame(table([row for rows in ROWS for row in rows])).transform(QUERY)
    whole = brief([row.asDict(recursive=True) for row in batch.collect()])
    stream = brief([row for rows in parts for row in rows])
    assert stream == [row for row in whole if row[0] != "d"]  # still open
    assert ("a", "c", 61.0, 62.000001, 2) in stream
