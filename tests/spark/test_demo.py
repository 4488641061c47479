"""The demonstration in its short form: made-up flights as a stream, beside the embedded engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import muntin as mt
from muntin.demo.flights import in_order_of_arrival
from muntin.demo.late_story import LateStory
from muntin.demo.query import ASKED, ten_windows
from muntin.demo.show import Summary, newest, results_table
from muntin.demo.stream import SETTINGS, Step, play
from muntin.timeline import Micros

DELAY = 10 * 60_000_000
"""The watermark's, in microseconds."""


def flights(rows: int = 1_500) -> pa.Table:
    """Made up, as the package has them, no two of a carrier at one time."""
    rng = np.random.default_rng(13)
    minutes = np.sort(rng.choice(6 * 24 * 60, rows, replace=False))
    start = np.datetime64("2013-02-01T00:00:00", "s")
    delay = rng.exponential(60, rows).astype(np.int64) - 10
    table = {
        "time_hour": pa.array(start + minutes // 60 * np.timedelta64(1, "h"), pa.timestamp("s", "UTC")),
        "minute": minutes % 60,
        "dep_delay": pa.array(delay, mask=rng.random(rows) < 0.05),
        "carrier": rng.choice(["UA", "B6"], rows),
        "origin": rng.choice(["JFK", "EWR"], rows),
        "dest": rng.choice(["SFO", "BOS", "ORD"], rows),
        "distance": rng.integers(100, 3_000, rows),
    }
    return in_order_of_arrival(pa.table(table))


def rows_of(table: pa.Table | mt.Results) -> list[dict[str, object]]:
    def rounded(row: dict[str, object]) -> dict[str, object]:
        return {name: round(value, 9) if isinstance(value, float) else value for name, value in row.items()}

    return sorted(map(rounded, table.to_pylist()), key=repr)


@pytest.fixture(scope="module")
def steps(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    name = "spark.sql.parquet.outputTimestampType"
    spark.conf.set(name, SETTINGS[name])
    folder: Path = tmp_path_factory.mktemp("demo") / "build"
    return list(play(spark, flights(), ten_windows(), folder, rows=400))


def test_the_stream_gives_what_the_embedded_engine_gives(steps: list[Step]) -> None:
    table = flights()
    times = table["scheduled"].cast(pa.int64()).to_numpy()
    operator = ten_windows().operator()
    late, newest_time = [], None
    for number, step in enumerate(steps):
        some = slice(400 * number, 400 * (number + 1))
        behind = 0 if newest_time is None else int(np.sum(times[some] < newest_time - DELAY))
        late.append(behind)
        operator.process(table.slice(400 * number, 400))
        newest_time = max(times[: some.stop])
        expected = operator.advance(Micros(int(newest_time) - DELAY))
        assert rows_of(step.results) == rows_of(expected)
    assert pa.concat_tables([step.flights for step in steps]) == table
    assert [len(step.late) for step in steps] == late
    kinds = {kind for step in steps for kind in step.results["kind"].to_pylist()}
    assert kinds == {"final", "update", "retract"}


def test_what_it_prints_fits_a_terminal(steps: list[Step]) -> None:
    summary = Summary()
    shown: dict[str, dict[str, object]] = {}
    for step in steps:
        summary.add(step)
        shown |= newest(step.results)
    assert shown.keys() == ASKED.keys()
    console = Console(width=80, record=True)
    console.print(results_table(shown), summary.table(), summary.saved())
    printed = console.export_text()
    assert "…" not in printed
    assert f"{sum(len(step.late) for step in steps):,}" in printed
    assert "updates" in printed


def test_the_work_of_the_stream_is_that_of_the_embedded_engine(steps: list[Step]) -> None:
    operator = ten_windows().operator()
    for step in steps:
        operator.process(step.flights)
        assert step.watermark is not None
        operator.advance(step.watermark)
    expected, found = operator.stats(), steps[-1].stats
    assert found.tuples == expected.tuples
    newest = sum(1 for time in flights()["scheduled"] if time.as_py() > steps[-1].watermark)
    assert expected.lifts == (len(flights()) - newest) * 9  # those beyond the watermark are not sliced yet
    # Which slices are split, and so aggregated again, depends on the key groups, a little.
    assert found.update_combines == pytest.approx(expected.update_combines, rel=0.05)
    assert found.merge_combines == pytest.approx(expected.merge_combines, rel=0.05)


def test_a_late_flight_is_shown_with_what_it_changes(steps: list[Step]) -> None:
    story = LateStory()
    for step in steps:
        story.add(step)
    best = story.best
    assert best is not None
    late = [row for step in steps for row in step.late.to_pylist()]
    assert all(flight in late for flight in best.flights)
    updates = [change for change in best.changes if change.row["kind"] == "update"]
    assert updates
    rows = [row for step in steps for row in step.results.to_pylist()]
    for change in updates:
        assert change.before in rows
        assert change.before is not None
        assert change.before["window"] == change.row["window"]
        assert change.row["flights"] > change.before["flights"]
        assert any(
            change.row["window"]["start"] <= flight["scheduled"] < change.row["window"]["end"]
            for flight in best.flights
        )
    console = Console(width=80, record=True)
    console.print(best.table())
    printed = console.export_text()
    assert best.told in printed
    assert "…" not in printed
    assert f"{updates[0].before['flights']}→{updates[0].row['flights']}" in printed  # type: ignore[index]


def test_without_java_the_cure_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(mt.MuntinError, match="Spark needs Java 17"):
        mt.spark.session()
