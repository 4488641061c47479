"""`python -m benchmarks stores --operator`: what a window costs through each store in the operator."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from muntin import aggregates as a
from muntin.connectors.embedded import Operator
from muntin.dsl import Query, windows
from muntin.planning.plan import STORES, make_plan
from muntin.slicing.combining.choosing import combiners
from muntin.windows import sliding

SIZES = (2**4, 2**6, 2**8, 2**10, 2**12, 2**14, 2**16)
MANY = 4096
RUNS = 5
PLANNED = "as planned"
"""The store that the plan chooses."""
WALKS = 2**26
"""The most combines of slices for which lazy, which combines all slices of all windows, is measured."""


@dataclass(frozen=True, slots=True)
class OperatorMeasurement:
    """One store in the operator: sliding windows over a number of slices, some at each watermark, one key."""

    aggregate: str
    windows_per_watermark: int
    store: str
    slices: int
    microseconds_per_window: float
    combines_per_window: float


def joined(p: list[int], q: list[int]) -> list[int]:
    """A combine in Python, on objects that are not compiled: the three largest values."""
    return sorted(p + q)[-3:]


AGGREGATES: dict[str, Any] = {
    "sum of integers": a.sum("v"),
    "max": a.max("v"),
    "Python functions": a.aggregate("v", lift=lambda v: [v], combine=joined, lower=len, name="few"),
}


def measure(aggregate: str, many: int, store: str, slices: int) -> OperatorMeasurement:
    """The best of RUNS runs, in CPU time of this thread, of bringing `many` windows out at a watermark."""
    operator = _filled(_query(aggregate, slices), store, slices)
    _advance(operator, slices, many)  # compiles; stores that stand fill up
    best = float("inf")
    combines = 0
    rounds = RUNS if many > 1 else 4 * RUNS
    for i in range(1, rounds + 1):
        seconds, done = _advance(operator, slices + i * many, many)
        best = min(best, seconds)
        combines += done
    return OperatorMeasurement(aggregate, many, store, slices, 1e6 * best / many, combines / rounds / many)


def _filled(query: Query, store: str, slices: int) -> Operator:
    """An operator at the end of its first whole window; those before it came out through FlatFAT."""
    if store == PLANNED:
        operator = Operator(query)
        operator.process(_stream(0, slices))
        operator.flush()
        operator._engine.state.watermark = slices - 1  # so that none of the shorter windows comes out
        operator.advance(slices)
        return operator
    operator = Operator(query, store="flatfat")
    operator.process(_stream(0, slices))
    operator.advance(slices)
    operator._engine.state.store = combiners(make_plan(query, store=store))()
    return operator


def _query(aggregate: str, slices: int) -> Query:
    return windows(w=sliding(slices, every=1)).aggregate(value=AGGREGATES[aggregate]).on("t")


def _stream(start: int, end: int) -> pa.RecordBatch:
    times = np.arange(start, end)
    return pa.record_batch({"t": times, "v": times * 7919 % 1000})


def _advance(operator: Operator, now: int, many: int) -> tuple[float, int]:
    """One tuple per slice, then the watermark: seconds and combines of the watermark."""
    operator.process(_stream(now, now + many))
    operator.flush()
    before, start = _combines(operator), time.thread_time()
    found = operator.advance(now + many)
    seconds = time.thread_time() - start
    assert found.num_rows == many, "each slice completes a window"
    return seconds, _combines(operator) - before


def _combines(operator: Operator) -> int:
    """The number of combines; each step makes a new state, with counters of its own."""
    return operator._engine.state.metrics.merge_combines


def subjects(sizes: tuple[int, ...]) -> Iterator[tuple[str, int, str, int]]:
    """(aggregate, windows per watermark, store, slices per window) of every measurement."""
    for aggregate in AGGREGATES:
        for many in (1, MANY):
            for store in (*STORES, PLANNED):
                for slices in sizes:
                    costly = WALKS // 32 if aggregate == "Python functions" else WALKS
                    served = store != "prefix" or aggregate == "sum of integers"
                    if served and (store != "lazy" or slices * many <= costly):
                        yield aggregate, many, store, slices


def tables(found: list[OperatorMeasurement]) -> Iterator[Table]:
    """One table for each aggregate and number of windows: a row for each store."""
    sizes = sorted({m.slices for m in found})
    for aggregate, many in dict.fromkeys((m.aggregate, m.windows_per_watermark) for m in found):
        mine = [m for m in found if (m.aggregate, m.windows_per_watermark) == (aggregate, many)]
        title = f"{aggregate}, {many:,} windows per watermark: µs and combines per window"
        result = Table(title=title)
        result.add_column("store")
        for size in sizes:
            result.add_column(f"{size:,} slices", justify="right")
        for store in dict.fromkeys(m.store for m in mine):
            cells = {m.slices: m for m in mine if m.store == store}
            result.add_row(store, *(_cell(cells.get(size)) for size in sizes))
        yield result


def _cell(m: OperatorMeasurement | None) -> str:
    return "" if m is None else f"{m.microseconds_per_window:.3g}, {m.combines_per_window:.3g}"


def run_in_operator(sizes: tuple[int, ...], as_json: bool, console: Console) -> None:
    """What the command line calls."""
    found = [measure(*subject) for subject in subjects(sizes or SIZES)]
    if as_json:
        console.print_json(json.dumps([asdict(m) for m in found]))
        return
    for result in tables(found):
        console.print(result)
