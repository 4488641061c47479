"""`python -m benchmarks start --spark`: what new Python workers cost a stream, and what they load.

A stream runs to its end, so that the JVM and the workers are warm. Then its Python workers are ended, and the
same stream runs again: its first micro-batches start new workers, as on a new executor.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.loaded_modules import Loaded, loaded_modules
from benchmarks.spark_runs import is_worker
from muntin import aggregates as a
from muntin import windows as w
from muntin.aggregates.base import Aggregate
from muntin.connectors import spark
from muntin.dsl import windows
from muntin.windows.base import Window

__all__ = ["QUERIES", "SparkStart", "measure_spark_start", "run_spark_start", "show"]

BATCHES = 8
FIRST = 3
"""Micro-batches that may start workers."""
ROWS = 10_000
PLAIN: dict[str, Aggregate] = {
    "n": a.count(), "s": a.sum("i"), "m": a.mean("f"), "low": a.min("i"), "high": a.max("f"),
}  # fmt: skip
ALL_WINDOWS: dict[str, Window] = {
    "tumbling": w.tumbling("10 s"), "sliding": w.sliding("1 minute", "5 s"),
    "cumulate": w.cumulate("1 minute", "10 s"), "session": w.session("3 s"),
    "limited": w.session("3 s", max_length="9 s"), "count": w.count(100), "by_count": w.count(100, every=10),
    "by_tuple": w.slide_by_tuple("10 s", every=50), "last": w.last(10, every="5 s"),
    "threshold": w.threshold("b"), "delta": w.delta("f", 50.0), "boundary": w.boundary("f", 50.0),
    "until": w.until(a.sum("i"), 500), "punctuation": w.punctuation("b"),
    "calendar": w.calendar("day", "Europe/Berlin"),
    "measure": w.tumbling(60, measure="i"),
}  # fmt: skip
NUMERIC: dict[str, Aggregate] = PLAIN | {
    "v": a.variance("f"), "d": a.stddev("i"), "g": a.geometric_mean("f"), "c": a.correlation("f", "i"),
    "p": a.median("f"), "q": a.quantile("i", 0.9), "distinct": a.count_distinct("i"),
    "often": a.min_count("i"), "first": a.first("f"), "last": a.last("i"), "arg": a.arg_max("i", by="f"),
}  # fmt: skip
QUERIES: Mapping[str, tuple[dict[str, Window], dict[str, Aggregate]]] = {
    "tumbling and sliding": ({name: ALL_WINDOWS[name] for name in ("tumbling", "sliding")}, PLAIN),
    "all windows": (ALL_WINDOWS, PLAIN),
    "numeric aggregates": ({name: ALL_WINDOWS[name] for name in ("tumbling", "sliding")}, NUMERIC),
}


@dataclass(frozen=True, slots=True)
class SparkStart:
    """A query on new workers of a warm JVM, and on warm ones."""

    query: str
    new: float
    """Seconds of the first micro-batches on new workers."""
    warm: float
    """Seconds of as many warm ones."""
    workers: tuple[Loaded, ...]

    @property
    def extra(self) -> float:
        """Seconds by which the first micro-batches are slower."""
        return self.new - self.warm


def measure_spark_start(session: Any, name: str, folder: Path) -> SparkStart:
    """One of QUERIES, in a session whose workers this process started."""
    named, values = QUERIES[name]
    _write(folder / "input")
    schema = "ts timestamp, k long, i long, f double, b boolean"
    events = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))
    query = windows(**named).aggregate(**values).by("k").on("ts")
    frame = events.transform(query, watermark="2 seconds", plan="packed")
    warm = _seconds(frame, folder / "warm")
    _end_workers()
    new = _seconds(frame, folder / "new")
    usual = statistics.median(warm[FIRST:] + new[FIRST:])
    return SparkStart(name, sum(new[:FIRST]), FIRST * usual, loaded_modules(session))


def _seconds(frame: Any, checkpoint: Path) -> list[float]:
    """Of each micro-batch with tuples."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    progress = [one for one in running.recentProgress if one.numInputRows]
    return [one.durationMs["triggerExecution"] / 1000 for one in progress]


def _end_workers() -> None:
    """End the Python workers of this process's sessions, but not the daemon that starts them."""
    ended = [process for process in psutil.Process().children(recursive=True) if is_worker(process)]
    for process in ended:
        process.kill()
    psutil.wait_procs(ended)


def _write(folder: Path) -> None:
    """A file per micro-batch, three seconds each."""
    folder.mkdir(parents=True)
    for number in range(BATCHES):
        numbers = np.arange(number * ROWS, (number + 1) * ROWS)
        times = 1_700_000_000_000_100 + numbers * 300 + numbers % 7 * 1_000
        table = pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "k": numbers % 50,
                "i": numbers * 37 % 97, "f": numbers % 1_000 * 0.5 + 1, "b": numbers % 9 == 0,
            }
        )  # fmt: skip
        path = folder / f"{number:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))


def run_spark_start(console: Console, as_json: bool = False) -> None:
    """Measure all queries and print them."""
    session = spark.session({"spark.app.name": "muntin bench", "spark.ui.showConsoleProgress": "false"})
    session.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
            found = [measure_spark_start(session, query, Path(name) / query) for query in QUERIES]
    finally:
        session.stop()
    show(found, console, as_json)


def show(found: list[SparkStart], console: Console, as_json: bool) -> None:
    """Print what was measured."""
    if as_json:
        console.print_json(json.dumps([asdict(measured) for measured in found]))
        return
    table = Table(title=f"The first {FIRST} micro-batches on new Python workers")
    table.add_column("query")
    for heading in ("new s", "warm s", "extra s", "functions compiled", "Numba, Rich, Typer", "workers MB"):
        table.add_column(heading, justify="right")
    for m in found:
        heavy = sorted({name for one in m.workers for name in one.heavy})
        table.add_row(
            m.query, f"{m.new:.2f}", f"{m.warm:.2f}", f"{m.extra:.2f}",
            str(sum(one.compiled for one in m.workers)),
            ", ".join(heavy) or "none", ", ".join(f"{one.megabytes:.0f}" for one in m.workers),
        )  # fmt: skip
    console.print(table)
