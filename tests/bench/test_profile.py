"""`python -m benchmarks profile`: the steps add up to the whole, and the engine is left as it was."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from benchmarks import profile as profiling
from benchmarks.__main__ import app
from benchmarks.expected import Expected
from benchmarks.profile import REST, profile
from benchmarks.workloads import chosen
from muntin.slicing.partials import PartialSet

ONE_CALL = "cut, aggregate, merge, list and combine in one compiled call"
CELLS = "find each tuple's cell of the time line"
BEGINS = "find where slices begin, in order"
KEPT = "keep tuples, sort and cut them"


@pytest.mark.parametrize(
    ("name", "has", "has_not"),
    [
        ("W2 N=20", CELLS, BEGINS),
        ("W1 N=10", ONE_CALL, BEGINS),
        ("P5", BEGINS, CELLS),
        ("W4", KEPT, CELLS),
        ("W6", "number the keys", KEPT),
    ],
)
def test_steps_add_up_to_the_whole(name: str, has: str, has_not: str) -> None:
    lift = PartialSet.lift
    found = profile(chosen((name,))[0], 50_000, batch=10_000, rounds=2)
    assert found.tuples == (100_000 if name == "W6" else 50_000)
    assert sum(found.steps.values()) == pytest.approx(found.whole)
    assert all(ns >= 0 for ns in found.steps.values())
    assert found.steps[has] > 0
    assert has_not not in found.steps
    assert 0 < found.steps[REST] < found.whole
    assert PartialSet.lift is lift


def test_a_step_inside_of_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 4.0, 9.0])
    monkeypatch.setattr(profiling.time, "process_time", lambda: next(now))

    class Engine:
        def outer(self) -> None:
            self.inner()

        def inner(self) -> None:
            pass

    monkeypatch.setattr(profiling, "_steps", lambda: [("out", Engine, "outer"), ("in", Engine, "inner")])
    with profiling._clocks() as spent:
        Engine().outer()
    assert spent == {"out": 6.0, "in": 3.0}


def test_results_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    monkeypatch.setattr(Expected, "check", lambda self, name, sums: checked.append((name, sums == self.sums)))
    profile(chosen(("W2 N=1",))[0], 5_000, rounds=2)
    assert checked == [("W2 N=1", True)] * 3


def test_the_command_prints_a_table_markdown_and_json() -> None:
    def run(*arguments: str, tuples: int = 5_000) -> str:
        command = ["profile", *arguments, "--tuples", str(tuples)]
        done = CliRunner().invoke(app, command, env={"COLUMNS": "100"})
        assert done.exit_code == 0, done.output
        return done.stdout

    (found,) = json.loads(run("--json"))
    assert (found["workload"], found["tuples"]) == ("W2 N=20", 5_000)
    lines = run("W3", "P1", "--markdown").splitlines()
    assert lines[0] == "| step | W3 1 s | W3 100 ms | P1 |"
    assert lines[-1].startswith("| all |")
    assert CELLS in run(tuples=20_000)  # more than the compiled small step takes
    assert CliRunner().invoke(app, ["profile", "W9"]).exit_code == 2
