"""`python -m benchmarks micro-batch`: what a small micro-batch costs, in Muntin and in Spark's `window()`.

Streams of 1,000 tuples in a micro-batch, 50 keys, sliding windows of 60 s by 1 s, in turn in one session. A
median of such times depends on what else the machine does, CPU time less so: both are shown.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.spark_cases import SCHEMA, chosen
from muntin.connectors import spark

__all__ = ["MicroBatch", "measure_micro_batches", "run_micro_batches", "show"]

WARM_UP = 6
"""Micro-batches of each stream that are not counted."""
ROWS = 1_000
PER_SECOND = 5_000
START = 1_700_000_000_000_100
SETTINGS = {
    "spark.app.name": "muntin bench",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
PHASES = ("triggerExecution", "queryPlanning", "walCommit", "commitOffsets", "addBatch")
"""Durations of Spark's progress; the first is the whole micro-batch."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A warm micro-batch of one side: the best of the rounds."""

    side: str
    milliseconds: dict[str, float]
    """The median of each of PHASES."""
    jvm: float
    """Milliseconds of CPU time of the JVM."""
    workers: float
    """Milliseconds of CPU time of the Python workers."""


def measure_micro_batches(session: Any, batches: int, rounds: int, folder: Path) -> list[MicroBatch]:
    """Muntin and Spark's `window()`, in turn."""
    (case,) = chosen(("S2",))
    _write(batches, case.keys, folder / "input")
    reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    events = reader.parquet(str(folder / "input")).withWatermark("ts", "1 second")
    events.createOrReplaceTempView("events")
    frames = {
        "Muntin": events.transform(case.query),
        "Spark's window()": session.sql(case.sql("events")[0]),
    }
    found: dict[str, list[MicroBatch]] = {side: [] for side in frames}
    for number in range(rounds):
        for position, (side, frame) in enumerate(frames.items()):
            found[side].append(_run(side, frame, folder / f"{number}-{position}"))
    return [min(runs, key=lambda run: run.milliseconds[PHASES[0]]) for runs in found.values()]


def _run(side: str, frame: Any, checkpoint: Path) -> MicroBatch:
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    running = writer.trigger(availableNow=True).start()
    before, first = None, 0
    while running.isActive:
        last = running.lastProgress
        if before is None and last is not None and last.batchId >= WARM_UP - 1:
            before, first = _cpu_times(), last.batchId
        time.sleep(0.02)
    after, last = _cpu_times(), running.lastProgress
    running.awaitTermination()
    warm = [p for p in running.recentProgress if p.numInputRows][WARM_UP:]
    times = {name: statistics.median(p.durationMs.get(name, 0) for p in warm) for name in PHASES}
    each = 1e3 / max(last.batchId - first, 1)
    jvm, workers = (each * (b - a) for a, b in zip(before or after, after, strict=True))
    return MicroBatch(side, times, jvm, workers)


def _cpu_times() -> tuple[float, float]:
    """Seconds of the JVM, and of all Python processes that it started."""
    jvm = workers = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times, is_jvm = process.cpu_times(), "java" in Path(process.exe()).name
        except psutil.Error:
            continue  # it is gone
        jvm += (times.user + times.system) * is_jvm
        workers += (times.user + times.system) * (not is_jvm)
    return jvm, workers


def _write(batches: int, keys: int, folder: Path) -> None:
    """A file per micro-batch, in order."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(6)
    for number in range(batches):
        times = START + np.arange(number * ROWS, (number + 1) * ROWS) * (1_000_000 // PER_SECOND)
        table = pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "k": rng.integers(0, keys, ROWS),
                "v": rng.integers(0, 1_000, ROWS),
            }
        )
        path = folder / f"{number:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))


def run_micro_batches(batches: int, rounds: int, as_json: bool, console: Console) -> None:
    """What the command line calls."""
    session = spark.session(SETTINGS)
    session.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
            found = measure_micro_batches(session, batches, rounds, Path(name))
    finally:
        session.stop()
    show(found, as_json, console)


def show(found: list[MicroBatch], as_json: bool, console: Console) -> None:
    """Print what was measured."""
    if as_json:
        console.print_json(json.dumps([asdict(one) for one in found]))
        return
    table = Table(title=f"A warm micro-batch of {ROWS:,} tuples, milliseconds")
    table.add_column("")
    for heading in ("in all", "planning", "log", "commit", "addBatch", "CPU of the JVM", "CPU of workers"):
        table.add_column(heading, justify="right")
    for one in found:
        numbers = (*(one.milliseconds[name] for name in PHASES), one.jvm, one.workers)
        table.add_row(one.side, *(f"{number:.0f}" for number in numbers))
    console.print(table)
