"""Transcripts of the core as input of a streaming query: times become timestamps, steps become files.

A step of a stream is the input up to a watermark of the transcript, which a row of its own brings: Spark
takes its watermark from the column `clock`, which is null for tuples. `processAllAvailable` runs the
micro-batch with the tuples, at the watermark before, and then the one of the new watermark.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.connectors.spark.watermark import MARK
from muntin.dsl import Query
from muntin.errors import MuntinError
from muntin.query.files import load_query
from muntin.testing import OracleEngine, Transcript
from muntin.testing.engines import rows_of_table
from muntin.testing.rows import Row, compare
from muntin.windows.tuple_driven import TupleDriven

BASE = 2520 * 600_000
"""Seconds: time 0 of a transcript; a multiple of the lengths of its windows."""
MOST = 2 * BASE * 1_000_000
MOMENT = pa.timestamp("us", "UTC")
LENGTHS = {
    "tumbling": ("length", "offset"),
    "sliding": ("length", "every", "offset"),
    "cumulate": ("length", "step", "offset"),
    "session": ("gap", "max_length"),
    "fixed_band": ("length",),
    "landmark": ("every",),
    "slide_by_tuple": ("length",),
    "last": ("every", "offset"),
}
"""Arguments of windows that are lengths of time."""


@dataclass(frozen=True)
class Stream:
    """A transcript that a stream can express."""

    name: str
    query: Any
    schema: pa.Schema
    steps: list[tuple[list[dict[str, Any]], int]]
    """Tuples, and the watermark behind them in microseconds."""


def as_stream(transcript: Transcript) -> Stream | None:
    """None for what a stream on Spark cannot express, or what needs code beside it."""
    steps = transcript.steps
    wrong = transcript.must_fail or transcript.query is None or any(step.error for step in steps)
    changes = any(step.action in ("add", "remove") for step in steps)
    if wrong or changes or transcript.query.early is not None or transcript.query.idle_after is not None:
        return None
    time = transcript.query.time
    numbers = pa.types.is_integer(transcript.schema.field(time).type)
    try:
        document = tomllib.loads(transcript.query.to_toml())
    except MuntinError:  # it holds code
        return None
    if numbers:
        document = _in_seconds(document)
    query = replace(load_query(document, transcript.name, Query), late="drop")
    fields = [pa.field(time, MOMENT) if field.name == time else field for field in transcript.schema]
    found: list[tuple[list[dict[str, Any]], int]] = []
    rows: list[dict[str, Any]] = []
    for step in steps:
        if step.action == "input":
            rows += [{**row, time: _moment(row[time])} for row in step.value]
            if any(row[time] is None or row[time].year < 1990 for row in rows):
                return None  # bad tuples, or times where Spark has no watermark
        elif step.action == "watermark":
            mark = (step.value + BASE) * 1_000_000 if numbers else step.value
            if not 0 < mark < MOST:
                return None
            found.append((rows, mark))
            rows = []
    return Stream(transcript.name, query, pa.schema(fields), found) if found else None


def _moment(time: Any) -> dt.datetime | None:
    if isinstance(time, int):
        return dt.datetime.fromtimestamp(BASE + time, dt.UTC) if abs(time) < BASE else None
    if isinstance(time, dt.datetime):
        return time if time.tzinfo else time.replace(tzinfo=dt.UTC)
    return None


def _in_seconds(document: Mapping[str, Any]) -> dict[str, Any]:
    stream = dict(document["stream"])
    for length in stream.keys() & {"allowed_lateness", "forget_keys_after"}:
        stream[length] = f"{stream[length]} seconds"
    windows = {}
    for name, given in document["windows"].items():
        window = dict(given)
        if "measure" not in window:
            for argument in LENGTHS.get(window["type"], ()):
                if argument in window:
                    window[argument] = f"{window[argument]} seconds"
            if "start" in window:
                window["start"] = dt.datetime.fromtimestamp(BASE + window["start"], dt.UTC).isoformat()
        windows[name] = window
    return {**document, "stream": stream, "windows": windows}


def expected(stream: Stream) -> list[Row]:
    """What the oracle says, step by step as Spark takes them."""
    oracle = OracleEngine(stream.query, stream.schema)
    # Windows that tuples cut wait one microsecond longer: decision 42.
    wait = int(any(isinstance(window, TupleDriven) for _, window in stream.query.windows))
    found: list[Row] = []
    before: int | None = None
    for rows, mark in stream.steps:
        found += oracle.process(rows)
        if before is not None:
            found += oracle.advance(before)
        before = mark - wait if before is None else max(before, mark - wait)
        found += oracle.advance(before)
    return found


def differences(spark: SparkSession, stream: Stream, folder: Path) -> str:
    """What Spark says otherwise than the oracle; empty if nothing."""
    folder.mkdir()
    schema = stream.schema.append(pa.field("clock", MOMENT)).append(pa.field("place", pa.int64()))
    name = f"replay_{abs(hash(stream.name))}"
    events = spark.readStream.schema(from_arrow_schema(schema)).parquet(str(folder))
    running = (
        events.withWatermark("clock", "0 seconds")
        .where("clock is null")
        # The time column of a transcript has no watermark of its own; as `withWatermark` would mark it:
        .withMetadata(stream.query.time, {MARK: 0})
        .transform(stream.query, plan="packed", tie="place")
        .writeStream.format("memory")
        .queryName(name)
        .start()
    )
    place = 0
    try:
        for number, (rows, mark) in enumerate(stream.steps):
            clock = dt.datetime.fromtimestamp(mark / 1e6, dt.UTC)
            placed = [{**row, "place": place + i} for i, row in enumerate(rows)]
            place += len(rows)
            table = pa.Table.from_pylist([*placed, {"clock": clock, "place": 0}], schema=schema)
            pq.write_table(table, folder / "_unfinished")
            (folder / "_unfinished").rename(folder / f"{number:03}.parquet")
            running.processAllAvailable()
    finally:
        running.stop()
    return compare(rows_of_table(spark.table(name).toArrow(), stream.query.keys), expected(stream))
