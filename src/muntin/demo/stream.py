"""The flights through a streaming query of Spark: a file at a time in, Parquet out."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from muntin.demo.query import WATERMARK
from muntin.dsl import Query

if TYPE_CHECKING:
    from muntin.connectors.spark.stream_stats import StreamStats

__all__ = ["ROWS", "SETTINGS", "Step", "play"]

ROWS = 20_000
"""Flights in a file."""

SETTINGS = {
    "spark.app.name": "muntin demo",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # what others read, instead of INT96
    "spark.ui.showConsoleProgress": "false",  # the demonstration shows another progress bar
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # it ends before more would pay
}
SCHEMA = "scheduled timestamp, carrier string, airport string, dest string, delay long, miles long"


@dataclass(frozen=True, slots=True)
class Step:
    """The results of one file of flights."""

    flights: pa.Table
    late: pa.Table
    """The flights of them that were behind the watermark at their arrival."""
    watermark: dt.datetime | None
    results: pa.Table
    stats: StreamStats
    """The counters of the stream so far."""


def play(spark: Any, flights: pa.Table, query: Query, folder: Path, rows: int = ROWS) -> Iterator[Step]:
    """Stream flights through Spark, `rows` of them at a time; the files of an earlier run are removed."""
    files, results, checkpoint = (folder / name for name in ("input", "results", "checkpoint"))
    for one in (files, results, checkpoint):
        shutil.rmtree(one, ignore_errors=True)
    files.mkdir(parents=True)
    events = spark.readStream.schema(SCHEMA).parquet(str(files))
    running = (
        events.withWatermark("scheduled", WATERMARK)
        .transform(query)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .start(str(results))
    )
    seen: set[Path] = set()
    watermark = None
    try:
        for number, begin in enumerate(range(0, len(flights), rows)):
            some = flights.slice(begin, rows)
            late = some.slice(0, 0) if watermark is None else some.filter(pc.field("scheduled") < watermark)
            _put(some, files, number)
            running.processAllAvailable()  # with the micro-batch without tuples that closes windows
            watermark = _watermark(running)
            new = sorted(set(results.glob("*.parquet")) - seen)
            seen.update(new)
            new_rows = pa.concat_tables([pq.read_table(path) for path in new])
            yield Step(some, late, watermark, new_rows, query.stats(running))
    finally:
        running.stop()


def _put(flights: pa.Table, files: Path, number: int) -> None:
    """A new file, which appears as a whole: Spark overlooks names that begin with an underscore."""
    unfinished = files / "_unfinished.parquet"
    pq.write_table(flights, unfinished)
    unfinished.rename(files / f"{number:04}.parquet")


def _watermark(running: Any) -> dt.datetime | None:
    text = running.lastProgress.eventTime.get("watermark")
    moment = None if text is None else dt.datetime.fromisoformat(text)
    return moment if moment is not None and moment.year > 1970 else None
