"""`python -m benchmarks core` runs every workload, and lets no wrong result pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks.case import Case
from benchmarks.core import measure
from benchmarks.core_report import Report, run_core, show
from benchmarks.expected import expected, recomputed
from benchmarks.streams import Arrivals, Shape
from benchmarks.workloads import Workload, workloads
from muntin import aggregates as a
from muntin.dsl import windows
from muntin.errors import QueryError
from muntin.windows import count, session, sliding, tumbling

NAMES = [workload.name for workload in workloads()]
ONE_OF_EACH_KIND = ("M2", "W3 1 s", "W4", "W5", "W6", "W7")


def named(name: str) -> Workload:
    return next(workload for workload in workloads() if workload.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_runs_and_its_results_are_right(name: str) -> None:
    found = measure(Case.of(named(name), 10_000), batch=4_000, rounds=1)
    assert found.tuples == 10_000
    assert found.batch == (65_536 if name in ("M1", "M2") else 4_000)
    assert found.windows > 0
    assert found.slices > 0


def test_the_windows_of_a_small_stream_as_counted_by_hand() -> None:
    query = windows(two=tumbling("2 us"), three=sliding("3 us", "1 us"), gap=session("2 us"), n=count(2))
    wanted = expected(
        query.aggregate(total=a.sum("value"), mean=a.mean("value"), middle=a.median("value")).on("at"),
        Arrivals(np.array([5, 1, 0, 6]), np.array([40, 10, 2, 8])),
    )
    assert wanted.sums == {
        "two": (3.0, 60.0, 6.0 + 40.0 + 8.0, 54.0),  # [0, 2), [4, 6), [6, 8)
        "three": (8.0, 180.0, 2 + 6 + 6 + 10 + 40 + 24 + 24 + 8, 120.0),  # from -2, -1, 0, 1, 3, 4, 5, 6
        "gap": (2.0, 60.0, 6.0 + 24.0, 30.0),
        "n": (2.0, 60.0, 6.0 + 24.0, 30.0),
    }
    assert wanted.bounds().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_a_wrong_value_and_a_missing_window_fail(name: str) -> None:
    workload = named(name)
    arrivals = workload.shape.generate(10_000)
    wanted = expected(workload.query, arrivals)
    results = workload.query.run(pa.Table.from_batches(arrivals.batches(10_000))).to_arrow()
    columns = tuple(column for column, _ in workload.query.aggregates)
    wanted.check(name, recomputed([results], columns))
    for column in columns:
        values = results[column].to_numpy().copy()
        values[len(values) // 2] += 1
        wrong = results.set_column(results.column_names.index(column), column, pa.array(values))
        with pytest.raises(AssertionError, match=f"{name}: windows and sums of"):
            wanted.check(name, recomputed([wrong], columns))
    with pytest.raises(AssertionError, match=f"{name}: windows and sums of"):
        wanted.check(name, recomputed([results.slice(1)], columns))


def test_results_of_a_query_that_does_not_exist_fail() -> None:
    query = windows(one=tumbling("1 s")).aggregate(total=a.sum("value")).on("at")
    wanted = expected(query, Shape().generate(100))
    with pytest.raises(AssertionError, match="there are results of"):
        wanted.check("W", wanted.sums | {"two": (1.0, 1.0)})


def test_a_table_of_80_characters_cuts_no_number_off(capsys: pytest.CaptureFixture[str]) -> None:
    found = measure(Case.of(named("W6"), 5_000), 5_000, rounds=1)
    large = replace(found, workload="W1 N=1000", slices=697_868, windows=2_295_735, memory=1_234_000_000)
    show(Report([large], [], []), Console(width=80))
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "2,295,735" in shown


def test_w6_reads_twice_as_many_tuples() -> None:
    found = run_core(2_000, ("W6", "P1"), 2_000, Console(), alone=True)
    assert [(m.workload, m.tuples) for m in found.muntin] == [("W6", 4_000), ("P1", 2_000)]
    assert found.others == []


def test_an_unknown_workload_is_told() -> None:
    with pytest.raises(
        QueryError, match="no workload begins with W9; there are M1, M2, W1 to W7 and P1 to P5"
    ):
        run_core(1_000, ("W9",), 1_000, Console())
