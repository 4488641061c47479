"""One run of a workload of `python -m benchmarks spark`, bounded or streaming, and what it took."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "Run", "Workers", "bounded", "checked", "first_workers", "is_worker", "shuffled_until_now", "streamed",
    "worker_memory", "workers_now",
]  # fmt: skip

TINY = 2
"""Micro-batches of one tuple at the end of a stream; the first still emits what became due before it."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run took."""

    seconds: float
    """Of a bounded query, or of a micro-batch when warm."""
    overhead: float | None = None
    """Seconds of a micro-batch with a single tuple."""
    state: int | None = None
    """Bytes in the state stores at the end, at most over the micro-batches."""


def bounded(frames: list[Any]) -> Run:
    """Write bounded results to nowhere, one frame after the other."""
    began = time.perf_counter()
    for frame in frames:
        frame.write.format("noop").mode("overwrite").save()
    return Run(time.perf_counter() - began)


def streamed(frames: list[Any], folder: Path) -> Run:
    """Write streaming results to nowhere, all queries side by side."""
    running = _started([frame.writeStream.format("noop") for frame in frames], folder)
    return _read([one.recentProgress for one in running])


def checked(frames: list[Any], folder: Path | None) -> tuple[int, int, int]:
    """How many windows come out, and the sums of their aggregates; a folder for checkpoints: streams."""
    found: list[tuple[int, int, int]] = []

    def add(frame: Any, _: int = 0) -> None:
        (row,) = frame.selectExpr("count(*)", "coalesce(sum(total), 0)", "coalesce(sum(n), 0)").collect()
        found.append((int(row[0]), int(row[1]), int(row[2])))

    if folder is None:
        for frame in frames:
            add(frame)
    else:
        _started([frame.writeStream.foreachBatch(add) for frame in frames], folder)
    windows, totals, tuples = (sum(column) for column in zip(*found, strict=True))
    return windows, totals, tuples


def _started(writers: list[Any], folder: Path) -> list[Any]:
    shutil.rmtree(folder, ignore_errors=True)
    running = []
    for number, writer in enumerate(writers):
        placed = writer.option("checkpointLocation", str(folder / str(number)))
        running.append(placed.trigger(availableNow=True).start())
    for one in running:
        one.awaitTermination()
    return running


def _read(queries: list[list[Any]]) -> Run:
    """Times from the progress of queries that ran side by side, without their first micro-batches."""
    with_tuples = [[p for p in progress if p.numInputRows] for progress in queries]
    warm = [p for progress in with_tuples for p in progress[1:-TINY]]
    batches = len(with_tuples[0]) - 1 - TINY
    span = max(map(_end, warm)) - min(map(_begin, warm))
    overhead = max(progress[-1].durationMs["triggerExecution"] for progress in with_tuples) / 1000
    stores = [max(_state(p) for p in progress) for progress in queries]
    return Run(span / batches, overhead, sum(stores))


def _begin(progress: Any) -> float:
    return dt.datetime.fromisoformat(progress.timestamp).timestamp()


def _end(progress: Any) -> float:
    return _begin(progress) + float(progress.durationMs["triggerExecution"]) / 1000


def _state(progress: Any) -> int:
    return sum(int(operator.memoryUsedBytes) for operator in progress.stateOperators)


def shuffled_until_now(session: Any) -> Callable[[], int]:
    """A function that says how many bytes were written to shuffles since this call."""
    store = session.sparkContext._jsc.sc().statusStore()

    quantiles = session.sparkContext._gateway.new_array(session.sparkContext._jvm.double, 0)

    def total() -> int:
        stages = store.stageList(None, False, False, quantiles, None)
        return sum(stages.apply(i).shuffleWriteBytes() for i in range(stages.size()))

    before = total()
    return lambda: total() - before


@dataclass(frozen=True, slots=True)
class Workers:
    """The Python workers of Spark at one moment, without the daemon that starts them."""

    each: tuple[int, ...]
    """The resident memory of each, in bytes, the largest first."""

    @property
    def total(self) -> int:
        """Bytes of all workers; pages that they share count for each."""
        return sum(self.each)


def workers_now() -> Workers:
    """The workers of the sessions of this process."""
    import psutil

    sizes = []
    for process in psutil.Process().children(recursive=True):
        try:
            if is_worker(process):
                sizes.append(int(process.memory_info().rss))
        except psutil.Error:
            continue  # it is gone
    return Workers(tuple(sorted(sizes, reverse=True)))


def is_worker(process: Any) -> bool:
    """Whether this is a Python worker; the daemon that starts workers has the JVM as its parent."""
    import psutil

    try:
        return _is_pyspark(process) and _is_pyspark(process.parent())
    except psutil.Error:  # it is gone
        return False


def _is_pyspark(process: Any) -> bool:
    return process is not None and any(part.startswith("pyspark.") for part in process.cmdline())


def first_workers(frame: Any, folder: Path) -> Workers:
    """The workers after the first micro-batch of a stream that writes to nowhere."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder))
    running = writer.trigger(availableNow=True).start()
    while running.isActive and running.lastProgress is None:
        time.sleep(0.02)
    found = workers_now()
    running.awaitTermination()
    return found


class Peak:
    """The Python workers of Spark at their peak, all together."""

    workers = Workers(())


@contextmanager
def worker_memory() -> Iterator[Peak]:
    """Watch the workers of this process while the block runs."""
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            peak.workers = max(peak.workers, workers_now(), key=lambda workers: workers.total)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
