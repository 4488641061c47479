"""`python -m benchmarks threads`: eight rows, and no result that differs passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benchmarks import threads
from benchmarks.__main__ import app
from benchmarks.threads import measure_threads
from muntin.slicing.operator import SlicingOperator

TUPLES = 20_000


def next_float(table: pa.Table) -> pa.Table:
    """The last bit of the last value differs."""
    name = "middle" if "middle" in table.column_names else "total"
    values = table[name].to_numpy().copy()
    values[-1] = np.nextafter(values[-1], np.inf)
    return table.set_column(table.column_names.index(name), name, pa.array(values))


MUTATIONS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "total is not what one thread gives": next_float,
    "is not what one thread gives": lambda table: table.take(np.arange(len(table))[::-1]),
    "windows, not": lambda table: table.slice(0, len(table) - 1),
    "columns are": lambda table: table.rename_columns([*table.column_names[:-1], "revision_"]),
}


def mutate(patch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table], after: int = 0) -> None:
    """Change the results of several threads, after a number of tables that are left as they are."""
    run, seen = SlicingOperator.process, 0

    def changed(self: SlicingOperator, *arguments: Any, **named: Any) -> pa.Table:
        nonlocal seen
        found = run(self, *arguments, **named)
        if self.parallel is None or not len(found):
            return found
        seen += 1
        return found if seen <= after else change(found)

    patch.setattr(SlicingOperator, "process", changed)


def test_there_are_eight_rows() -> None:
    found = measure_threads(TUPLES, threads=3, rounds=1)
    assert [(m.tuples, m.keys, m.told) for m in found] == [
        (TUPLES, 100, ""),
        (TUPLES, 1_000, ""),
        (TUPLES // 2, 10_000, ""),
        (TUPLES // 4, 100_000, ""),
        (TUPLES // 4, 1_000, "median"),
        (TUPLES // 4, 1_000, "with count windows of 100"),
        (TUPLES // 4, 1_000, ""),
        (TUPLES // 16, 1_000, ""),
    ]
    assert all(m.one > 0 and m.several > 0 and m.windows > 0 and m.threads == 3 for m in found)


@pytest.mark.parametrize("told", MUTATIONS)
def test_results_that_differ_end_the_benchmark(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch, MUTATIONS[told])
    with pytest.raises(AssertionError, match=f"100 keys, 2 threads: .*{told}"):
        measure_threads(TUPLES, rounds=1)


@pytest.mark.parametrize("case", range(8))
def test_every_case_is_checked_in_every_round(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = threads.cases()[case]
    monkeypatch.setattr(threads, "cases", lambda: [one])
    mutate(monkeypatch, next_float, after=2)  # the first of which is not timed
    with pytest.raises(AssertionError, match="is not what one thread gives"):
        measure_threads(TUPLES, rounds=2)


def test_sums_depend_on_the_order_of_additions() -> None:
    values = threads.cases()[0].table(TUPLES)["value"].to_numpy()
    assert np.cumsum(values)[-1] != np.cumsum(values[::-1])[-1]


def test_the_command_prints_json_markdown_and_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def few(tuples: int, threads: int) -> list[threads.ThreadsMeasurement]:
        asked.append((tuples, threads))
        return measure_threads(TUPLES, threads, rounds=1)

    monkeypatch.setattr(threads, "measure_threads", few)
    found = json.loads(CliRunner().invoke(app, ["threads", "--json"]).output)
    assert len(found) == 8
    assert all(m["ratio"] == pytest.approx(m["one"] / m["several"]) for m in found)
    lines = CliRunner().invoke(app, ["threads", "--markdown", "--threads", "3"]).output.splitlines()
    assert lines[0] == "| tuples, keys | windows out | 1 thread, s | 3 threads, s | ratio |"
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| 20,000, 100",
        "| 20,000, 1,000",
        "| 10,000, 10,000",
        "| 5,000, 100,000",
        "| 5,000, 1,000, median",
        "| 5,000, 1,000, with count windows of 100",
        "| 5,000, 1,000",
        "| 1,250, 1,000",
    ]
    shown = CliRunner().invoke(app, ["threads", "--tuples", "200000"], env={"COLUMNS": "120"}).output
    assert "5,000, 1,000, median" in shown
    assert asked == [(16_000_000, 2), (16_000_000, 3), (200_000, 2)]
