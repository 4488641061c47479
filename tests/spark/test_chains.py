"""Operators behind the results of a query in one streaming query: Muntin's and Spark's own."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

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
from test_streams import START, table

TENS = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).by("k").on("ts")
TWO = (
    mt.windows(ten=w.tumbling("10 seconds"), smooth=w.sliding("30 seconds", every="10 seconds"))
    .aggregate(total=a.sum("v"))
    .by("k")
    .on("ts")
)
MINUTES = (
    mt.windows(minute=w.tumbling("1 minute"), visit=w.session("15 seconds"))
    .aggregate(sum=a.sum("total"), n=a.count())
    .by("k")
    .on("at")
)
ONE = mt.windows(minute=w.tumbling("1 minute")).aggregate(sum=a.sum("total"), n=a.count()).by("k").on("at")

# The delay of the watermark is two seconds. The third micro-batch moves it by two milliseconds, to an edge,
# where most keys have no tuple. The rest is out of order.
BATCHES = [
    table((3, "a", 1), (1, "b", 2), (0.5, "c", 4), (7, "d", 8), (51, "a", 16), (50.5, "b", 32)),
    table((60.5, "c", 64), (61.998, "d", 128), (60, "b", 256)),
    table((62, "a", 512), (60.25, "a", 1024)),
    table((119, "d", 2048), (118, "c", 4096), (117.5, "a", 8192)),
    table((185, "b", 16384), (183.5, "a", 32768)),
    table((400, "a", 65536)),
]


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path / "in", "ts timestamp, k string, v long", "2 seconds")


def timed(results: DataFrame) -> DataFrame:
    return results.where("window_name = 'ten'").withColumn("at", f.window_time("window"))


def brief(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Start and end of the window in seconds, then these columns, sorted."""

    def seconds(row: dict[str, Any], edge: str) -> float:
        found = row["window"][edge] if "window" in row else row[f"window_{edge}"]
        return float((found.replace(tzinfo=START.tzinfo) - START).total_seconds())

    return sorted(
        (seconds(row, "start"), seconds(row, "end"), *(row[name] for name in names)) for row in rows
    )


def embedded(second: mt.Query, batches: list[pa.Table]) -> list[dict[str, Any]]:
    """The same chain without Spark, up to the last watermark."""
    first = TWO.run(pa.concat_tables(batches)).to_arrow().to_pylist()
    tens = [row for row in first if row["window_name"] == "ten"]
    columns = {name: [row[name] for row in tens] for name in ("k", "total")}
    at = [row["window_end"] - dt.timedelta(microseconds=1) for row in tens]
    rows = second.run(pa.table(columns | {"at": pa.array(at, pa.timestamp("us", "UTC"))}))
    last = max(time for batch in batches for time in batch["ts"].to_pylist())
    return [row for row in rows.to_arrow().to_pylist() if (last - row["window_end"]).total_seconds() > 2]


@pytest.mark.parametrize(
    ("first", "second", "plans"),
    [(TWO, MINUTES, ("packed", "packed")), (TENS, ONE, ("jvm", "packed")), (TENS, ONE, ("packed", "jvm"))],
    ids=["packed and packed", "jvm and packed", "packed and jvm"],
)
def test_a_second_query_equals_the_embedded_chain_across_a_restart(
    files: Files, tmp_path: Path, first: mt.Query, second: mt.Query, plans: tuple[str, str]
) -> None:
    rows: list[dict[str, Any]] = []
    for batches in (BATCHES[:2], BATCHES[2:]):
        results = files.frame().transform(first, plan=plans[0])
        running = Running(timed(results).transform(second, plan=plans[1]), tmp_path / "checkpoint")
        for batch in batches:
            files.put(batch)
        rows += running.catch_up()
        running.stop()
    names = ("k", "window_name", "sum", "n", "kind")
    assert brief(rows, *names) == brief(embedded(second, BATCHES), *names)


def test_sparks_own_operators_read_results_as_those_of_window(
    spark: SparkSession, files: Files, tmp_path: Path
) -> None:
    batches = [*BATCHES[:3], BATCHES[-1]]
    for batch in batches:
        files.put(batch)
    results = files.frame().transform(TWO).where("window_name = 'ten'")
    tens = brief(TENS.run(pa.concat_tables(batches)).to_arrow().to_pylist(), "k", "total")
    tens = [row for row in tens if row[1] <= 398]

    def rows(frame: DataFrame, name: str) -> list[dict[str, Any]]:
        running = Running(frame, tmp_path / name)
        found = running.catch_up()
        running.stop()
        return found

    minutes = results.groupBy("k", f.window("window", "1 minute")).agg(f.sum("total").alias("sum"))
    expected = [row for row in embedded(ONE, batches) if row["window_name"] == "minute"]
    assert brief(rows(minutes, "window"), "k", "sum") == brief(expected, "k", "sum")

    all_keys = results.groupBy("window").agg(f.sum("total").alias("sum"))
    sums: dict[tuple[float, float], int] = {}
    for start, end, _, total in tens:
        sums[start, end] = sums.get((start, end), 0) + total
    assert brief(rows(all_keys, "same window"), "sum") == sorted((*w, total) for w, total in sums.items())

    others = files.frame().transform(TENS, plan="packed").where("total > 100")
    joined = results.join(
        others.select("k", "window", f.col("total").alias("large")), ["k", "window"], "left"
    )
    expected_join = [(*row, row[3] if row[3] > 100 else None) for row in tens if row[1] < 398]
    found = brief(rows(joined, "outer join"), "k", "total", "large")
    assert found == expected_join

    once = results.withColumn("at", f.window_time("window")).drop("window")
    once = once.dropDuplicatesWithinWatermark(["k", "total"])
    assert sorted(row["total"] for row in rows(once, "duplicates")) == sorted(row[3] for row in tens)


LATER = {
    "allowed_lateness": TENS.on("ts", allowed_lateness="1 minute"),
    "early=": TENS.on("ts", early=mt.each_batch()),
    "sessions, count windows": mt.windows(v=w.session("5 seconds")).aggregate(total=a.sum("v")).on("ts"),
    "empty windows": mt.windows(t=w.tumbling("10 seconds", emit_empty=True)).aggregate(n=a.count()).on("ts"),
    "between two milliseconds": mt.windows(t=w.tumbling("10 ms", offset="3 us"))
    .aggregate(n=a.count())
    .on("ts"),
}


@pytest.mark.parametrize("reason", LATER)
def test_results_that_may_be_late_for_the_next_operator_have_no_watermark(files: Files, reason: str) -> None:
    results = files.frame().transform(LATER[reason])
    assert not results.schema["window"].metadata
    with pytest.raises(QueryError, match=rf"{reason}.*; write its results to a table"):
        results.withColumn("at", f.col("window.end")).transform(
            mt.windows(m=w.tumbling("1 minute")).aggregate(n=a.count()).on("at")
        )


@pytest.mark.parametrize("plan", ["packed", "jvm"])
def test_only_the_time_of_a_window_has_the_watermark(files: Files, plan: str) -> None:
    results = files.frame().transform(TENS, plan=plan)
    for edge in ("start", "end"):
        ends = results.withColumn("at", f.col(f"window.{edge}"))
        with pytest.raises(QueryError, match=r'write results.withColumn\("at", f.window_time\("window"\)\)'):
            ends.transform(ONE)
        with pytest.raises(QueryError, match="and no withWatermark"):
            ends.transform(ONE, watermark="2 seconds")
