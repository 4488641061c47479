"""The flights as a streaming query of Spark, in a folder that is removed at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.connectors import spark
from muntin.dashboard.feeds import flights_query
from muntin.dashboard.spark_stream import SparkStream, Watched
from muntin.demo import flights as data
from muntin.demo.show import errors_to
from muntin.demo.stream import SCHEMA, SETTINGS
from muntin.results import Results

if TYPE_CHECKING:
    from muntin.dsl import Query

__all__ = ["flights_on_spark", "start_on_spark"]

FLIGHTS = 1_000
"""In a file, and so in a micro-batch."""
WATERMARK = "45 minutes"
LOG = Path("build") / "dashboard" / "spark.log"


def flights_on_spark(rows: int = FLIGHTS) -> SparkStream:
    """The flights as a stream of files through local Spark, in a folder that is removed at the end."""
    query = flights_query()
    flights = data.load()

    def begin() -> Watched:
        with errors_to(LOG):  # what Spark's processes print would hide the address of the page
            session = spark.session(SETTINGS)
        return start_on_spark(session, query, flights, rows, stops_session=True)

    about = f"Event time is the scheduled departure; a micro-batch reads a file of {rows:,} flights."
    return SparkStream("Flights from New York, on Spark", query, begin, about)


def start_on_spark(
    session: Any, query: Query, flights: pa.Table, rows: int, *, stops_session: bool = False
) -> Watched:
    """Start the streaming query over files of `rows` flights, which the feed writes one at a time."""
    folder = Path(tempfile.mkdtemp(prefix="muntin-dashboard-"))
    files, results, checkpoint = (folder / name for name in ("input", "results", "checkpoint"))
    files.mkdir()
    events = session.readStream.schema(SCHEMA).parquet(str(files))
    frame = events.withWatermark("scheduled", WATERMARK)
    control = query.control(str(folder / "changes"))
    running = (
        frame.transform(control)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .start(str(results))
    )
    seen: set[Path] = set()

    def feed() -> Iterator[pa.Table]:
        for number, begin in zip(count(), range(0, len(flights), rows), strict=False):
            some = flights.slice(begin, rows)
            unfinished = files / "_unfinished.parquet"  # Spark overlooks such names
            pq.write_table(some, unfinished)
            unfinished.rename(files / f"{number:06}.parquet")
            yield some

    def new_results() -> pa.Table | None:
        new = sorted(set(results.glob("*.parquet")) - seen)
        seen.update(new)
        tables = [table for path in new if (table := pq.read_table(path)).num_rows]
        return Results(pa.concat_tables(tables)).to_arrow() if tables else None

    def close() -> None:
        running.stop()
        if stops_session:
            session.stop()
        shutil.rmtree(folder, ignore_errors=True)

    return Watched(session, running, query, str(checkpoint), frame, control, feed(), new_results, close)
