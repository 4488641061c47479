"""`python -m benchmarks threads`: the time that passes for `run(table)` on one thread and on several.

The windows are tumbling 10 s and sliding 60 s by 10 s, or counts; a fifth of the tuples are up to 2 s late.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.streams import PER_SECOND, Shape
from muntin import aggregates as a
from muntin.dsl import Query, windows
from muntin.windows import count, sliding, tumbling
from muntin.windows.base import Window

__all__ = ["Case", "ThreadsMeasurement", "as_markdown", "cases", "check", "measure_threads", "run_threads"]

TUPLES = 16_000_000
ROUNDS = 7
_TIME: dict[str, Window] = {"ten": tumbling("10 s"), "sixty": sliding("60 s", "10 s")}
_COUNTS: dict[str, Window] = {"ten": tumbling("10 s"), "hundred": count(100)}
_SUMS: dict[str, Any] = {"total": a.sum("value"), "mean": a.mean("value")}


@dataclass(frozen=True, slots=True)
class Case:
    """A query over a table."""

    keys: int
    query: Query
    told: str = ""
    """What it has that the others have not."""
    part: int = 1
    """It reads the tuples that are asked for, divided by this number."""

    def table(self, tuples: int) -> pa.Table:
        """Its tuples. Their values are no whole numbers: sums show the order of additions."""
        arrivals = Shape(late=True, keys=self.keys).generate(tuples // self.part)
        table = pa.Table.from_batches(arrivals.batches(len(arrivals)))
        return table.set_column(1, "value", pa.array(arrivals.value / 7))


@dataclass(frozen=True, slots=True)
class ThreadsMeasurement:
    """One query over one table, in seconds that passed.

    >>> found = ThreadsMeasurement("median", 1_000_000, 1_000, 105_664, 2, one=0.25, several=0.125)
    >>> found.name, found.ratio
    ('1,000,000, 1,000, median', 2.0)
    """

    told: str
    tuples: int
    keys: int
    windows: int
    """How many came out."""
    threads: int
    one: float
    """With one thread, the best of all rounds."""
    several: float
    """With `threads` threads, the best of all rounds."""

    @property
    def name(self) -> str:
        """Tuples, keys and what else is to be said."""
        return ", ".join([f"{self.tuples:,}", f"{self.keys:,}", *filter(None, [self.told])])

    @property
    def ratio(self) -> float:
        """How many times as long one thread takes."""
        return self.one / self.several


def cases() -> list[Case]:
    """In the order of the table: as large as threads are for, and smaller ones of a thousand keys.

    >>> [(case.keys, TUPLES // case.part) for case in cases()[:4]]
    [(100, 16000000), (1000, 16000000), (10000, 8000000), (100000, 4000000)]
    """
    many = ((100, 1), (1_000, 1), (10_000, 2), (100_000, 4))
    sums = [Case(keys, _query(_TIME, _SUMS), part=part) for keys, part in many]
    median = Case(1_000, _query(_TIME, {"middle": a.median("value")}), "median", part=4)
    counts = Case(1_000, _query(_COUNTS, _SUMS), "with count windows of 100", part=4)
    smaller = [Case(1_000, _query(_TIME, _SUMS), part=part) for part in (4, 16)]
    return [*sums, median, counts, *smaller]


def _query(named: dict[str, Window], results: dict[str, Any]) -> Query:
    return windows(**named).aggregate(**results).by("key").on("at")


def measure_threads(tuples: int = TUPLES, threads: int = 2, rounds: int = ROUNDS) -> list[ThreadsMeasurement]:
    """All cases; every result of every run must be the same table.

    Each round has all of them, so that a moment in which the machine has other work meets none alone.
    """
    chosen = cases()
    tables = [case.table(tuples) for case in chosen]
    # They stay in memory while the others are timed, so that all find the same.
    wanted = [case.query.run(table) for case, table in zip(chosen, tables, strict=True)]
    best = [{1: float("inf"), threads: float("inf")} for _ in chosen]
    for number in range(rounds + 1):
        for case, table, expected, seconds in zip(chosen, tables, wanted, best, strict=True):
            for n in seconds:
                started = time.perf_counter()
                found = case.query.run(table, threads=n)
                passed = time.perf_counter() - started
                check(f"{case.keys:,} keys, {n} threads", expected, found)
                del found  # before the next run needs its memory
                if number:  # the first round compiles
                    seconds[n] = min(seconds[n], passed)
    return [
        ThreadsMeasurement(
            case.told, len(table), case.keys, len(results), threads, seconds[1], seconds[threads]
        )
        for case, table, results, seconds in zip(chosen, tables, wanted, best, strict=True)
    ]


def check(name: str, wanted: pa.Table, found: pa.Table) -> None:
    """Raise unless two tables are the same: their columns, their rows, and the order of these.

    >>> check("2 threads", pa.table({"total": [0.5, 1.5]}), pa.table({"total": [1.5, 0.5]}))
    Traceback (most recent call last):
    AssertionError: 2 threads: total is not what one thread gives
    """
    if found.schema != wanted.schema:
        raise AssertionError(f"{name}: columns are {found.schema}, not {wanted.schema}")
    if len(found) != len(wanted):
        raise AssertionError(f"{name}: {len(found):,} windows, not {len(wanted):,}")
    differ = [column for column in wanted.column_names if not found[column].equals(wanted[column])]
    if differ:
        raise AssertionError(f"{name}: {', '.join(differ)} is not what one thread gives")


def run_threads(tuples: int, threads: int, form: str, console: Console) -> None:
    """What the command line calls; the form is `table`, `json` or `markdown`."""
    found = measure_threads(tuples, threads)
    if form == "json":
        console.print_json(json.dumps([asdict(m) | {"ratio": m.ratio} for m in found]))
    elif form == "markdown":
        console.print(as_markdown(found), highlight=False, markup=False, soft_wrap=True)
    else:
        console.print(_table(found))
        console.print(
            f"Time that passed, the best of {ROUNDS} rounds after a first one. {PER_SECOND:,} tuples per "
            "second of event time, 20% late. The results of all runs were the same."
        )


def as_markdown(found: Sequence[ThreadsMeasurement]) -> str:
    """A table for the documentation.

    >>> print(as_markdown([ThreadsMeasurement("", 4_000_000, 100, 40_696, 2, 0.06, 0.04)]))
    | tuples, keys | windows out | 1 thread, s | 2 threads, s | ratio |
    |---|---:|---:|---:|---:|
    | 4,000,000, 100 | 40,696 | 0.060 | 0.040 | 1.5 |
    """
    headings = _headings(found)
    rule = "|---|" + "---:|" * (len(headings) - 1)
    rows = [f"| {' | '.join(_cells(m))} |" for m in found]
    return "\n".join([f"| {' | '.join(headings)} |", rule, *rows])


def _table(found: Sequence[ThreadsMeasurement]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for number, heading in enumerate(_headings(found)):
        table.add_column(heading, justify="right" if number else "left")
    for m in found:
        table.add_row(*_cells(m))
    return table


def _headings(found: Sequence[ThreadsMeasurement]) -> tuple[str, ...]:
    return "tuples, keys", "windows out", "1 thread, s", f"{found[0].threads} threads, s", "ratio"


def _cells(m: ThreadsMeasurement) -> tuple[str, ...]:
    return m.name, f"{m.windows:,}", f"{m.one:.3f}", f"{m.several:.3f}", f"{m.ratio:.1f}"
