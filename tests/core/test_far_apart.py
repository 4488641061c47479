"""A few tuples far apart: the work follows the tuples, not the time between them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.testing.engines import rows_of_table
from muntin.testing.rows import Row, compare
from muntin.timeline import Micros


class Tens(w.ContextFree):
    """Tumbling windows of ten, in Python; counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def next_edge(self, time: int) -> int:
        self.asked += 1
        return time - time % 10 + 10

    def containing(self, time: int) -> list[tuple[int, int]]:
        self.asked += 1
        return [(time - time % 10, time - time % 10 + 10)]


@pytest.mark.parametrize("lateness", [0, 10**15])
def test_windows_in_python_agree_with_the_built_in_ones(lateness: int) -> None:
    tens = Tens()
    rng = np.random.default_rng(4)
    queries = [
        mt.windows(x=window).aggregate(n=a.count(), total=a.sum("v")).on("t", allowed_lateness=lateness)
        for window in (tens, w.tumbling(10))
    ]
    own, built_in = (query.operator() for query in queries)

    def rows(results: mt.Results) -> list[Row]:
        return rows_of_table(results.to_arrow(nested=True), ())

    places = np.array([0, 10**3, 10**6, 10**12, 10**12 + 10**5])
    for _ in range(5):
        batch = {"t": rng.choice(places, 200) + rng.integers(0, 60, 200), "v": rng.integers(0, 9, 200)}
        own.process(batch)
        built_in.process(batch)
        watermark = int(rng.choice(places)) + 30
        assert not compare(*(rows(op.advance(watermark)) for op in (own, built_in)))
    assert not compare(*(rows(op.finish()) for op in (own, built_in)))
    assert tens.asked < 100_000


def test_days_of_distant_years() -> None:
    query = mt.windows(day=w.calendar("day", "Europe/Berlin")).aggregate(n=a.count()).on("t")
    times = [dt.datetime(2024, 7, 1, 12), dt.datetime(9000, 1, 1, 12), dt.datetime(2024, 7, 1, 23)]
    starts = [row["window"]["start"] for row in query.run({"t": times}).to_pylist()]
    assert starts == [
        dt.datetime(2024, 6, 30, 22),
        dt.datetime(2024, 7, 1, 22),
        dt.datetime(8999, 12, 31, 23),
    ]


@pytest.mark.parametrize("bad", ["fail", "skip"])
def test_calendar_windows_hold_every_time(bad: Any) -> None:
    query = mt.windows(m=w.calendar("month", "Europe/Berlin")).aggregate(n=a.count()).on("t", bad=bad)
    op = query.operator()
    near = [dt.datetime(2020, 1, 5), dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1)]
    op.process(pa.table({"t": pa.array(near, pa.timestamp("us"))}))
    op.process({"t": dt.datetime(9999, 12, 31, 23)})
    assert op.advance(dt.datetime(2019, 1, 1))["n"].to_pylist() == [1]
    op.process(pa.table({"t": pa.array([2**62, -(2**62)], pa.timestamp("us"))}))
    assert op.advance(dt.datetime(2021, 1, 1))["n"].to_pylist() == [1]
    assert op.stats().late == {"m": 1}
    assert op.advance(dt.datetime(9999, 12, 31)).num_rows == 0
    assert op.advance(Micros(2**62))["n"].to_pylist() == [1, 1]  # 23 o'clock is the year 10000 in Berlin
    assert op.finish()["n"].to_pylist() == [1]


def test_a_calendar_window_that_comes_later_finds_tuples_of_any_year() -> None:
    op = mt.windows(day=w.tumbling("1 day")).aggregate(n=a.count()).on("t").operator()
    op.process({"t": [dt.datetime(9999, 12, 31, 12), dt.datetime(1, 1, 1), dt.datetime(2020, 5, 5)]})
    op.add(month=w.calendar("month"))
    op.process({"t": [dt.datetime(9999, 12, 30)]})
    found = op.finish()
    assert found["n"].filter(pc.equal(found["window_name"], "month")).to_pylist() == [1, 1, 2]


def test_the_watermark_follows_a_tuple_at_the_end_of_the_calendar() -> None:
    now = [0.0]
    query = mt.windows(y=w.calendar("year")).aggregate(n=a.count())
    query = query.on("t", idle_after="1 second", max_ahead="4000000 days")
    op = query.operator(watermark_lag="1 hour", clock=lambda: now[0])
    emitted = [op.process({"t": dt.datetime(year, 12, 31)}).num_rows for year in (1, 2020, 9999)]
    assert emitted == [0, 1, 1]
    now[0] = 2.0
    assert op.poll()["n"].to_pylist() == [1]
    assert op.finish().num_rows == 0


@pytest.mark.parametrize("window", [Tens(), w.calendar("day")], ids=["tens", "day"])
def test_tuples_spread_evenly_over_many_edges(window: Any) -> None:
    """No gap between them is large, and still there are far more edges than tuples."""
    between = 100_000 if isinstance(window, Tens) else 13 * 86_400_000_000
    times = pa.array(np.arange(1500) * between)
    if not isinstance(window, Tens):
        times = times.cast(pa.timestamp("us"))
    found = mt.windows(x=window).aggregate(n=a.count()).on("t").run({"t": times})
    assert found["n"].to_pylist() == [1] * 1500


def test_the_two_ends_of_time() -> None:
    query = mt.windows(x=w.calendar("day")).aggregate(n=a.count()).on("t")
    assert query.run({"t": pa.array([2**62, -(2**62)], pa.timestamp("us"))})["n"].to_pylist() == [1, 1]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "windows",
    [
        {"x": w.tumbling(2**60)},
        {"x": w.tumbling(2**60), "y": w.sliding(3 * 2**58, 2**59)},
        {"x": w.tumbling(2**60, offset=1), "y": w.tumbling(2**60, offset=7)},
        {"x": w.tumbling(10)},
    ],
)
def test_windows_too_far_apart_for_a_number_come_in_order(windows: dict[str, Any], threads: int) -> None:
    query = mt.windows(**windows).aggregate(total=a.sum("v")).on("t")
    tuples = {2**62: 1, -(2**62): 10, 0: 100, 5: 1000}
    rows = query.run({"t": [*tuples], "v": [*tuples.values()]}, threads=threads).to_pylist()
    places = [(row["window"]["end"], row["window"]["start"], row["window_name"]) for row in rows]
    assert places == sorted(places)
    for row in rows:
        start, end = row["window"]["start"], row["window"]["end"]
        assert row["total"] == sum(v for t, v in tuples.items() if start <= t < end)
    assert {row["window_name"] for row in rows} == set(windows)
