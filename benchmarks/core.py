"""Muntin in the benchmark `core`: throughput, counted work and memory, and limits of the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from benchmarks.case import Case
from benchmarks.expected import Sums, recomputed
from benchmarks.limits import copy_rate, reduceat_rate
from benchmarks.memory import peak_memory
from benchmarks.streams import LATENESS
from benchmarks.workloads import LARGE_BATCH, Workload
from muntin.connectors.embedded import Operator
from muntin.results import Results
from muntin.slicing.stats import Stats

__all__ = ["ROUNDS", "Measurement", "Run", "drive", "measure", "new_operator"]

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one workload took. Rates are million tuples per second of CPU time."""

    workload: str
    told: str
    tuples: int
    batch: int
    best: float
    median: float
    reduceat: float
    copy: float
    slices: int
    """The most that there were between two batches."""
    windows: int
    update_combines: float
    """Per tuple: tuples into slices."""
    merge_combines: float
    """Per tuple: slices into windows."""
    memory: int | None
    """Bytes of resident memory more than before, at the peak."""
    scotty: float | None
    goal: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over a stream."""

    seconds: float
    sums: Sums
    slices: int
    stats: Stats


def measure(case: Case, batch: int = LARGE_BATCH, rounds: int = ROUNDS) -> Measurement:
    """Run a workload: once to compile, once to weigh, then a few times; check the results of these."""
    workload, arrivals, wanted = case.workload, case.arrivals, case.wanted
    tuples, batch = len(arrivals), workload.batch or batch
    limits = reduceat_rate(wanted.value, wanted.bounds()), copy_rate(arrivals)
    batches = arrivals.batches(batch)
    drive(workload, batches)
    with peak_memory() as peak:  # which gives memory back before: a run that is timed must find it warm
        drive(workload, batches)
    runs = [drive(workload, batches) for _ in range(rounds)]
    for run in runs:
        wanted.check(workload.name, run.sums)
    stats = runs[-1].stats
    rates = [tuples / run.seconds / 1e6 for run in runs]
    return Measurement(
        workload.name,
        workload.told,
        tuples,
        batch,
        max(rates),
        statistics.median(rates),
        *limits,
        runs[-1].slices,
        stats.windows,
        stats.update_combines / tuples,
        stats.merge_combines / tuples,
        peak.bytes,
        workload.scotty,
        workload.goal,
    )


def new_operator(workload: Workload) -> Operator:
    """One that knows whether tuples come late."""
    late = workload.shape.late
    return Operator(workload.query, in_order=not late, watermark_lag=f"{LATENESS} us" if late else None)


def drive(workload: Workload, batches: list[pa.RecordBatch]) -> Run:
    """All batches through a new operator. The clock stands while results are added up."""
    operator = new_operator(workload)
    seconds, slices = 0.0, 0

    def steps() -> Iterator[Results]:
        nonlocal seconds, slices
        calls: list[Callable[[], Results]] = [partial(operator.process, batch) for batch in batches]
        for step in [*calls, operator.finish]:
            started = time.process_time()
            results = step()
            seconds += time.process_time() - started
            slices = max(slices, len(operator._engine.state.slices))
            yield results

    sums = recomputed(steps(), tuple(name for name, _ in workload.query.aggregates))
    return Run(seconds, sums, slices, operator.stats())
