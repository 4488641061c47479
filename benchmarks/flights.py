"""`python -m benchmarks flights`: the demo's query embedded, over a year of flights in batches.

Ten windows of many kinds, 35 keys, more than half of the tuples out of order. In small batches, what a step
costs whatever it holds decides; in large ones, what a tuple costs. `--spark` gives the flights to a stream
of local Spark instead, a file of 20,000 in each micro-batch.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from muntin.connectors import spark
from muntin.connectors.embedded import Operator
from muntin.demo.flights import load
from muntin.demo.query import WATERMARK, ten_windows
from muntin.demo.stream import SCHEMA, SETTINGS
from muntin.results import Results
from muntin.timeline import Micros, span

__all__ = ["FlightsMeasurement", "measure_flights", "run_flights"]

BATCHES = (2_000, 20_000)
ROUNDS = 3
SPARK_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class FlightsMeasurement:
    """All flights in batches of one size, each with its watermark, in CPU time."""

    batch: int
    flights_per_second: float
    step: float
    """Milliseconds of a step, in the median."""
    rows: int
    """Result rows, revisions among them."""


def measure_flights(flights: pa.Table, batch: int, rounds: int = ROUNDS) -> FlightsMeasurement:
    """The best of some rounds; each counts every flight in the windows of one hour, or as late for them."""
    runs = [_run(flights, batch) for _ in range(rounds)]
    seconds, rows = min(runs, key=lambda run: sum(run[0]))
    return FlightsMeasurement(batch, len(flights) / sum(seconds), 1e3 * statistics.median(seconds), rows)


def _run(flights: pa.Table, batch: int) -> tuple[list[float], int]:
    """The seconds of each step, and the number of result rows."""
    operator = Operator(ten_windows())
    seconds: list[float] = []
    results: list[Results] = []
    for tuples, watermark in _steps(flights, batch):
        started = time.process_time()
        results += [operator.process(tuples), operator.advance(watermark)]
        seconds.append(time.process_time() - started)
    results.append(operator.finish())
    _check(Results.concat(results), len(flights) - operator.stats().late["hour"])
    return seconds, sum(map(len, results))


def _steps(flights: pa.Table, batch: int) -> Iterator[tuple[pa.RecordBatch, Micros]]:
    """Batches, and after each the watermark, which follows the newest flight as in the demo."""
    newest = np.maximum.accumulate(flights["scheduled"].cast(pa.int64()).to_numpy())
    for end, tuples in enumerate(flights.combine_chunks().to_batches(max_chunksize=batch), 1):
        last = int(newest[min(end * batch, len(newest)) - 1])
        yield tuples, Micros(last - int(span(WATERMARK, "watermark")))


def _check(results: Results, expected: int) -> None:
    table = results.to_arrow()
    hours = table.filter(pc.field("window_name") == "hour")
    columns = [hours[name].to_pylist() for name in ("carrier", "airport", "window_start", "flights")]
    last = {(carrier, airport, start): n for carrier, airport, start, n in zip(*columns, strict=True)}
    found = sum(last.values())
    if found != expected:
        raise AssertionError(f"{found:,} flights in the windows of one hour, not {expected:,}")


def measure_on_spark(session: Any, flights: pa.Table, folder: Path) -> list[float]:
    """The seconds of each micro-batch with SPARK_BATCH flights, in the second of two streams."""
    (folder / "input").mkdir()
    for number, begin in enumerate(range(0, len(flights) - SPARK_BATCH + 1, SPARK_BATCH)):
        path = folder / "input" / f"{number:04}.parquet"
        pq.write_table(flights.slice(begin, SPARK_BATCH), path)
        os.utime(path, (number, number))
    reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(folder / "input")).transform(ten_windows(), watermark=WATERMARK)
    for name in ("first", "second"):
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / name))
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
    return [p.durationMs["triggerExecution"] / 1000 for p in running.recentProgress if p.numInputRows]


def run_on_spark(as_json: bool, console: Console) -> None:
    """What the command line calls with `--spark`."""
    session = spark.session(SETTINGS | {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "4g"})
    session.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="muntin-bench-") as folder:
            seconds = measure_on_spark(session, load(), Path(folder))
    finally:
        session.stop()
    usual, all_of_them = statistics.median(seconds), sum(seconds)
    rate = SPARK_BATCH * len(seconds) / all_of_them
    if as_json:
        console.print_json(json.dumps({"seconds": seconds, "flights_per_second": rate}))
        return
    console.print(
        f"The demo's ten windows on local Spark, warm, {len(seconds)} micro-batches of {SPARK_BATCH:,} "
        f"flights: {rate:,.0f} flights per second; a micro-batch takes {usual:.2f} s in the median, "
        f"{min(seconds):.2f} to {max(seconds):.2f}"
    )


def run_flights(batches: tuple[int, ...], as_json: bool, console: Console) -> None:
    """What the command line calls."""
    flights = load()
    found = [measure_flights(flights, batch) for batch in batches or BATCHES]
    if as_json:
        console.print_json(json.dumps([asdict(m) for m in found]))
        return
    table = Table(title="The demo's ten windows over a year of flights, embedded, CPU time")
    for name in ("batch", "flights per second", "ms per step", "result rows"):
        table.add_column(name, justify="right")
    for m in found:
        table.add_row(f"{m.batch:,}", f"{m.flights_per_second:,.0f}", f"{m.step:.2f}", f"{m.rows:,}")
    console.print(table)
