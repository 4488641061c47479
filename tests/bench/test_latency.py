"""`python -m benchmarks latency`: it measures what it says, and finds wrong results."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benchmarks import latency
from benchmarks.__main__ import app
from muntin.planning.plan import STORES
from muntin.slicing.emission.results import ResultShape


@pytest.mark.parametrize("store", STORES)
def test_windows_of_every_store_are_checked(store: str) -> None:
    found = latency.measure_latency("sum of integers", store, 20, rounds=3)
    assert (found.store, found.slices) == (store, 20)
    assert 0 < found.best <= found.median


def test_steps_are_checked() -> None:
    found = list(latency.measure_steps(7, 1_200))
    assert [m.tuples for m in found] == [7, 7]
    assert all(m.rate == pytest.approx(7 / m.mean) for m in found)


def test_a_wrong_result_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(make: Any) -> Any:
        def wrong(self: ResultShape, *arguments: Any, **named: Any) -> pa.Table:
            found = make(self, *arguments, **named)
            if found is None:  # as no message can be made
                return None
            name = "value" if "value" in found.column_names else "total"
            at = found.column_names.index(name)
            return found.set_column(at, name, pa.array([v + 1 for v in found[name].to_pylist()], pa.int64()))

        return wrong

    monkeypatch.setattr(ResultShape, "table", spoilt(ResultShape.table))
    monkeypatch.setattr(ResultShape, "first_rows", spoilt(ResultShape.first_rows))
    monkeypatch.setattr(ResultShape, "in_one_message", spoilt(ResultShape.in_one_message))
    with pytest.raises(AssertionError, match=r"lazy: \[920\] at 11, not \[919\]"):
        latency.measure_latency("max", "lazy", 10, rounds=2)
    with pytest.raises(AssertionError, match="windows and sums of t1"):
        list(latency.measure_steps(50, 200))


def test_the_command_prints_json_and_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "STEPS", (10,))
    records = latency.StepMeasurement("records", 2_000, 10, 5.0, 5.0)
    monkeypatch.setattr(latency, "measure_records", lambda: records)
    found = json.loads(CliRunner().invoke(app, ["latency", "--slices", "3", "--json"]).output)
    assert {(m["store"], m["slices"]) for m in found["latency"]} == {(store, 3) for store in STORES}
    assert [m["tuples"] for m in found["steps"]] == [10] * 5
    shown = CliRunner().invoke(app, ["latency", "--slices", "3"], env={"COLUMNS": "120"}).output
    assert "3 slices" in shown
    assert "records" in shown
