"""Aggregates over some windows, changes only, and aggregates that come and go, in a real session."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files, Running  # beside this file, not installed

START = dt.datetime(2026, 1, 1)


def table(*rows: tuple[int, int]) -> pa.Table:
    columns = {"ts": [START + dt.timedelta(seconds=second) for second, _ in rows], "v": [v for _, v in rows]}
    return pa.table(columns, schema=pa.schema({"ts": pa.timestamp("us", "UTC"), "v": pa.int64()}))


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found = [(row["window_name"], row["window"]["start"].second, row["n"], row["users"]) for row in rows]
    return sorted(found)


def test_aggregates_over_some_windows_and_changes_only(spark: SparkSession) -> None:
    rows = table((1, 1), (2, 1), (11, 5), (12, 5), (21, 3))
    events = spark.createDataFrame(rows.to_pandas())
    base = mt.windows(ten=w.tumbling("10 seconds"), thirty=w.tumbling("30 seconds")).aggregate(
        n=a.count(), users=a.count_distinct("v").over("thirty")
    )
    query = base.on("ts", emit=mt.on_change())
    results = events.transform(query)
    assert results.schema["users"].nullable
    assert not results.schema["n"].nullable
    expected = [("ten", 0, 2, None), ("ten", 20, 1, None), ("thirty", 0, 5, 3)]
    assert brief([row.asDict(recursive=True) for row in results.collect()]) == expected
    assert "only changes are emitted" in str(query.explain(events))
    assert "aggregates are over some of the windows (users)" in str(base.on("ts").explain(events))
    with pytest.raises(QueryError, match="aggregates are over some of the windows"):
        mt.spark.transform(base.on("ts"), events, "jvm")


def test_aggregates_go_and_come_back_while_the_stream_runs(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "input", "ts timestamp, v bigint", "0 seconds")
    query = (
        mt.windows(ten=w.tumbling("10 seconds")).aggregate(n=a.count(), users=a.count_distinct("v")).on("ts")
    )
    live = query.control(tmp_path / "control")
    results = files.frame().transform(live)
    assert results.schema["n"].nullable
    running = Running(results, tmp_path / "checkpoint")
    files.put(table((1, 1), (12, 2)))
    assert brief(running.catch_up()) == [("ten", 0, 1, 1)]
    live.remove("users")
    files.put(table((13, 3), (22, 4)))
    assert brief(running.catch_up()) == [("ten", 10, 2, None)]
    running.stop()
    again = Running(files.frame().transform(live), tmp_path / "checkpoint")
    live.add(users=a.count_distinct("v"))
    files.put(table((23, 5), (31, 6), (45, 7)))
    assert brief(again.catch_up()) == [("ten", 20, 2, None), ("ten", 30, 1, 1)]
    again.stop()
