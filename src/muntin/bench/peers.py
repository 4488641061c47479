"""`muntin bench peers`: Muntin, polars and DuckDB on the queries P1 to P5, over tuples in memory.

One stream has no keys and is in order; the other has 50 keys and a fifth of its tuples are up to 2 s late.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from math import isclose
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console
from rich.table import Table

from muntin import aggregates as a
from muntin.bench.expected import expected
from muntin.bench.peer_queries import LENGTHS, duckdb_queries, polars_queries
from muntin.bench.streams import LATENESS, SECOND, Shape
from muntin.connectors.embedded import Operator
from muntin.dsl import Query, windows
from muntin.errors import QueryError
from muntin.windows import session, sliding, tumbling

__all__ = ["PeerMeasurement", "measure_peers", "queries", "run_peers"]

STREAMS = {
    "in order": Shape(pauses=True),
    "50 keys, late": Shape(late=True, keys=50, pauses=True),
}
ENGINES = ("muntin", "polars", "duckdb")
_TOLD = {
    "P1": "10 s",
    "P2": "60 s every 1 s",
    "P3": "ten tumbling",
    "P4": "session 1 s",
    "P5": "median, 10 s",
}
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class PeerMeasurement:
    """One query over one stream in one engine. Rates are million tuples per second."""

    query: str
    told: str
    stream: str
    engine: str
    tuples: int
    cpu: float
    """By the CPU time of all threads."""
    wall: float
    """By the time that passed."""


def queries(keyed: bool) -> dict[str, Query]:
    """P1 to P5."""
    named: dict[str, Query] = {
        "P1": windows(w=tumbling("10 s")),
        "P2": windows(w=sliding("60 s", "1 s")),
        "P3": windows(**{f"s{i}": tumbling(f"{i} s") for i in LENGTHS}),
        "P4": windows(w=session("1 s")),
        "P5": windows(w=tumbling("10 s")),
    }
    result = {name: a.median("value") if name == "P5" else a.sum("value") for name in named}
    asked = {name: query.aggregate(total=result[name]).on("at") for name, query in named.items()}
    return {name: query.by("key") if keyed else query for name, query in asked.items()}


def measure_peers(tuples: int, only: tuple[str, ...] = (), rounds: int = _ROUNDS) -> list[PeerMeasurement]:
    """All engines on all queries over both streams; every result is checked."""
    found = []
    for stream, shape in STREAMS.items():
        arrivals = shape.generate(tuples)
        data = pa.Table.from_batches(arrivals.batches(tuples))
        asked = queries(keyed=bool(shape.keys))
        prepared = {engine: _PREPARE[engine](data, shape, asked) for engine in ENGINES}
        for name, query in asked.items():
            if only and not name.startswith(only):
                continue
            sums = expected(query, arrivals).sums.values()
            wanted = sum(one[0] for one in sums), sum(one[1] for one in sums)
            for engine in ENGINES:
                cpu, wall = _time(f"{engine} {name}", prepared[engine][name], wanted, rounds)
                rates = tuples / cpu / 1e6, tuples / wall / 1e6
                found.append(PeerMeasurement(name, _TOLD[name], stream, engine, tuples, *rates))
    return found


def run_peers(tuples: int, only: tuple[str, ...], as_json: bool, console: Console) -> None:
    """What the command line calls."""
    for engine in ENGINES[1:]:
        try:
            importlib.import_module(engine)
        except ImportError:
            raise QueryError(f'{engine} is not installed: pip install "muntin[bench]"') from None
    found = measure_peers(tuples, only)
    if as_json:
        console.print_json(json.dumps([asdict(m) for m in found]))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("query", "stream", *ENGINES):
        table.add_column(heading, justify="right" if heading in ENGINES else "left")
    for name, told, stream in dict.fromkeys((m.query, m.told, m.stream) for m in found):
        of = {m.engine: m for m in found if (m.query, m.stream) == (name, stream)}
        table.add_row(f"{name} {told}", stream, *(f"{of[e].cpu:.3g} ({of[e].wall:.3g})" for e in ENGINES))
    console.print(table)
    console.print(
        f"Million tuples per second of CPU time of all threads (of time that passed), the best of {_ROUNDS} "
        f"runs after a first one. {tuples:,} tuples in memory, read at once. Results are checked."
    )


def _time(
    name: str, ask: Callable[[], pa.Table], wanted: tuple[float, float], rounds: int
) -> tuple[float, float]:
    best_cpu = best_wall = float("inf")
    for number in range(rounds + 1):
        cpu, wall = time.process_time(), time.perf_counter()
        results = ask()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        got = float(results.num_rows), float(pc.sum(results["total"]).as_py())
        if not all(isclose(g, w, rel_tol=1e-9) for g, w in zip(got, wanted, strict=True)):
            raise AssertionError(f"{name}: windows and their sum are {got}, not {wanted}")
        if number:
            best_cpu, best_wall = min(cpu, best_cpu), min(wall, best_wall)
    return best_cpu, best_wall


Prepared = dict[str, Callable[[], pa.Table]]


def _muntin(data: pa.Table, shape: Shape, asked: dict[str, Query]) -> Prepared:
    def run(query: Query) -> pa.Table:
        lag = f"{LATENESS} us" if shape.late else None
        operator = Operator(query, in_order=not shape.late, watermark_lag=lag)
        return pa.concat_tables([operator.process(data), operator.finish()], promote_options="permissive")

    return {name: partial(run, query) for name, query in asked.items()}


def _polars(data: pa.Table, shape: Shape, asked: dict[str, Query]) -> Prepared:
    import polars as pl

    frame: Any = pl.from_arrow(data)
    if not shape.late:  # told to polars as it is to Muntin
        frame = frame.with_columns(pl.col("at").set_sorted())
    found = polars_queries(["key"] if shape.keys else [])
    return {name: partial(found[name], frame) for name in asked}


def _duckdb(data: pa.Table, shape: Shape, asked: dict[str, Query]) -> Prepared:
    import duckdb

    connection = duckdb.connect()
    connection.register("given", data)
    # An hour later, so that no time is negative: `//` rounds towards zero.
    connection.execute(f'create table tuples as select *, epoch_us("at") + {3_600 * SECOND} us from given')
    found = duckdb_queries(["key"] if shape.keys else [])
    return {name: partial(found[name], connection) for name in asked}


_PREPARE: dict[str, Callable[[pa.Table, Shape, dict[str, Query]], Prepared]] = {
    "muntin": _muntin,
    "polars": _polars,
    "duckdb": _duckdb,
}
