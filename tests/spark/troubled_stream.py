"""A streaming query as a process of its own, in trouble on request; the tests of this folder run it.

    python troubled_stream.py FOLDER [MASTER] [BATCHES]

reads FOLDER/input, a file per micro-batch, and writes FOLDER/results with its checkpoint beside it.
With BATCHES it stops when micro-batch number BATCHES is done, and starts again from its checkpoint.

- FOLDER/hold holds a step: the task that reads it says so (FOLDER/reached) and waits until the file is gone.
- Where FOLDER/fail is: a task that reads step FAILED fails once, and so does one behind the windows.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.timeline import Micros

sys.path.insert(0, str(Path(__file__).parent))
from micro_batches import micro_batches  # beside this file, not installed

STEPS, ROWS = 6, 60
FAILED = 4
DELAY = dt.timedelta(seconds=5)
SCHEMA = "ts timestamp, k string, v long, step long, n long"
PATIENCE = 600


def query() -> mt.Query:
    return (
        mt.windows(
            ten=w.tumbling("10 seconds"),
            smooth=w.sliding("30 seconds", every="10 seconds"),
            visit=w.session("3 seconds"),
            five=w.count(5),
        )
        .aggregate(total=a.sum("v"), middle=a.median("v"), first=a.first("v"), n=a.count())
        .by("k")
        .on("ts", allowed_lateness="3 minutes")
    )


def steps() -> list[pa.Table]:
    """Tuples up to two minutes out of order, many of them at one time, numbered as they come."""
    rng = np.random.default_rng(6)
    times = np.sort(rng.choice(ROWS * STEPS * 700, ROWS * STEPS, replace=False))
    times = times[np.argsort(times + rng.integers(0, 120_000, len(times)), kind="stable")] // 2_000 * 2_000
    start = np.datetime64("2026-03-01", "us")
    table = pa.table(
        {
            "ts": pa.array(start + times.astype("m8[ms]"), pa.timestamp("us", "UTC")),
            "k": pa.array(rng.choice(["a", "b", "c"], len(times))),
            "v": pa.array(rng.integers(0, 100, len(times))),
            "step": pa.array(np.arange(len(times)) // ROWS),
            "n": pa.array(np.arange(len(times))),
        }
    )
    return [table.slice(i, ROWS) for i in range(0, len(table), ROWS)]


def lay_out(folder: Path) -> Path:
    """The input: a file per step, in the order in which Spark shall read them."""
    (folder / "input").mkdir(parents=True)
    for number, step in enumerate(steps()):
        path = folder / "input" / f"{number:03}.parquet"
        pq.write_table(step, path)
        os.utime(path, (number, number))
    return folder


def expected(asked: mt.Query | None = None) -> list[dict[str, Any]]:
    """What the embedded engine gives. Spark moves the watermark after a micro-batch.

    On Spark windows that tuples cut wait one microsecond longer (decision 42).
    """
    operator = (asked or query()).operator()
    behind = DELAY if asked else DELAY + dt.timedelta(microseconds=1)
    found, newest = [], None
    for step in steps():
        operator.process(step)
        if newest is not None:
            found.append(operator.advance(newest - behind))
        newest = max([step["ts"].to_numpy().max().item(), *([newest] if newest else [])])
    found.append(operator.advance(newest - behind))
    return rows_of(mt.Results.concat(found))


def replayed(folder: Path) -> list[dict[str, Any]]:
    """What the embedded engine gives over the micro-batches that Spark made: a kill may merge some."""
    operator, found = query().operator(), []
    for tables, watermark in micro_batches(folder / "checkpoint of results"):
        for table in tables:
            operator.process(table)
        if watermark:
            found.append(operator.advance(Micros(watermark - 1)))
    return rows_of(mt.Results.concat(found))


def written(folder: Path, results: str = "results") -> list[dict[str, Any]]:
    """The rows that the sink committed; files of failed attempts may lie beside them."""
    names: set[str] = set()
    for log in (folder / results / "_spark_metadata").glob("[0-9]*"):
        _, *entries = log.read_text().splitlines()
        names.update(Path(json.loads(entry)["path"]).name for entry in entries)
    tables = [pq.read_table(folder / results / name) for name in sorted(names)]
    return rows_of(pa.concat_tables(tables))


def rows_of(table: pa.Table | mt.Results) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def start(spark: Any, folder: Path, troubled: bool = True) -> Any:
    """The streaming query, with what may trouble it before and behind the windows."""
    events = events_of(spark, folder)
    if troubled:
        events = events.mapInArrow(before(folder), SCHEMA)
    results = watermarked(events).transform(query(), tie="n")
    if troubled:
        results = results.mapInArrow(behind(folder), results.schema)
    return write(results, folder)


def events_of(spark: Any, folder: Path) -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))


def watermarked(events: Any) -> Any:
    return events.withWatermark("ts", f"{DELAY.seconds} seconds")


def write(results: Any, folder: Path, name: str = "results") -> Any:
    checkpoint = str(folder / f"checkpoint of {name}")
    sink = results.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    return sink.trigger(availableNow=True).start(str(folder / name))


Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def before(folder: Path) -> Stage:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            step = batch.column("step")[0].as_py() if batch.num_rows else None
            hold(folder, step)
            if step == FAILED:
                fail_once(folder, "before")
            yield batch

    return run


def behind(folder: Path) -> Stage:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                fail_once(folder, "behind")
            yield batch

    return run


def hold(folder: Path, step: int | None) -> None:
    held = folder / "hold"
    until = time.monotonic() + PATIENCE
    while held.exists() and held.read_text() == str(step) and time.monotonic() < until:
        (folder / "reached").write_text(str(os.getsid(0)))  # whose task this is
        time.sleep(0.05)


def fail_once(folder: Path, where: str) -> None:
    mark = folder / f"failed {where}"
    if (folder / "fail").exists() and not mark.exists():
        mark.touch()
        raise RuntimeError(f"asked to fail once, {where} the windows")


SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
}


def main(folder: Path, master: str = "local[2]", batches: int | None = None) -> None:
    spark = mt.spark.session(SETTINGS | {"spark.master": master})
    running = start(spark, folder)
    if batches is not None:
        while running.isActive and (running.lastProgress is None or running.lastProgress.batchId < batches):
            time.sleep(0.05)
        running.stop()
        running = start(spark, folder)
    running.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3], *map(int, sys.argv[3:4]))
