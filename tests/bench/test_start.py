"""`python -m benchmarks start`: fresh processes, first and warm."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from benchmarks import start
from benchmarks.__main__ import app


def test_a_case_is_measured_twice_in_fresh_processes() -> None:
    first, warm = start.measure_start("an empty process")
    assert (first.run, warm.run) == ("first", "warm")
    assert first.cpu > 0
    assert 0 < first.import_ms < 1000 * first.cpu
    assert (first.compiled, first.numba) == (0, False)
    assert first.megabytes > 1


def test_a_case_that_fails_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(start.CASES, "broken", "raise ValueError('broken')")
    with pytest.raises(RuntimeError, match="broken failed"):
        start.measure_start("broken")


def test_the_command_prints_json_and_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = start.StartMeasurement("case", "first", 1.5, 20.0, 3, 99.0, True)
    monkeypatch.setattr(start, "measure_start", lambda case: [measured])
    found = json.loads(CliRunner().invoke(app, ["start", "--json"]).output)
    assert found[0] == {
        "case": "case", "run": "first", "cpu": 1.5, "import_ms": 20.0, "compiled": 3, "megabytes": 99.0,
        "numba": True,
    }  # fmt: skip
    shown = CliRunner().invoke(app, ["start"], env={"COLUMNS": "120"}).output
    assert "functions compiled" in shown
    assert "99" in shown
