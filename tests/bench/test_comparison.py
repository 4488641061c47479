"""polars, DuckDB and the techniques of the papers answer what they claim, and no wrong answer passes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks import comparison
from benchmarks.baselines.tuple_techniques import AggregateBuckets
from benchmarks.case import Ask, Case
from benchmarks.comparison import ENGINES, PEERS, answering, compare, missing, tuples_for
from benchmarks.core_report import run_core
from benchmarks.duckdb_engine import ask_duckdb
from benchmarks.expected import expected
from benchmarks.polars_engine import ask_polars
from benchmarks.streams import Arrivals, Shape
from benchmarks.technique_engine import TECHNIQUES, ask_technique
from benchmarks.workloads import Workload, chosen, workloads
from muntin import aggregates as a
from muntin.dsl import Query, windows
from muntin.windows import count, session, sliding, threshold, tumbling

pytest.importorskip("polars")
pytest.importorskip("duckdb")

IN_ORDER = {"M1", "W1 N=1", "W1 N=10", "W1 N=100", "W1 N=1000", "W3 1 s", "W3 100 ms", "P1", "P2", "P3"}
WITHOUT_SLICES = IN_ORDER | {"M2", "W2 N=1", "W2 N=20", "W2 N=100", "W2 N=1000", "W7", "P4"}
CLAIMED = {
    "polars": {workload.name for workload in workloads()},
    "DuckDB": {workload.name for workload in workloads()},
    "tuple buffer": WITHOUT_SLICES | {"W4"},
    "tuple buckets": WITHOUT_SLICES,
    "aggregate buckets": WITHOUT_SLICES,
    "aggregate tree": WITHOUT_SLICES,
    "Panes": IN_ORDER,
    "Pairs": IN_ORDER,
    "Cutty": IN_ORDER,
}
FEW = 6_000
"""Tuples: enough for windows of 1,000 of them, and for three seconds, of which two are late."""


def one(name: str) -> Workload:
    (found,) = chosen((name,))
    return found


def asked(engine: str, case: Case) -> Ask:
    return PEERS[engine](case) if engine in PEERS else ask_technique(TECHNIQUES[engine], case, 1_000)


def test_every_engine_claims_what_it_can_express() -> None:
    found = {engine: {w.name for w in workloads() if engine in answering(w)} for engine in ENGINES}
    assert found == CLAIMED


@pytest.mark.parametrize("name", [workload.name for workload in workloads()])
def test_all_engines_give_the_windows_and_sums_of_the_recomputation(name: str) -> None:
    case = Case.of(one(name), FEW)
    found = list(compare(case, batch=2_500, rounds=1))  # which checks each run
    assert [c.engine for c in found] == answering(case.workload)
    assert {c.tuples for c in found} == {FEW}
    assert all(c.cpu > 0 and c.wall > 0 for c in found)
    assert all((c.combines is None) == (c.batch is None) == (c.engine in PEERS) for c in found)
    assert {c.batch for c in found} - {None} <= {65_536 if name in ("M1", "M2") else 2_500}


@pytest.mark.parametrize("keys", [0, 3])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("engine", [ask_polars, ask_duckdb])
def test_peers_answer_windows_over_pauses_ties_and_times_before_the_epoch(
    engine: Any, late: bool, keys: int
) -> None:
    query = windows(
        t=tumbling("700 ms"), s=sliding("2100 ms", "700 ms"), g=session("300 ms"), h=session("2 s")
    )
    query = query.aggregate(total=a.sum("value"), mean=a.mean("value")).on("at")
    shape = Shape(late=late, keys=keys, per_second=20, pauses=True)
    case = Case.of(Workload("own", "", query.by("key") if keys else query, shape), 2_000)
    ask = engine(case)
    assert case.wanted.sums["g"][0] >= 5
    case.wanted.check("own", ask.sums(ask.run()))


@pytest.mark.parametrize("engine", [ask_polars, ask_duckdb])
def test_counts_of_tied_tuples_follow_their_arrival(engine: Any) -> None:
    query = windows(c=count(3)).aggregate(total=a.sum("value"), middle=a.median("value")).on("at")
    arrivals = Shape(late=True).generate(1_000)
    tied = Arrivals(arrivals.time // 100_000, arrivals.value)
    assert len(np.unique(tied.time)) < 30
    case = Case(Workload("ties", "", query, Shape(late=True)), tied, expected(query, tied))
    assert case.wanted.sums["c"][0] == 333
    ask = engine(case)
    case.wanted.check("ties", ask.sums(ask.run()))


@pytest.mark.parametrize("engine", [ask_polars, ask_duckdb])
@pytest.mark.parametrize(
    "query",
    [
        windows(w=threshold("value > 3")).aggregate(total=a.sum("value")).on("at"),
        windows(w=sliding("10 s", "4 s")).aggregate(total=a.sum("value")).on("at"),
        windows(w=sliding("10 s", "5 s")).aggregate(total=a.median("value")).on("at"),
    ],
    ids=["threshold", "uneven", "sliding median"],
)
def test_what_a_peer_has_no_statement_for_is_told(engine: Any, query: Query) -> None:
    case = Case.of(one("P1"), 100)
    other = Case(Workload("other", "", query, Shape(late=True)), case.arrivals, case.wanted)
    with pytest.raises(NotImplementedError):
        engine(other).run()


def wrong_value(results: Any) -> Any:
    """One more in the first result that there is."""
    if isinstance(results, dict):  # tables of DuckDB
        name, table = next(iter(results.items()))
        at = table.column_names.index("total")
        values = [v + (not i) for i, v in enumerate(table["total"].to_pylist())]
        return results | {name: table.set_column(at, "total", pa.array(values))}
    if isinstance(results, tuple):  # sums of a technique
        next(part for part in results[0] if len(part.total)).total[0] += 1
        return results
    return [results[0].with_columns(results[0]["total"] + 1), *results[1:]]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wrong_value_ends_the_benchmark(engine: str) -> None:
    case = Case.of(one("W1 N=10"), FEW)
    ask = asked(engine, case)
    wrong = Ask(lambda: wrong_value(ask.run()), ask.sums, ask.combines)
    with pytest.raises(AssertionError, match=f"W1 N=10, {engine}: windows and sums of t1000 are"):
        comparison._measure(engine, case, None, wrong, rounds=1)


@pytest.mark.parametrize("engine", list(PEERS))
def test_a_window_that_a_peer_leaves_out_ends_the_benchmark(engine: str) -> None:
    case = Case.of(one("P1"), 100_000)
    ask = asked(engine, case)

    def all_but_one() -> Any:
        found = ask.run()
        if isinstance(found, dict):
            return {"w": found["w"].slice(1)}
        return [found[0].slice(1)]

    with pytest.raises(AssertionError, match=f"P1, {engine}: windows and sums of w are"):
        comparison._measure(engine, case, None, Ask(all_but_one, ask.sums), rounds=1)


def test_a_wrong_technique_ends_the_whole_command(monkeypatch: pytest.MonkeyPatch) -> None:
    right = AggregateBuckets._totals
    monkeypatch.setattr(AggregateBuckets, "_totals", lambda *given: right(*given) + 1)
    with pytest.raises(AssertionError, match="W2 N=20, aggregate buckets: windows and sums of"):
        run_core(FEW, ("W2 N=20",), FEW, Console())


def test_buckets_of_tuples_take_batches_that_fit_into_memory() -> None:
    case = Case.of(one("P4"), 70_000)
    found = {c.engine: c.batch for c in compare(case, batch=70_000, rounds=1)}
    assert (found["tuple buckets"], found["tuple buffer"]) == (65_536, 70_000)


def test_long_workloads_give_others_fewer_tuples() -> None:
    many = 4_194_304
    assert tuples_for("DuckDB", one("W2 N=20"), many) == many
    assert tuples_for("DuckDB", one("W3 100 ms"), many) == many
    assert tuples_for("tuple buffer", one("W3 100 ms"), many) == 393_216
    assert tuples_for("polars", one("W7"), many) == 1_310_720
    assert tuples_for("polars", one("W7"), 1_000) == 1_000


@pytest.mark.parametrize("absent", [["polars"], ["duckdb"], ["polars", "duckdb"]])
def test_a_peer_that_is_not_installed_is_told_with_the_cure(
    absent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in absent:
        monkeypatch.setitem(sys.modules, name, None)
    report = run_core(2_000, ("P4 keys",), 2_000, Console())
    assert [c.engine.lower() for c in report.others] == [
        name for name in ("polars", "duckdb") if name not in absent
    ]
    assert len(report.notes) == len(missing()) == len(absent)
    assert all(note.endswith(': pip install ".[bench]"') for note in report.notes)
