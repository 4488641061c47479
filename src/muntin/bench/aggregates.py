"""`muntin bench aggregates`: the throughput of every aggregate beside that of sum in the same run."""

from __future__ import annotations

import inspect
import json
import operator
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from muntin import aggregates as a
from muntin.aggregates.base import Aggregate
from muntin.bench.core import BATCH, generate
from muntin.connectors.embedded import Operator
from muntin.dsl import Query, windows
from muntin.windows import session, tumbling
from muntin.windows.base import Window

__all__ = ["Measurement", "catalogue", "measure", "run_aggregates"]

_DISTINCT = 84_232
"""Distinct values of the football data, over which the paper measures. [scotty §10.3.2]"""

_ROUNDS = 3

_ARGUMENTS: dict[str, Any] = {
    "column": "value",
    "x": "value",
    "y": "price",
    "by": "price",
    "weight": "price",
    "predicate": "value < 1000",
    "k": 10,
    "label": "name",
    "columns": ["price"],
    "n": 10,
    "q": 0.9,
}
"""What the parameters of constructors are given that have no default."""

_OWN_ARGUMENTS: dict[str, dict[str, Any]] = {
    "concat": {"column": "name"},
    "count_min": {"items": [1, 2, 3]},
    "geometric_mean": {"column": "price"},
    "histogram": {"bins": 10},
    "percentiles": {"q": [0.5, 0.9]},
}

OWN: dict[str, Aggregate] = {
    "own sum, compiled": a.aggregate("value", lift=int, combine=operator.add, compile=True),
    "own sum, interpreted": a.aggregate("value", lift=int, combine=operator.add, compile=False),
    "own weighted mean, compiled": a.aggregate(
        "value",
        "price",
        lift=lambda value, price: (value * price, price),
        combine=lambda p, q: (p[0] + q[0], p[1] + q[1]),
        lower=lambda p: p[0] / p[1],
        compile=True,
    ),
}
"""User-defined aggregates."""

TEN = ("count", "sum", "min", "max", "mean", "stddev", "skewness", "max_count", "arg_max", "last")
TEN_NAME = "ten in one query"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one query took."""

    name: str
    kind: str
    million_per_second: float
    times_sum: float
    """Its time, in times of sum's."""


def catalogue() -> dict[str, Aggregate]:
    """One of each aggregate that `muntin.aggregates` has, and a few of one's own."""
    built_in = [name for name in a.__all__ if name.islower() and name not in ("aggregate", "col")]
    return {name: _one(name) for name in built_in} | OWN


def run_aggregates(tuples: int, in_order: bool, as_json: bool, console: Console) -> None:
    """Measure every aggregate, and ten of them in one query, and print the times."""
    found = measure(tuples, in_order)
    if as_json:
        console.print_json(json.dumps([asdict(one) for one in found]))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("aggregate", "kind", "M/s", "times sum"):
        table.add_column(name, no_wrap=True, justify="left" if name in ("aggregate", "kind") else "right")
    for one in found:
        table.add_row(one.name, one.kind, f"{one.million_per_second:.1f}", f"{one.times_sum:.2f}")
    console.print(table)
    console.print(
        f"Million tuples per second: {tuples:,} tuples, one key, batches of {BATCH:,}, 20 tumbling windows "
        f"of 1 to 20 seconds and a session, {'none late' if in_order else '20% of the tuples up to 2 s late'}"
        f", {_DISTINCT:,} distinct integers. CPU time of one thread, best of {_ROUNDS} runs. "
        f"{TEN_NAME}: {', '.join(TEN)}."
    )


def measure(tuples: int, in_order: bool = False) -> list[Measurement]:
    """The workload of Fig. 18 of [scotty], its time-based windows, for each aggregate."""
    batches = _batches(tuples, in_order)
    single = catalogue()
    queries: dict[str, dict[str, Aggregate]] = {name: {name: one} for name, one in single.items()}
    queries[TEN_NAME] = {name: single[name] for name in TEN}
    seconds = _seconds({name: _query(chosen) for name, chosen in queries.items()}, batches, in_order)
    return [
        Measurement(
            name,
            single[name].kind if name in single else "",
            tuples / took / 1e6,
            took / seconds["sum"],
        )
        for name, took in sorted(seconds.items(), key=lambda item: item[1])
    ]


def _one(name: str) -> Aggregate:
    constructor: Callable[..., Aggregate] = getattr(a, name)
    arguments = {
        p.name: _ARGUMENTS[p.name]
        for p in inspect.signature(constructor).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_POSITIONAL
    }
    return constructor(**arguments | _OWN_ARGUMENTS.get(name, {}))


def _query(chosen: dict[str, Aggregate]) -> Query:
    named: dict[str, Window] = {f"s{i}": tumbling(f"{i} seconds") for i in range(1, 21)}
    return windows(**named, visit=session("1 second")).aggregate(**chosen).on("at")


def _batches(tuples: int, in_order: bool) -> list[pa.RecordBatch]:
    times, _ = generate(tuples, disorder=not in_order)
    rng = np.random.default_rng(18)
    value = rng.integers(0, _DISTINCT, tuples)
    table = pa.table(
        {
            "at": pa.array(times).cast(pa.timestamp("us")),
            "value": value,
            "price": rng.random(tuples) + 0.5,
            "name": pa.DictionaryArray.from_arrays(value % 7, ["a", "b", "c", "d", "e", "f", "g"]).cast(
                "string"
            ),
        }
    )
    batches: list[pa.RecordBatch] = table.combine_chunks().to_batches(BATCH)
    return batches


def _seconds(queries: dict[str, Query], batches: list[pa.RecordBatch], in_order: bool) -> dict[str, float]:
    """The best time of each query, in rounds over all: what else the machine does hits them alike."""
    for query in queries.values():
        _drive(query, batches[:4], in_order)  # compiles
    rounds = [
        {name: _drive(query, batches, in_order) for name, query in queries.items()} for _ in range(_ROUNDS)
    ]
    return {name: min(one[name] for one in rounds) for name in queries}


def _drive(query: Query, batches: list[pa.RecordBatch], in_order: bool) -> float:
    op = Operator(query, in_order=True) if in_order else Operator(query, watermark_lag="2 seconds")
    started = time.process_time()
    for batch in batches:
        op.process(batch)
    op.finish()
    return time.process_time() - started
