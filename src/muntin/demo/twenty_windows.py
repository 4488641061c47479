"""Twenty windows over one stream: one pass of Muntin, and twenty passes of polars where it is installed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from muntin import aggregates as a
from muntin import windows as w
from muntin.dsl import Query, windows

__all__ = ["TUPLES", "Race", "Timing", "race"]

TUPLES = 4_000_000
PER_SECOND = 2_000
LENGTHS = range(1, 21)
"""The lengths of the windows, in seconds."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Timing:
    """The best of three runs."""

    passed: float
    """Seconds of wall-clock time."""
    cpu: float
    """Seconds of CPU time, of all cores together."""


@dataclass(frozen=True, slots=True)
class Race:
    """The times of both for the same windows."""

    tuples: int
    windows: int
    """The number of emitted windows; polars gave the same number, and the same totals."""
    ours: Timing
    polars: Timing | None
    """None where polars is not installed."""


def race(tuples: int = TUPLES) -> Race:
    """Run the twenty windows over tuples in order, in Muntin and in polars; results are compared."""
    seconds = pa.array(np.arange(tuples) * (1_000_000 // PER_SECOND), pa.timestamp("us"))
    amounts = pa.array(np.random.default_rng(7).integers(0, 100, tuples))
    table, query = pa.table({"at": seconds, "amount": amounts}), twenty()
    query.run(table.slice(0, 100_000))  # compiles, or loads what is compiled
    ours, results = _best(lambda: query.run(table))
    if find_spec("polars") is None:
        return Race(tuples, results.num_rows, ours, None)
    polars, frames = _best(_passes(table))
    totals = sum(frame.height for frame in frames), sum(int(frame["total"].sum()) for frame in frames)
    expected = results.num_rows, int(pa.compute.sum(results["total"]).as_py())
    if totals != expected:
        raise AssertionError(f"polars gives {totals} windows and their total, Muntin {expected}")
    return Race(tuples, results.num_rows, ours, polars)


def twenty() -> Query:
    """Tumbling windows of 1 to 20 seconds."""
    named = {f"s{length}": w.tumbling(f"{length} seconds") for length in LENGTHS}
    return windows(**named).aggregate(total=a.sum("amount")).on("at")


def _passes(table: pa.Table) -> Callable[[], list[Any]]:
    """Twenty groups of truncated times, declared to be in order: faster than twenty dynamic groups."""
    import polars as pl

    frame: Any = pl.from_arrow(table)
    frame = frame.with_columns(pl.col("at").set_sorted()).lazy()

    def run() -> list[Any]:
        starts = [pl.col("at").dt.truncate(f"{length}s").set_sorted() for length in LENGTHS]
        total = pl.col("amount").sum().alias("total")
        return list(pl.collect_all([frame.group_by(start).agg(total) for start in starts]))

    return run


def _best(work: Callable[[], Result]) -> tuple[Timing, Result]:
    """The shortest times of three runs, and the last result."""
    passed, cpu = [], []
    for _ in range(3):
        began, busy = time.perf_counter(), time.process_time()
        result = work()
        passed.append(time.perf_counter() - began)
        cpu.append(time.process_time() - busy)
    return Timing(min(passed), min(cpu)), result
