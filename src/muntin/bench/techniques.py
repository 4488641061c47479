"""`muntin bench techniques`: the window techniques of the papers beside Muntin, on workloads in order."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from muntin.baselines.slice_techniques import Cutty, Pairs, Panes
from muntin.baselines.technique import Technique, Totals
from muntin.baselines.tuple_techniques import AggregateBuckets, AggregateTree, TupleBuckets, TupleBuffer
from muntin.bench.core import drive
from muntin.bench.expected import Expected, Sums, expected
from muntin.bench.streams import BATCH, Arrivals
from muntin.bench.workloads import Workload, chosen
from muntin.windows.periodic import Periodic

__all__ = ["TechniqueMeasurement", "measure_techniques", "run_techniques"]

WORKLOADS = ("W1 N=1", "W1 N=10", "W1 N=100", "W3 1 s", "W3 100 ms")

TECHNIQUES: dict[str, type[Technique]] = {
    "tuple buffer": TupleBuffer,
    "tuple buckets": TupleBuckets,
    "aggregate buckets": AggregateBuckets,
    "aggregate tree": AggregateTree,
    "Panes": Panes,
    "Pairs": Pairs,
    "Cutty": Cutty,
}

_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class TechniqueMeasurement:
    """One technique on one workload."""

    workload: str
    technique: str
    tuples: int
    million_per_second: float
    combines_per_tuple: float


def measure_techniques(
    tuples: int, only: Sequence[str] = WORKLOADS, rounds: int = _ROUNDS
) -> list[TechniqueMeasurement]:
    """All techniques on these workloads, the sum of every query checked."""
    found = []
    for workload in (w for w in chosen(tuple(only)) if w.name in only):
        arrivals = workload.shape.generate(tuples)
        wanted = expected(workload.query, arrivals)
        for name, technique in TECHNIQUES.items():
            seconds, combines = _best(workload, technique, arrivals, wanted, rounds)
            rate = tuples / seconds / 1e6
            found.append(TechniqueMeasurement(workload.name, name, tuples, rate, combines / tuples))
        runs = [drive(workload, arrivals.batches(BATCH)) for _ in range(rounds + 1)]
        wanted.check(workload.name, runs[-1].sums)
        stats = runs[-1].stats
        # A sum has two partials here (how many values, too); the techniques keep one.
        combines = (stats.update_combines + stats.merge_combines) // 2
        rate = tuples / min(run.seconds for run in runs[1:]) / 1e6
        found.append(TechniqueMeasurement(workload.name, "Muntin", tuples, rate, combines / tuples))
    return found


def run_techniques(tuples: int, as_json: bool, console: Console) -> None:
    """What the command line calls."""
    found = measure_techniques(tuples)
    if as_json:
        console.print_json(json.dumps([asdict(m) for m in found]))
        return
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("technique", no_wrap=True)
    for name in WORKLOADS:
        table.add_column(name, justify="right", no_wrap=True)
    for technique in (*TECHNIQUES, "Muntin"):
        of = {m.workload: m for m in found if m.technique == technique}
        table.add_row(
            technique,
            *(f"{of[w].million_per_second:.3g}, {of[w].combines_per_tuple:.3g}" for w in WORKLOADS),
        )
    console.print(table)
    console.print(
        f"Million tuples per second of CPU time, combines per tuple. {tuples:,} tuples in order, batches of "
        f"{BATCH:,}, the best of {_ROUNDS} runs after one that compiles. Results are checked."
    )


def _best(
    workload: Workload, technique: type[Technique], arrivals: Arrivals, wanted: Expected, rounds: int
) -> tuple[float, int]:
    """Seconds of the best run, and the combines of one."""
    named = [(n, w.length, w.slide) for n, w in workload.query.windows if isinstance(w, Periodic)]
    best = float("inf")
    for number in range(rounds + 1):
        one = technique([(length, slide) for _, length, slide in named])
        started = time.process_time()
        parts = [
            one.process(arrivals.time[i : i + BATCH], arrivals.value[i : i + BATCH])
            for i in range(0, len(arrivals), BATCH)
        ]
        parts.append(one.finish())
        seconds = time.process_time() - started
        best = min(best, seconds) if number else best
        _check(f"{workload.name}, {technique.__name__}", parts, [n for n, _, _ in named], wanted)
    return best, one.combines


def _check(name: str, parts: list[Totals], queries: list[str], wanted: Expected) -> None:
    """The sum of each query. Their windows are not counted: techniques tell empty ones, too."""
    query = np.concatenate([part.query for part in parts])
    total = np.concatenate([part.total for part in parts])
    sums = np.bincount(query, weights=total, minlength=len(queries))
    found: Sums = {q: (wanted.sums[q][0], float(s)) for q, s in zip(queries, sums, strict=True)}
    wanted.check(name, found)
