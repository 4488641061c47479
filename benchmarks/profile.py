"""`python -m benchmarks profile`: where the time of a workload goes, step by step.

Each step is a function of the engine that runs a few times per batch. It is wrapped with a clock of CPU time;
a step that runs inside of another is not counted there. What remains is the rest of the engine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from rich.console import Console

from benchmarks.case import Case
from benchmarks.core import new_operator
from benchmarks.expected import recomputed
from benchmarks.grid import Grid
from benchmarks.workloads import LARGE_BATCH, Workload, chosen
from muntin.slicing import slice_manager, slicer, step
from muntin.slicing.emission.results import ResultShape
from muntin.slicing.keys import KeyTable
from muntin.slicing.partials import PartialSet
from muntin.slicing.tuple_state import TupleState
from muntin.timeline.column import TimeColumn

__all__ = ["REST", "Profile", "profile", "run_profile"]

ROUNDS = 7

REST = "the rest: planning, finding edges, what is called between these"


@dataclass(frozen=True, slots=True)
class Profile:
    """Nanoseconds of CPU time per tuple, in the best of all runs."""

    workload: str
    tuples: int
    whole: float
    steps: dict[str, float]


def profile(workload: Workload, tuples: int, batch: int = LARGE_BATCH, rounds: int = ROUNDS) -> Profile:
    """Run a workload a few times; the results of each run are checked."""
    case = Case.of(workload, tuples * workload.times_tuples)
    tuples = len(case.arrivals)
    batches = case.arrivals.batches(workload.batch or batch)
    # The first run compiles.
    found = [_run(case, batches) for _ in range(rounds + 1)][1:]
    seconds, spent = min(found, key=lambda one: one[0])
    whole = 1e9 * seconds / tuples
    steps = {step: 1e9 * one / tuples for step, one in spent.items() if one}
    return Profile(workload.name, tuples, whole, steps | {REST: whole - sum(steps.values())})


def _run(case: Case, batches: list[pa.RecordBatch]) -> tuple[float, dict[str, float]]:
    """Seconds of a run, and of each step."""
    operator = new_operator(case.workload)
    with _clocks() as spent:
        started = time.process_time()
        results = [*(operator.process(batch) for batch in batches), operator.finish()]
        seconds = time.process_time() - started
    columns = tuple(name for name, _ in case.workload.query.aggregates)
    case.wanted.check(case.workload.name, recomputed(results, columns))
    return seconds, spent


def run_profile(tuples: int, names: Sequence[str], form: str, console: Console) -> None:
    """What the command line calls; the form is `table`, `json` or `markdown`."""
    workloads = chosen(tuple(names))
    found = [profile(workload, tuples) for workload in workloads]
    if form == "json":
        console.print_json(json.dumps([asdict(one) for one in found]))
    elif form == "markdown":
        console.print(_grid(found).as_markdown(), highlight=False, markup=False, soft_wrap=True)
    else:
        console.print(_grid(found).as_table())
        console.print(f"Nanoseconds of CPU time per tuple, the best of {ROUNDS} runs; results are checked.")


def _grid(found: Sequence[Profile]) -> Grid:
    steps = [step for step, _, _ in _steps() if any(step in one.steps for one in found)]
    rows = [
        (step, *(f"{one.steps[step]:.2f}" if step in one.steps else "" for one in found))
        for step in dict.fromkeys([*steps, REST])
    ]
    rows.append(("all", *(f"{one.whole:.2f}" for one in found)))
    return Grid(("step", *(one.workload for one in found)), rows, words=1)


def _steps() -> list[tuple[str, Any, str]]:
    """What each step is, and the function that does it."""
    return [
        ("read the times: nulls, smallest, largest, order", TimeColumn, "to_internal"),
        ("number the keys", KeyTable, "encode"),
        ("cut, aggregate, merge, list and combine in one compiled call", step, "numeric_results"),
        ("find each tuple's cell of the time line", slicer, "assign"),
        ("find where slices begin, in order", slicer, "cut_sorted_time"),
        ("find where slices begin, in order", slicer, "cut_sorted"),
        ("keep tuples, sort and cut them", TupleState, "arrive"),
        ("keep tuples, sort and cut them", step, "slice_tuples"),
        ("aggregate the tuples of each slice", PartialSet, "lift"),
        ("merge slices into the slice table", slice_manager, "merge"),
        ("list windows and combine their slices", step, "due_results"),
        ("drop old slices", step, "evict"),
        ("make result tables", ResultShape, "table"),
    ]


@contextmanager
def _clocks() -> Iterator[dict[str, float]]:
    """While this runs, the CPU seconds of each step are added up."""
    spent = {step: 0.0 for step, _, _ in _steps()}
    inner = [0.0]  # for each step under way, the seconds of steps inside of it

    def timed(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            inner.append(0.0)
            started = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = time.process_time() - started
                spent[step] += seconds - inner.pop()
                inner[-1] += seconds

        return call

    with ExitStack() as stack:
        for step, owner, name in _steps():
            stack.enter_context(patch.object(owner, name, timed(step, getattr(owner, name))))
        yield spent
