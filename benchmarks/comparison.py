"""The workloads of the benchmark `core` in other engines and techniques, their results checked like ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.case import Ask, Case
from benchmarks.duckdb_engine import ask_duckdb
from benchmarks.polars_engine import ask_polars
from benchmarks.streams import BATCH
from benchmarks.technique_engine import TECHNIQUES, ask_technique, batch_for, can_answer
from benchmarks.workloads import LARGE_BATCH, Workload
from muntin.windows.periodic import Periodic

__all__ = ["ENGINES", "PEERS", "Comparison", "answering", "compare", "missing", "tuples_for"]

PEERS: dict[str, Callable[[Case], Ask]] = {"polars": ask_polars, "DuckDB": ask_duckdb}
"""They read a finished table, with all cores."""

ENGINES = (*PEERS, *TECHNIQUES)

ROUNDS = 2

_WORK = 2**28
"""How often a run may put a tuple into a window: some seconds at most."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A workload in another engine. Rates are million tuples per second."""

    workload: str
    engine: str
    tuples: int
    batch: int | None
    """The number of tuples of a batch; None: all at once, as a finished table."""
    cpu: float
    """By the CPU time of all threads, the best run."""
    wall: float
    """By the time that passed, the best run."""
    combines: float | None
    """Per tuple; None if the engine does not count."""


def missing() -> list[str]:
    """A line for each peer that is not installed."""
    return [
        f'{name} is not installed, so it is left out: pip install ".[bench]"'
        for name in PEERS
        if find_spec(name.lower()) is None
    ]


def answering(workload: Workload) -> list[str]:
    """The engines that are installed and can express a workload.

    >>> from benchmarks.workloads import chosen
    >>> [name for name in answering(chosen(("W4",))[0]) if name not in PEERS]
    ['tuple buffer']
    """
    peers = [name for name in PEERS if find_spec(name.lower()) is not None]
    return peers + [name for name, technique in TECHNIQUES.items() if can_answer(technique, workload)]


def tuples_for(engine: str, workload: Workload, tuples: int) -> int:
    """The number of tuples that an engine reads: all, or fewer where a run would take more than some seconds.

    >>> from benchmarks.workloads import chosen
    >>> [tuples_for("polars", workload, 4_194_304) for workload in chosen(("W1",))]
    [4194304, 4194304, 2621440, 262144]
    """
    named = [window for _, window in workload.query.windows]
    # Peers make sliding windows of groups as long as the slide; what techniques do grows with the overlap.
    overlap = [w.length // w.slide if isinstance(w, Periodic) and engine not in PEERS else 1 for w in named]
    return min(tuples, max(_WORK // sum(overlap) // BATCH, 1) * BATCH)


def compare(case: Case, batch: int = LARGE_BATCH, rounds: int = ROUNDS) -> Iterator[Comparison]:
    """A workload in all engines that can express it, over the tuples of the case or as many as they take."""
    workload, cases = case.workload, {len(case.arrivals): case}
    for engine in answering(workload):
        reads = tuples_for(engine, workload, len(case.arrivals))
        if reads not in cases:
            cases[reads] = Case.of(workload, reads)
        if engine in PEERS:
            yield _measure(engine, cases[reads], None, PEERS[engine](cases[reads]), rounds)
        else:
            technique = TECHNIQUES[engine]
            size = batch_for(technique, workload.batch or batch)
            yield _measure(engine, cases[reads], size, ask_technique(technique, cases[reads], size), rounds)


def _measure(engine: str, case: Case, batch: int | None, ask: Ask, rounds: int) -> Comparison:
    tuples, name = len(case.arrivals), case.workload.name
    cpus, walls = [], []
    for _ in range(rounds + 1):
        cpu, wall = time.process_time(), time.perf_counter()
        results = ask.run()
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
        case.wanted.check(f"{name}, {engine}", ask.sums(results))
        combines = None if ask.combines is None else ask.combines(results) / tuples
        del results  # before the next run needs its memory
    # The first run compiles, or warms up.
    cpu, wall = (tuples / min(seconds[1:]) / 1e6 for seconds in (cpus, walls))
    return Comparison(name, engine, tuples, batch, cpu, wall, combines)
