"""Tuples too far ahead of the clock are bad: one of them must not end a stream."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError

NOW = dt.datetime(2024, 5, 1, 12)
FAR = dt.datetime(2100, 1, 1)


class Clock:
    """Seconds since 1970 that pass only when a test says so; counts how often it is read."""

    def __init__(self) -> None:
        self.now = NOW.replace(tzinfo=dt.UTC).timestamp()
        self.read = 0

    def __call__(self) -> float:
        self.read += 1
        return self.now


def query(window: Any = None, **policies: Any) -> mt.Query:
    policies = {"bad": "route", "late": "route"} | policies
    return mt.windows(x=window or w.tumbling("1 minute")).aggregate(n=a.count()).on("ts", **policies)


def minutes(*numbers: float) -> list[dt.datetime]:
    return [NOW + dt.timedelta(minutes=number) for number in numbers]


def feed(op: Operator, times: list[dt.datetime], form: str) -> list[int]:
    """Give the tuples as one batch, in batches of one, or as records; the counts that come out."""
    if form == "batch":
        parts: list[Any] = [{"ts": pa.array(times, pa.timestamp("us"))}]
    elif form == "batches":
        parts = [pa.RecordBatch.from_pydict({"ts": pa.array([t], pa.timestamp("us"))}) for t in times]
    else:
        parts = [{"ts": t} for t in times]
    return [n for part in parts for n in op.process(part)["n"].to_pylist()]


FORMS = pytest.mark.parametrize("form", ["batch", "batches", "records"])


@FORMS
@pytest.mark.parametrize("setting", [{"watermark_lag": "10 seconds"}, {"in_order": True}])
def test_a_tuple_of_the_year_2100_does_not_end_a_stream(form: str, setting: dict[str, Any]) -> None:
    op = query().operator(**setting, clock=Clock())
    counts = feed(op, [*minutes(0, 0.5, 1), FAR, *minutes(1.5, 2, 3)], form)
    counts += op.finish()["n"].to_pylist()
    assert counts == [2, 2, 1, 1]
    assert op.take_late().num_rows == 0
    (bad,) = op.take_bad().to_pylist()
    assert bad["ts"] == FAR
    assert bad["reason"] == (
        'the column "ts" must not be more than 366 days ahead of the clock (2024-05-01T12:00:00+00:00): '
        "got 2100-01-01 00:00:00.000000"
    )
    assert op.stats().bad == 1


@FORMS
def test_where_advance_sets_the_watermark_there_is_no_limit(form: str) -> None:
    op = query().operator(clock=Clock())
    feed(op, [*minutes(0), FAR, *minutes(1)], form)
    assert op.finish()["n"].to_pylist() == [1, 1, 1]
    assert query().run({"ts": [NOW, dt.datetime(9999, 1, 1)]}).num_rows == 2


@FORMS
def test_a_limit_of_the_query_counts_everywhere(form: str) -> None:
    times = minutes(0, 61, 1, 60, 60.1)
    for setting in ({}, {"watermark_lag": "2 hours"}):
        op = query(max_ahead="1 hour").operator(**setting, clock=Clock())
        feed(op, times, form)
        assert op.finish()["n"].to_pylist() == [1, 1, 1]
        assert op.take_bad()["ts"].to_pylist() == minutes(61, 60.1)


def test_a_table_is_judged_by_the_clock_of_the_machine() -> None:
    now = dt.datetime.now(dt.UTC)
    table = {"ts": [now, now + dt.timedelta(days=2)]}
    assert query(max_ahead="1 day", bad="skip").run(table).num_rows == 1
    assert query(max_ahead="1 day", bad="skip").run(table, threads=2).num_rows == 1
    assert query(bad="skip").run(table).num_rows == 2


def test_a_record_is_judged_when_it_comes() -> None:
    clock = Clock()
    for watermark_lag in (None, "2 hours"):
        op = query(max_ahead="1 hour").operator(watermark_lag=watermark_lag, clock=clock)
        for time in minutes(0, 61):
            op.process({"ts": time})
        op.process(pa.RecordBatch.from_pydict({"ts": pa.array(minutes(62), pa.timestamp("us"))}))
        clock.now += 3_600
        assert op.finish()["n"].to_pylist() == [1]
        assert op.take_bad()["ts"].to_pylist() == minutes(61, 62)
        clock.now -= 3_600


def test_the_clock_moves_on() -> None:
    clock = Clock()
    op = query(max_ahead="1 hour").operator(watermark_lag="2 hours", clock=clock)
    op.process({"ts": NOW})
    op.process({"ts": minutes(90)[0]})
    clock.now += 3_600
    op.process({"ts": minutes(90)[0]})
    assert op.finish().num_rows == 2
    assert op.take_bad().num_rows == 1


def test_a_stream_that_was_silent_for_years_goes_on() -> None:
    op = query().operator(watermark_lag="10 seconds", clock=Clock())
    op.process({"ts": dt.datetime(1990, 1, 1)})
    assert op.process({"ts": NOW}).num_rows == 1
    assert op.finish().num_rows == 1
    assert op.take_bad().num_rows == 0


def test_the_clock_is_not_read_for_each_record() -> None:
    clock = Clock()
    op = query().operator(watermark_lag="10 seconds", clock=clock)
    arrivals = op._engine.arrivals
    reads = 0

    def read() -> float:
        nonlocal reads
        reads += 1
        return clock()

    arrivals.clock = read
    for i in range(1_000):
        op.process({"ts": NOW + dt.timedelta(seconds=i)})
    assert reads < 10


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_times_of_every_unit_and_zone(unit: str, zone: str | None) -> None:
    kind = pa.timestamp(unit, zone)
    batch = {"ts": pa.array([*minutes(0, 59, 61), None, FAR], pa.timestamp("us")).cast(pa.timestamp(unit))}
    if zone is not None:
        batch["ts"] = batch["ts"].view(kind)
    op = query(max_ahead="1 hour").operator(watermark_lag="2 hours", clock=Clock())
    op.process(batch)
    assert op.finish()["n"].to_pylist() == [1, 1]
    reasons = op.take_bad()["reason"].to_pylist()
    assert ["1 hour ahead of the clock" in reason for reason in reasons] == [True, False, True]


def test_the_error_says_the_rule_the_value_and_the_cure_and_the_stream_goes_on() -> None:
    op = query(bad="fail").operator(watermark_lag="10 seconds", clock=Clock())
    op.process({"ts": NOW})
    with pytest.raises(DataError) as error:
        op.process({"ts": [*minutes(1), FAR]})
    assert str(error.value) == (
        'the column "ts" must not be more than 366 days ahead of the clock (2024-05-01T12:00:00+00:00): got '
        "2100-01-01 00:00:00.000000 in row 1, {'ts': datetime.datetime(2100, 1, 1, 0, 0)} (1 of 2 tuples are "
        'bad); repair it, give .on() a longer max_ahead= if it is right, or choose bad="skip" or bad="route"'
    )
    with pytest.raises(DataError, match="ahead of the clock"):
        op.process({"ts": FAR})
    assert op.process({"ts": minutes(2)[0]})["n"].to_pylist() == [1]
    assert op.finish()["n"].to_pylist() == [1]


def test_a_long_duration_lifts_the_limit() -> None:
    op = query(max_ahead="1000000 days").operator(watermark_lag="10 seconds", clock=Clock())
    op.process({"ts": [NOW, FAR]})
    assert op.finish().num_rows == 1
    assert op.take_bad().num_rows == 0


def test_integers_have_no_clock() -> None:
    plain = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t")
    op = plain.operator(watermark_lag=5, clock=Clock())
    op.process({"t": [1, 2**60]})
    assert op.finish().num_rows == 1
    counting = mt.windows(x=w.count(2)).aggregate(n=a.count()).on("t", max_ahead="1 hour")
    with pytest.raises(QueryError, match=r'since integers have no clock: got "1 hour" for "t" \(int64\)'):
        counting.run({"t": [1, 2]})


def test_a_snapshot_keeps_the_limit_and_a_restored_operator_has_its_clock() -> None:
    op = query(max_ahead="1 hour").operator(watermark_lag="2 hours", clock=Clock())
    op.process({"ts": NOW})
    clock = Clock()
    again = Operator.restore(op.snapshot(), clock=clock)
    again.process({"ts": [*minutes(30, 90)]})
    assert again.take_bad()["ts"].to_pylist() == minutes(90)
    clock.now += 3_600
    again.process({"ts": minutes(90)[0]})
    assert again.finish()["n"].to_pylist() == [1, 1, 1]


def test_explain_says_the_limit_and_why() -> None:
    def line(explained: object) -> str:
        (found,) = (x for x in str(explained).splitlines() if "tuples from the future" in x)
        return found

    assert "if the watermark follows the data (watermark_lag)" in line(query().explain(verbose=True))
    assert "bad if more than 366 days ahead of the clock" in line(
        query().explain(in_order=True, verbose=True)
    )
    given = line(query(max_ahead="1 hour").explain(verbose=True))
    assert given.endswith("bad if more than 1 hour ahead of the clock, as max_ahead says")
    integers = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t")
    assert line(integers.explain(verbose=True)).endswith(
        "no limit, since an integer time column has no clock"
    )
    counting = mt.windows(x=w.count(2)).aggregate(n=a.count()).on("t")
    assert "no limit, since an integer" in line(counting.explain(schema={"t": "int64"}, verbose=True))
