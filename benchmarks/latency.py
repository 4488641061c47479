"""`python -m benchmarks latency`: how long a watermark takes to its results, and what small steps cost.

The first part is Fig. 16 of the Scotty paper: one window over a given number of slices is due, and
the store decides how many of them are combined by then. The second part drives an operator in steps of few
tuples.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.expected import expected, recomputed
from benchmarks.streams import Arrivals, Shape
from muntin import aggregates as a
from muntin.connectors.embedded import Operator
from muntin.dsl import Query, windows
from muntin.planning.plan import STORES, make_plan
from muntin.results import Results
from muntin.slicing.bound_plan import Settings
from muntin.slicing.combining.choosing import combiners
from muntin.slicing.plan_cache import plan_for
from muntin.timeline import Micros
from muntin.windows import sliding, tumbling

__all__ = ["LatencyMeasurement", "StepMeasurement", "measure_latency", "measure_steps", "run_latency"]

SLICES = (1, 1_000, 100_000)
STEPS = (1, 10, 100, 1_000)
RATES = (2_000, 200_000)
"""Tuples per second of event time: at the second rate most steps make nothing due."""
RUNS = 3
ROUNDS = 40
AGGREGATES: dict[str, Any] = {"sum of integers": a.sum("v"), "max": a.max("v")}
_CHECKS: dict[str, Callable[[Any], Any]] = {"sum of integers": np.sum, "max": np.max}


@dataclass(frozen=True, slots=True)
class LatencyMeasurement:
    """From `advance` to the result of one window, in microseconds of CPU time."""

    aggregate: str
    store: str
    slices: int
    best: float
    median: float


@dataclass(frozen=True, slots=True)
class StepMeasurement:
    """The cost of steps with `tuples` tuples each, in microseconds of CPU time."""

    step: str
    per_second: int
    """Tuples per second of event time."""
    tuples: int
    mean: float
    median: float

    @property
    def rate(self) -> float:
        """Million tuples per second."""
        return self.tuples / self.mean


def measure_latency(aggregate: str, store: str, slices: int, rounds: int = ROUNDS) -> LatencyMeasurement:
    """Sliding windows over `slices` slices of one tuple; a watermark completes one, which is checked."""
    query = windows(w=sliding(slices, every=1)).aggregate(value=AGGREGATES[aggregate]).on("t")
    operator = Operator(query, store="flatfat")  # which brings the first windows out quickly
    tuples = _tuples(slices + rounds + 2)
    operator.process(tuples.slice(0, slices))
    operator.advance(slices)
    engine, lazy = operator._engine, store == "lazy"
    # Few slices are walked over in the compiled step, which takes no step where a store is forced.
    settings = Settings(store=None if lazy else store)
    engine.keep(plan_for(engine.spec, settings, engine.served, tuples.schema), engine.state)
    engine.state.store = combiners(make_plan(query, store=store))()
    seconds = []
    for now in range(slices, slices + rounds + 2):
        operator.process(tuples.slice(now, 1))
        operator.flush()
        started = time.thread_time()
        result = operator.advance(now + 1)
        seconds.append(time.thread_time() - started)
        wanted = _CHECKS[aggregate](tuples["v"].to_numpy()[now + 1 - slices : now + 1])
        found = result["value"].to_pylist()
        if found != [wanted]:
            raise AssertionError(f"{store}: {found} at {now + 1}, not [{wanted}]")
    timed = seconds[2:]  # the first ones compile, and fill stores that stand
    return LatencyMeasurement(aggregate, store, slices, 1e6 * min(timed), 1e6 * statistics.median(timed))


def _tuples(n: int) -> pa.RecordBatch:
    times = np.arange(n)
    return pa.record_batch({"t": times, "v": times * 7919 % 1000})


def ten_windows() -> Query:
    """Five tumbling and five sliding windows of 1 to 20 s."""
    fixed = {f"t{seconds}": tumbling(f"{seconds} s") for seconds in (1, 2, 5, 10, 20)}
    moved = {f"s{seconds}": sliding(f"{seconds} s", f"{seconds // 2} s") for seconds in (2, 4, 8, 12, 20)}
    return windows(**fixed, **moved).aggregate(total=a.sum("value")).on("at")


def measure_steps(tuples: int, steps: int, per_second: int = RATES[0]) -> Iterator[StepMeasurement]:
    """Steps of `tuples` tuples through ten windows: as batches with their watermarks, and one by one."""
    query, arrivals = ten_windows(), Shape(per_second=per_second).generate(tuples * steps)
    batches = arrivals.batches(tuples)
    ends = [Micros(end) for end in arrivals.time[tuples - 1 :: tuples].tolist()]
    records = pa.Table.from_batches(batches).to_pylist()

    def by_batch(operator: Operator, i: int) -> list[Results]:
        return [operator.process(batches[i]), operator.advance(ends[i])]

    def by_record(operator: Operator, i: int) -> list[Results]:
        for record in records[i * tuples : (i + 1) * tuples]:
            operator.process(record)
        return [operator.advance(ends[i])]

    for name, step in (("a batch and its watermark", by_batch), ("records and a watermark", by_record)):
        yield _timed(name, tuples, steps, query, arrivals, step, per_second)


def measure_records(n: int = 400_000) -> StepMeasurement:
    """One record at a time with a watermark at the end only: what is buffered is sliced on the way."""
    query, arrivals = ten_windows(), Shape().generate(n)
    records = pa.Table.from_batches(arrivals.batches(n)).to_pylist()

    def step(operator: Operator, i: int) -> list[Results]:
        for record in records[i * n // 10 : (i + 1) * n // 10]:
            operator.process(record)
        return [operator.flush()]

    return _timed("records, no watermark", n // 10, 10, query, arrivals, step, RATES[0])


def _timed(
    name: str,
    tuples: int,
    steps: int,
    query: Query,
    arrivals: Arrivals,
    step: Callable[[Operator, int], list[Results]],
    per_second: int,
) -> StepMeasurement:
    """All steps and the end of the stream, the best of a few runs; results are added up behind each."""
    wanted = expected(query, arrivals)
    runs = []
    for _ in range(RUNS):
        operator = Operator(query)
        seconds: list[float] = []
        results: list[Results] = []
        for i in range(steps):
            started = time.thread_time()
            found = step(operator, i)
            seconds.append(time.thread_time() - started)
            results += found
        results.append(operator.finish())
        wanted.check(name, recomputed(results, ("total",)))
        runs.append([1e6 * s for s in seconds[min(20, steps // 5) :]])  # the first ones compile
    best = min(runs, key=statistics.mean)
    return StepMeasurement(name, per_second, tuples, statistics.mean(best), statistics.median(best))


def latency_table(found: list[LatencyMeasurement]) -> Table:
    """A row for each store, a column for each number of slices."""
    sizes = sorted({m.slices for m in found})
    table = Table(title="µs from a watermark to the result of a window: median (best)")
    for name in ("aggregate", "store"):
        table.add_column(name)
    for size in sizes:
        table.add_column(f"{size:,} slices", justify="right")
    for aggregate, store in dict.fromkeys((m.aggregate, m.store) for m in found):
        cells = {m.slices: m for m in found if (m.aggregate, m.store) == (aggregate, store)}
        shown = [f"{m.median:,.0f} ({m.best:,.0f})" if (m := cells.get(size)) else "" for size in sizes]
        table.add_row(aggregate, store, *shown)
    return table


def steps_table(found: list[StepMeasurement]) -> Table:
    """A row for each kind of step and number of tuples."""
    table = Table(title="µs per step, ten windows")
    table.add_column("step")
    for name in ("per second", "tuples", "mean", "median", "M tuples/s"):
        table.add_column(name, justify="right")
    for m in found:
        table.add_row(
            m.step,
            f"{m.per_second:,}",
            f"{m.tuples:,}",
            f"{m.mean:,.0f}",
            f"{m.median:,.0f}",
            f"{m.rate:.3g}",
        )
    return table


def run_latency(sizes: tuple[int, ...], as_json: bool, console: Console) -> None:
    """What the command line calls."""
    measures = [
        partial(measure_latency, aggregate, store, slices)
        for aggregate in AGGREGATES
        for store in STORES
        for slices in sizes or SLICES
        if store != "prefix" or aggregate == "sum of integers"
    ]
    latencies = [measure() for measure in measures]
    steps = [m for rate in RATES for tuples in STEPS for m in measure_steps(tuples, 400, rate)]
    steps.append(measure_records())
    if as_json:
        both = {"latency": [asdict(m) for m in latencies], "steps": [asdict(m) for m in steps]}
        console.print_json(json.dumps(both))
        return
    console.print(latency_table(latencies))
    console.print(steps_table(steps))
