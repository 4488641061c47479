"""`python -m benchmarks spark`: Muntin and Spark's own windows on local Spark, two cores, in one run."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.spark_cases import SCHEMA, Case, chosen
from benchmarks.spark_runs import (
    TINY,
    Run,
    Workers,
    bounded,
    checked,
    first_workers,
    shuffled_until_now,
    streamed,
    worker_memory,
    workers_now,
)
from muntin.connectors import spark

__all__ = ["SparkMeasurement", "measure", "measure_spark", "measure_workers", "run_spark"]

ROUNDS = 3
MORE_BOUNDED_ROUNDS = 2
"""Of bounded queries, which take less time."""
MOST_RUNS = 20
"""Of Muntin in a round of bounded queries: it runs as long as Spark's own took, since the JVM goes on
compiling for seconds."""
BATCHES = 4
"""Micro-batches of a stream; the first one is not timed."""
PER_SECOND = 5_000
START = 1_700_000_000_000_100
"""No tuple lies on a full millisecond, as Spark's watermarks do. Of a session that ends exactly there a
tuple may still become a part; Spark closes it all the same, Muntin with the next watermark."""
SETTINGS = {
    "spark.app.name": "muntin bench",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
_WIDE = 130
"""Characters that the table needs."""
COLUMNS = ("goal", "ratio", "Muntin s", "Spark s", "fixed s", "shuffled MB", "state MB", "workers MB")


@dataclass(frozen=True, slots=True)
class SparkMeasurement:
    """A workload in Muntin and in Spark's own windows, with the same results. Pairs: Muntin's, Spark's."""

    workload: str
    told: str
    rows: int
    goal: float
    ratio: float
    """Spark's time divided by Muntin's."""
    seconds: tuple[float, float]
    """Of a bounded query, or of a warm micro-batch; the best of the rounds."""
    overhead: tuple[float | None, float | None]
    """Of a micro-batch with a single tuple."""
    shuffled: tuple[int, int]
    """Bytes that crossed shuffles in a run."""
    state: tuple[int | None, int | None]
    """Bytes of the state stores."""
    workers: tuple[Workers, Workers]
    """The Python workers when they have most memory; those of a run before are still there."""
    windows: int
    """How many came out, of both."""


def measure_spark(
    rows: int, only: tuple[str, ...] = (), per_second: int = PER_SECOND, rounds: int = ROUNDS
) -> Iterator[SparkMeasurement]:
    """Both on all workloads, one after the other, in a session of their own."""
    cases = chosen(only)
    session = spark.session(SETTINGS)
    session.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="muntin-bench-") as folder:
            for case in cases:
                times = rounds if case.streaming else rounds + MORE_BOUNDED_ROUNDS
                yield measure(session, case, rows, times, Path(folder) / case.name, per_second)
    finally:
        session.stop()


def measure(
    session: Any, case: Case, rows: int, rounds: int, folder: Path, per_second: int = PER_SECOND
) -> SparkMeasurement:
    """Both on one workload, in turn."""
    _write(case, rows, folder / "input", per_second)
    ours, theirs = _frames(session, case, folder / "input")
    checkpoint = folder / "checkpoint" if case.streaming else None
    # Warms both, too.
    mine, own = checked(ours, checkpoint), checked(theirs, checkpoint)
    if mine != own:
        raise AssertionError(f"{case.name}: windows and sums are {mine} of Muntin's, {own} of Spark's")
    run = partial(streamed, folder=folder / "checkpoint") if case.streaming else bounded
    muntin, spark_own = _Side(ours), _Side(theirs)
    for _ in range(rounds):
        left = spark_own.take(session, run)
        for _ in range(1 if case.streaming else MOST_RUNS):
            left -= muntin.take(session, run)
            if left <= 0:
                break
    session.catalog.clearCache()
    best = muntin.best, spark_own.best
    return SparkMeasurement(
        case.name,
        case.told,
        rows,
        case.goal,
        best[1].seconds / best[0].seconds,
        (best[0].seconds, best[1].seconds),
        (best[0].overhead, best[1].overhead),
        (max(muntin.shuffled), max(spark_own.shuffled)),
        (best[0].state, best[1].state),
        (_most(muntin.workers), _most(spark_own.workers)),
        mine[0],
    )


@dataclass
class _Side:
    """The runs of one of the two."""

    frames: list[Any]
    runs: list[Run] = field(default_factory=list)
    shuffled: list[int] = field(default_factory=list)
    workers: list[Workers] = field(default_factory=list)

    def take(self, session: Any, run: Callable[[list[Any]], Run]) -> float:
        """Run once more; the seconds that this took."""
        crossed = shuffled_until_now(session)
        with worker_memory() as peak:
            self.runs.append(run(self.frames))
        self.shuffled.append(crossed())
        self.workers.append(peak.workers)
        return self.runs[-1].seconds

    @property
    def best(self) -> Run:
        return min(self.runs, key=lambda one: one.seconds)


def _most(found: list[Workers]) -> Workers:
    return max(found, key=lambda workers: workers.total)


def measure_workers(rows: int, per_second: int) -> tuple[Workers, Workers]:
    """The workers of S2 in a session of their own: after the first micro-batch, and at the end."""
    (case,) = chosen(("S2",))
    session = spark.session(SETTINGS)
    session.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
            folder = Path(name)
            _write(case, rows, folder / "input", per_second)
            (frame,), _ = _frames(session, case, folder / "input")
            return first_workers(frame, folder / "checkpoint"), workers_now()
    finally:
        session.stop()


def _write(case: Case, rows: int, folder: Path, per_second: int) -> None:
    """A file per micro-batch, in order; behind a stream's, files of a single tuple."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(6)
    sizes = [rows // BATCHES] * BATCHES + [1] * (TINY if case.streaming else 0)
    for number, size in enumerate(sizes):
        begin = sum(sizes[:number])
        times = START + np.arange(begin, begin + size) * (1_000_000 // per_second)
        table = pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "k": pa.array(rng.integers(0, case.keys, size)),
                "v": pa.array(rng.integers(0, 1_000, size)),
            }
        )
        path = folder / f"{number:04}.parquet"
        pq.write_table(table, path, row_group_size=-(-size // 2))
        os.utime(path, (number, number))


def _frames(session: Any, case: Case, folder: Path) -> tuple[list[Any], list[Any]]:
    """Muntin's frame, and Spark's own ones."""
    if case.streaming:
        reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        events = reader.parquet(str(folder)).withWatermark("ts", "1 second")
    else:
        events = session.read.schema(SCHEMA).parquet(str(folder)).cache()
        events.count()
    events.createOrReplaceTempView("events")
    return [events.transform(case.query, plan=case.plan)], [session.sql(text) for text in case.sql("events")]


def run_spark(
    rows: int, only: tuple[str, ...], as_json: bool, console: Console, per_second: int, rounds: int = ROUNDS
) -> None:
    """What the command line calls."""
    # Before all others: afterwards, modules and compiled code are in the caches of the machine.
    fresh = measure_workers(rows, per_second) if "S2" in {case.name for case in chosen(only)} else None
    # On the way, and not among the results: all of it takes half an hour.
    quiet = Console(stderr=True)
    if fresh is not None:
        quiet.print(_fresh_workers(fresh))
    found = []
    for m in measure_spark(rows, only, per_second, rounds):
        found.append(m)
        quiet.print(f"{m.workload} {m.told}: {m.ratio:.2f}x of {m.seconds[1]:.2f} s")
    if as_json:
        sizes = None if fresh is None else [workers.each for workers in fresh]
        console.print_json(json.dumps({"measurements": [asdict(m) for m in found], "fresh_workers": sizes}))
        return
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    for heading in ("workload", "", *COLUMNS):
        table.add_column(heading, no_wrap=True, justify="right" if heading in COLUMNS else "left")
    for m in found:
        table.add_row(m.workload, m.told, *_cells(m))
    # A file, or a narrow terminal, shows all of it: lines may wrap, numbers must not be cut.
    Console(file=console.file, width=max(console.width, _WIDE)).print(table)
    console.print(
        f"{rows:,} tuples in order, {per_second:,} per second of event time; local[2], noop sink, warm, the "
        f"best of {rounds} runs in turn; bounded of {rounds + MORE_BOUNDED_ROUNDS} rounds with as much time "
        "for both. Seconds: of a bounded query over cached input, or of a micro-batch "
        f"of {rows // BATCHES:,} tuples. fixed: of a micro-batch with one tuple. Pairs: Muntin's / Spark's. "
        "workers: of all Python workers when they have most memory, and their number. "
        "The windows and their sums were the same."
    )
    if fresh is not None:
        console.print(_fresh_workers(fresh))


def _fresh_workers(found: tuple[Workers, Workers]) -> str:
    """The workers of S2 in a fresh session, a line for each moment."""
    lines = []
    for moment, workers in zip(("after the first micro-batch", "at the end"), found, strict=True):
        each = ", ".join(f"{size / 1e6:.0f}" for size in workers.each)
        lines.append(
            f"Python workers of S2 in a fresh session, {moment}: {len(workers.each)}, with {each} MB, "
            f"{workers.total / 1e6:.0f} MB in all"
        )
    return "\n".join(lines)


def _cells(m: SparkMeasurement) -> tuple[str, ...]:
    return (
        f"{m.goal:g}x",
        f"{m.ratio:.2f}x",
        f"{m.seconds[0]:.2f}",
        f"{m.seconds[1]:.2f}",
        _pair(m.overhead, 1, 2),
        _pair(m.shuffled, 1e6, 2),
        _pair(m.state, 1e6, 2),
        " / ".join(f"{workers.total / 1e6:.0f} ({len(workers.each)})" for workers in m.workers),
    )


def _pair(values: tuple[float | None, float | None], unit: float, digits: int) -> str:
    return " / ".join("-" if value is None else f"{value / unit:.{digits}f}" for value in values)
