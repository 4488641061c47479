"""Two windows in Flink SQL and in Muntin, over the same tuples, on one core.

Flink has an environment of its own, because it needs older versions of pyarrow and NumPy, and Java 11 or 17:

    python3.11 -m venv flink
    flink/bin/pip install "setuptools<80" wheel
    flink/bin/pip install apache-flink
    flink/bin/python -m benchmarks.flink flink
    .venv/bin/python -m benchmarks.flink muntin

Tuple i has the time i / 2 in milliseconds, so that there are 2,000 per second in order, and the value
i * 7919 % 1000. Flink makes the tuples itself (`datagen`), and "source" is that alone; it runs with
parallelism 1 on a local cluster in its JVM. The fixed cost of a job is measured with 1,000 tuples and
subtracted. The time is CPU time of the process with all its threads, the JVM's included: the best of two
runs after one that warms up. The sums of both engines must be equal.
"""

# ruff: noqa: T201  # it prints what it measures
from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TUPLES = 4_194_304
WINDOWS = {"tumbling 10 s": (10, 10), "sliding 60 s every 1 s": (60, 1)}
"""Lengths and slides, in seconds."""
Sums = tuple[int, int]
"""The number of windows, and the sum of their sums."""


def cpu_seconds() -> float:
    """CPU time of this process and of the processes that it started."""
    spent = time.process_time()
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            spent += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return spent


def measured(run: Callable[[int], Sums], tuples: int) -> tuple[float, Sums]:
    """CPU seconds of a run without its fixed cost, and its result."""
    run(tuples)
    best = {1_000: float("inf"), tuples: float("inf")}
    result = (0, 0)
    for _ in range(2):
        for size in best:
            began = cpu_seconds()
            result = run(size)
            best[size] = min(best[size], cpu_seconds() - began)
    return best[tuples] - best[1_000], result


def flink() -> dict[str, Callable[[int], Sums]]:
    """The jobs of Flink."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    def rows(tuples: int, select: str) -> list[Any]:
        tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        tables.get_config().set("parallelism.default", "1")
        tables.execute_sql(
            f"""CREATE TABLE tuples (
                id BIGINT, ts AS TO_TIMESTAMP_LTZ(id / 2, 3), v AS id * 7919 % 1000,
                WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND
            ) WITH (
                'connector' = 'datagen', 'rows-per-second' = '1000000000',
                'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{tuples - 1}'
            )"""
        )
        with tables.execute_sql(select).collect() as found:
            return list(found)

    def windows(length: int, slide: int) -> Callable[[int], Sums]:
        parts = f"INTERVAL '{slide}' SECOND, INTERVAL '{length}' SECOND"
        table = f"TABLE(HOP(TABLE tuples, DESCRIPTOR(ts), {parts}))"
        if length == slide:
            table = f"TABLE(TUMBLE(TABLE tuples, DESCRIPTOR(ts), INTERVAL '{length}' SECOND))"
        select = f"SELECT SUM(v) FROM {table} GROUP BY window_start, window_end"

        def run(tuples: int) -> Sums:
            found = rows(tuples, select)
            return len(found), sum(row[0] for row in found)

        return run

    def source(tuples: int) -> Sums:
        return len(rows(tuples, "SELECT v FROM tuples WHERE v > 1000")), 0

    return {"source": source} | {name: windows(*shape) for name, shape in WINDOWS.items()}


def muntin() -> dict[str, Callable[[int], Sums]]:
    """The queries of Muntin, in batches of a million tuples."""
    import numpy as np
    import pyarrow as pa

    import muntin as mt
    from muntin import aggregates as a
    from muntin import windows as w

    made: dict[int, list[pa.RecordBatch]] = {}

    def batches(tuples: int) -> list[pa.RecordBatch]:
        if tuples not in made:
            i = np.arange(tuples)
            table = pa.table({"ts": pa.array(i // 2).cast(pa.timestamp("ms")), "v": i * 7919 % 1000})
            made[tuples] = table.to_batches(max_chunksize=1 << 20)
        return made[tuples]

    def windows(length: int, slide: int) -> Callable[[int], Sums]:
        query = (
            mt.windows(x=w.sliding(f"{length} s", every=f"{slide} s")).aggregate(total=a.sum("v")).on("ts")
        )

        def run(tuples: int) -> Sums:
            operator = query.operator(in_order=True)
            found = [*map(operator.process, batches(tuples)), operator.finish()]
            return sum(map(len, found)), sum(sum(part["total"].to_pylist()) for part in found)

        return run

    return {name: windows(*shape) for name, shape in WINDOWS.items()}


def main() -> None:
    """Print the rates of one engine."""
    parser = argparse.ArgumentParser(description="Two windows in Flink SQL and in Muntin.")
    parser.add_argument("engine", choices=["flink", "muntin"])
    parser.add_argument("--tuples", type=int, default=TUPLES)
    given = parser.parse_args()
    for name, run in {"flink": flink, "muntin": muntin}[given.engine]().items():
        seconds, (count, total) = measured(run, given.tuples)
        rate = given.tuples / seconds / 1e6
        print(f"{name:24} {rate:8.2f} million tuples/s of CPU time; {count} windows, sum of sums {total}")


if __name__ == "__main__":
    main()
