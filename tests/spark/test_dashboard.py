"""The page of a streaming query: it shows the state of its checkpoint and its micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.dashboard.frames import Frames, View
from muntin.dashboard.spark_flights import start_on_spark
from muntin.dashboard.spark_stream import SparkStream, Watched
from muntin.demo.stream import SETTINGS
from muntin.errors import QueryError

MINUTE = 60_000_000
QUERY = (
    mt.windows(hour=w.tumbling("1 hour"), rush=w.session("20 minutes"))
    .aggregate(flights=a.count(), worst=a.max("delay"))
    .by("airport")
    .on("scheduled", allowed_lateness="2 hours")
)


def flights(rows: int) -> pa.Table:
    """One in six minutes from two airports in turn, each tenth one behind by two hours."""
    minutes = [6 * number - (120 if number % 10 == 9 else 0) for number in range(rows)]
    return pa.table(
        {
            "scheduled": pa.array([m * MINUTE for m in minutes]).cast(pa.timestamp("us", "UTC")),
            "carrier": ["UA"] * rows,
            "airport": ["EWR" if number // 2 % 2 else "JFK" for number in range(rows)],
            "dest": ["SFO"] * rows,
            "delay": pa.array([number % 50 for number in range(rows)], pa.int64()),
            "miles": pa.array([100] * rows, pa.int64()),
        }
    )


@pytest.fixture
def watched() -> list[Watched]:
    return []


@pytest.fixture
def stream(spark: SparkSession, watched: list[Watched]) -> Iterator[SparkStream]:
    name = "spark.sql.parquet.outputTimestampType"
    spark.conf.set(name, SETTINGS[name])

    def begin() -> Watched:
        watched.append(start_on_spark(spark, QUERY, flights(400), 40))
        return watched[0]

    found = SparkStream("Flights", QUERY, begin)
    found.start()
    yield found
    found.close()
    folder = Path(watched[0].checkpoint).parent
    assert not folder.exists()
    assert not watched[0].running.isActive


def nothing() -> None:
    pass


def until(stream: SparkStream, holds: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert stream.state != "error", stream.error
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


def test_page_shows_state_and_micro_batches_and_changes_windows(
    stream: SparkStream, watched: list[Watched]
) -> None:
    until(stream, lambda: stream.history.given > 3)
    stream.pause()
    until(stream, lambda: "EWR" in map(stream.label, stream.history.keys))
    sections = Frames(stream, View()).sections()
    assert 'class="slice"' in sections["strip"]
    assert 'class="watermark"' in sections["strip"]
    batches = sections["batches"]["rows"]
    assert [b["batch"] for b in batches] == list(range(len(batches) - 1, -1, -1))
    assert all(b["milliseconds"] > 0 for b in batches)
    assert sections["plan"]["summary"][0][0] == "runs"
    numbers = {one["name"]: one["value"] for one in sections["numbers"]}
    assert int(numbers["slices"]) > 0
    assert sections["lines"]["picture"]

    with pytest.raises(QueryError, match="aggregates of a stream on Spark are fixed"):
        stream.add("aggregate", "more", 'function = "count"')
    with pytest.raises(QueryError, match='Did you mean "length"'):
        stream.add("window", "half", 'type = "tumbling"\nlenght = "30 minutes"')
    stream.add("window", "half", 'type = "tumbling"\nlength = "30 minutes"')
    assert "half" in stream.notes[0].text
    stream.play()
    until(stream, lambda: stream.history.rows_by_window.get("half", 0) > 2)
    # Another page follows the same streaming query, which it does not feed.
    follower = SparkStream(
        "Follower", QUERY, lambda: replace(watched[0], feed=None, results=None, close=nothing)
    )
    follower.start()
    until(follower, lambda: follower.has_look)
    sections = Frames(follower, View()).sections()
    follower.close()
    assert 'class="slice"' in sections["strip"]
    assert "play" not in sections["head"]["verbs"]
    assert sections["batches"]["rows"]
    assert watched[0].running.isActive

    stream.remove("window", "hour")
    assert [name for name, _ in stream.query.windows] == ["rush", "half"]


def test_an_error_of_the_start_is_shown() -> None:
    def begin() -> Watched:
        raise QueryError("Spark needs Java")

    stream = SparkStream("Flights", QUERY, begin)
    stream.start()
    stream.close()
    assert (stream.state, stream.error) == ("error", "Spark needs Java")
    assert Frames(stream, View()).sections()["strip"] == ""
