"""`python -m benchmarks flights`: it counts every flight, and notices where one is missing."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from benchmarks import flights
from benchmarks.__main__ import app
from muntin.demo.flights import load


def test_every_flight_is_counted_in_an_hour_or_late() -> None:
    found = flights.measure_flights(load().slice(0, 6_000), 2_000, rounds=1)
    assert (found.batch, found.rows > 3_000) == (2_000, True)
    assert found.flights_per_second > 0


def test_a_missing_flight_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = flights._steps
    some = load().slice(0, 4_000)
    monkeypatch.setattr(flights, "_steps", lambda table, batch: list(steps(table, batch))[:-1])
    with pytest.raises(AssertionError, match="flights in the windows of one hour, not"):
        flights.measure_flights(some, 2_000, rounds=1)


def test_the_command_prints_json_and_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    some = load().slice(0, 2_000)
    monkeypatch.setattr(flights, "load", lambda: some)
    found = json.loads(CliRunner().invoke(app, ["flights", "--batch", "1000", "--json"]).output)
    assert [m["batch"] for m in found] == [1_000]
    shown = CliRunner().invoke(app, ["flights", "--batch", "1000"], env={"COLUMNS": "120"}).output
    assert "flights per second" in shown
