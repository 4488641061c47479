"""Sessions with a gap of each tuple's own: types of gaps, unusable ones, silence, restored state."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.expressions import parse

START = dt.datetime(2024, 1, 1)


def query(gap: Any = "gap", **policies: Any) -> mt.Query:
    window = w.session(mt.col(gap) if isinstance(gap, str) else gap)
    return mt.windows(visit=window).aggregate(n=a.count()).on("t", **policies)


def edges(results: mt.Results) -> list[tuple[Any, Any, int]]:
    return [(row["window"]["start"], row["window"]["end"], row["n"]) for row in results.to_pylist()]


def after(seconds: float) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_gaps_are_durations_of_any_unit(unit: str) -> None:
    gaps = pa.array([2, 1], pa.duration("s")).cast(pa.duration(unit))
    found = query().run(pa.table({"t": [START, after(2)], "gap": gaps}))
    assert edges(found) == [(START, after(3), 2)]


def test_edges_are_as_fine_as_the_gaps() -> None:
    times = pa.array([START], pa.timestamp("s"))
    found = query().run(pa.table({"t": times, "gap": pa.array([1_500], pa.duration("ms"))}))
    assert edges(found) == [(START, after(1.5), 1)]
    found = query(parse("seconds(gap)")).run(pa.table({"t": times, "gap": [2]}))
    assert found.to_arrow(nested=True).schema.field("window").type.field("end").type == pa.timestamp("s")


@pytest.mark.parametrize(
    ("times", "gaps", "message"),
    [
        ([START], [5], 'durations, as the time column is a timestamp: got int64 in "gap"; .*seconds'),
        ([1], [dt.timedelta(1)], r'integers, as the time column is: got duration\[us\] in "gap"; cast it'),
        ([1], [0.5], 'integers, as the time column is: got double in "gap"'),
        ([START], ["5 seconds"], 'durations, as the time column is a timestamp: got string in "gap"'),
    ],
)
def test_a_gap_of_another_kind_than_time_is_refused(times: list[Any], gaps: list[Any], message: str) -> None:
    with pytest.raises(mt.MuntinError, match=message):
        query().run({"t": times, "gap": gaps})


def test_a_name_where_a_length_is_expected_says_how_to_write_a_column() -> None:
    with pytest.raises(mt.MuntinError, match=r'got "timeout"; if it is a column, write mt.col\("timeout"\)'):
        w.session("timeout")
    with pytest.raises(mt.MuntinError, match='gap must be a number on a measure: got "timeout"'):
        w.session(mt.col("timeout"), measure="km")


@pytest.mark.parametrize("gap", [None, 0, -3, 2**61])
def test_a_tuple_without_a_positive_gap_is_bad(gap: int | None) -> None:
    rows = [{"t": 1, "gap": 5}, {"t": 3, "gap": gap}, {"t": 5, "gap": 1}]
    with pytest.raises(mt.MuntinError, match='"gap" must be a positive length of time in every tuple: got'):
        query().run(rows)
    operator = query(bad="route").operator(schema={"gap": "int64"})
    operator.process(rows)
    assert edges(operator.finish()) == [(1, 6, 2)]
    assert operator.take_bad().select(["t", "gap"]).to_pylist() == [rows[1]]


def test_a_bad_record_is_an_error_of_the_call_that_brings_it() -> None:
    operator = query().operator(watermark_lag=5)
    operator.process({"t": 1, "gap": 5})
    with pytest.raises(mt.MuntinError, match="got null"):
        operator.process({"t": 2, "gap": None})
    operator.process({"t": 6, "gap": 1})
    assert edges(operator.finish()) == [(1, 7, 2)]


def test_silence_closes_a_session_however_far_it_reaches() -> None:
    now = [0.0]
    operator = query(idle_after="5 seconds").operator(clock=lambda: now[0])
    operator.process({"t": [1, 4], "gap": [1_000, 2]})
    assert edges(operator.poll()) == []
    now[0] = 6.0
    assert edges(operator.poll()) == [(1, 1_001, 2)]
    assert edges(operator.poll()) == []


def test_a_restored_operator_knows_how_far_a_session_reaches() -> None:
    operator = query().operator()
    operator.process({"t": [1, 4], "gap": [100, 2]})
    operator.advance(50)  # nothing of the tuples is stored but their slice
    operator = mt.Operator.restore(operator.snapshot())
    operator.process({"t": [60], "gap": [2]})
    assert edges(operator.finish()) == [(1, 101, 3)]


def test_slices_are_those_of_the_sessions() -> None:
    operator = query().operator()
    operator.process({"t": [*range(0, 1_000, 2), 5_000], "gap": [3] * 501})
    operator.advance(900)
    # Tuples at the watermark lie in a slice of their own: others of their time may follow.
    assert (operator.stats().slices, operator.stats().lifts) == (2, 451)
