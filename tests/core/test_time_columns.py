"""Every type of time: units, zones, integers, and times that are refused."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, MuntinError, QueryError
from muntin.timeline import Micros

MINUTE = [dt.datetime(2024, 5, 1, 12, 0, s) for s in (1, 30, 59)] + [dt.datetime(2024, 5, 1, 12, 1)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu", "+02:00"])
def test_timestamps_of_every_unit_and_zone(unit: str, zone: str | None) -> None:
    kind = pa.timestamp(unit, zone)
    times = pa.array(MINUTE, pa.timestamp("us", "UTC" if zone else None)).cast(kind)
    shape = (
        mt.windows(minute=w.tumbling("1 minute"), s=w.session("28 seconds")).aggregate(n=a.count()).on("ts")
    )
    table = shape.run(pa.table({"ts": times}))
    edges = table["window"].type
    assert edges.field("start").type == edges.field("end").type == kind
    assert table["window_start"].type == table["window_end"].type == kind
    found = {(row["window_name"], row["n"]) for row in table.to_pylist()}
    assert found == {("minute", 3), ("minute", 1), ("s", 1), ("s", 2)}
    minutes = table["window"].filter(pc.equal(table["window_name"], "minute")).combine_chunks()
    noon = pa.scalar(1_714_564_800, pa.int64()).cast(pa.timestamp("s", zone))
    assert pc.struct_field(minutes, "start").cast(pa.timestamp("s", zone))[0] == noon


def test_edges_finer_than_the_column_come_in_microseconds() -> None:
    shape = mt.windows(x=w.sliding("1 second", every="250 ms")).aggregate(n=a.count()).on("ts")
    table = shape.run({"ts": pa.array([1], pa.timestamp("s", "UTC"))})
    assert table["window_start"].type == pa.timestamp("us", "UTC")
    assert table.num_rows == 4


def test_nanoseconds_are_floored_also_before_the_epoch() -> None:
    shape = mt.windows(x=w.tumbling("1 second")).aggregate(n=a.count()).on("ts")
    table = shape.run({"ts": pa.array([-1, 0, 999_999_999], pa.timestamp("ns"))})
    assert table["n"].to_pylist() == [1, 2]


def test_nanoseconds_that_leave_no_room_for_edges_are_bad() -> None:
    far = pd.Series([pd.Timestamp.min, pd.Timestamp("2200-01-01"), pd.Timestamp.max])
    query = mt.windows(day=w.tumbling("1 day"), m=w.calendar("month")).aggregate(n=a.count())
    with pytest.raises(DataError, match=r'"ts" must lie between 1678-.* and 2261-.* in row 0'):
        query.on("ts").operator().process({"ts": pa.array(far)})
    op = query.on("ts", bad="skip").operator()
    op.process({"ts": pa.array(far)})
    found = op.finish()
    assert found["window_end"].type == pa.timestamp("ns")
    assert found["n"].to_pylist() == [1, 1]
    assert op.stats().bad == 2


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_signed_integers_of_every_width(kind: pa.DataType) -> None:
    table = (
        mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").run({"t": pa.array([-1, 0, 9, 10], kind)})
    )
    assert table["n"].to_pylist() == [1, 2, 1]
    assert table["window"].to_pylist()[0] == {"start": -10, "end": 0}
    assert table["window_start"].type == pa.int64()


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str)
def test_unsigned_integers_of_every_width(kind: pa.DataType) -> None:
    table = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").run({"t": pa.array([0, 9, 10], kind)})
    assert table["n"].to_pylist() == [2, 1]


def test_units_and_widths_may_change_from_batch_to_batch() -> None:
    op = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts").operator()
    for unit in ("us", "ms", "s", "ns"):
        op.process({"ts": pa.array(MINUTE, pa.timestamp("us")).cast(pa.timestamp(unit))})
    assert op.finish()["n"].to_pylist() == [12, 4]
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
    for kind in (pa.int64(), pa.int8(), pa.uint64()):
        op.process({"t": pa.array([1, 2], kind)})
    assert op.finish()["n"].to_pylist() == [6]


@pytest.mark.parametrize(
    "second",
    [
        pa.array([1], pa.int64()),
        pa.array([1], pa.timestamp("us", "UTC")),
        pa.array(["2024-01-01"]),
        pa.array([1.0]),
        pa.array([dt.date(2024, 1, 1)]),
    ],
    ids=lambda array: str(array.type),
)
def test_times_of_another_kind_are_refused(second: pa.Array) -> None:
    op = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts").operator()
    op.process({"ts": pa.array([1], pa.timestamp("us"))})
    with pytest.raises(DataError, match=r'"ts" must be of type timestamp\[us\] in every batch: got'):
        op.process({"ts": second})
    assert op.finish()["n"].to_pylist() == [1]


@pytest.mark.parametrize("wrong", [1.5, "12:00", True, dt.date(2024, 1, 1), b"1"], ids=str)
def test_what_is_no_time_is_refused(wrong: Any) -> None:
    for window, kinds in ((w.tumbling(10), "integers"), (w.count(2), "timestamps or integers")):
        shape = mt.windows(x=window).aggregate(n=a.count()).on("t")
        told = rf'the column "t" must hold {kinds}: got {re.escape(repr(wrong))} in row 0'
        with pytest.raises(DataError, match=told):
            shape.run({"t": [wrong, wrong]})
        with pytest.raises(DataError, match=r"the time column .*must be a timestamp or an integer: got"):
            shape.run({"t": pa.array([wrong])})


def test_a_text_for_a_time_names_the_cure() -> None:
    with pytest.raises(DataError, match=r"repair it, turn texts into times with datetime.fromisoformat, or"):
        mt.windows(x=w.tumbling("1 hour")).aggregate(n=a.count()).on("t").run([{"t": "2024-05-01T12:00"}])
    with pytest.raises(DataError, match=r'times with datetime.strptime\(text, "%m/%d/%Y %H:%M"\)'):
        mt.windows(x=w.tumbling("1 hour")).aggregate(n=a.count()).on("t").run([{"t": "05/31/2024 12:00"}])


def test_lengths_must_be_in_the_unit_of_the_column() -> None:
    with pytest.raises(QueryError, match="lengths must be integers on the integer time column"):
        mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("t").run({"t": [1]})
    with pytest.raises(QueryError, match=r'lengths must be durations.*did you mean "10 seconds"'):
        mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").run({"t": MINUTE})


def test_calendar_windows_need_timestamps() -> None:
    shape = mt.windows(day=w.calendar("day", "Asia/Tokyo")).aggregate(n=a.count()).on("t")
    told = (
        r"calendar windows need a time column of timestamps: got int32 for calendar day in Asia/Tokyo; cast"
    )
    with pytest.raises(QueryError, match=told):
        shape.run({"t": pa.array([1], pa.int32())})
    op = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1]})
    with pytest.raises(QueryError):
        op.add(day=w.calendar("day"))
    assert op.finish()["n"].to_pylist() == [1]


@pytest.mark.parametrize("nothing", [pd.NaT, np.datetime64("NaT", "us"), pa.scalar(None, pa.timestamp("us"))])
def test_a_watermark_must_not_be_null(nothing: object) -> None:
    op = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts").operator()
    with pytest.raises(MuntinError):  # before any tuple as well
        op.advance(nothing)
    op.process({"ts": pa.array(MINUTE, pa.timestamp("us"))})
    with pytest.raises(DataError, match="time must not be null"):
        op.advance(nothing)
    assert op.finish()["n"].to_pylist() == [3, 1]


def test_the_period_of_early_results_must_be_in_the_unit_of_the_column() -> None:
    query = mt.windows(two=w.count(2)).aggregate(n=a.count())
    with pytest.raises(QueryError, match=r'lengths must be integers on the integer time column.*"5 seconds"'):
        query.on("t", early=mt.every("5 seconds")).run({"t": [1, 2]})


@pytest.mark.parametrize("time", [2**62 + 1, -(2**62) - 1, 2**63 - 1, -(2**63)])
def test_times_near_the_limits_are_refused_without_wrapping(time: int) -> None:
    op = mt.windows(x=w.tumbling(10), s=w.session(5)).aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1]})
    with pytest.raises(DataError, match=rf'"t" must lie within \+-2\*\*62.*got {time} in row 1'):
        op.process({"t": [2, time]})
    assert op.finish()["n"].to_pylist() == [1, 1]


@pytest.mark.parametrize("time", [2**62 - 1, -(2**62) + 1])
def test_times_just_inside_the_limits_work(time: int) -> None:
    shape = mt.windows(x=w.tumbling(10), s=w.session(5), c=w.count(1), l=w.last(2, every=7))
    table = shape.aggregate(n=a.count()).on("t").run({"t": [time]})
    assert table["n"].to_pylist() == [1] * 4
    assert all(row["start"] <= time < row["end"] for row in table["window"].to_pylist())


@pytest.mark.parametrize(
    "watermark",
    [
        dt.datetime(2024, 5, 1, 12, 1),
        dt.datetime(2024, 5, 1, 14, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        "2024-05-01T12:01:00",
        "2024-05-01T12:01:00+00:00",
        pd.Timestamp("2024-05-01 12:01"),
        np.datetime64("2024-05-01T12:01"),
        pa.scalar(dt.datetime(2024, 5, 1, 12, 1), pa.timestamp("s")),
        Micros(1_714_564_860_000_000),
    ],
    ids=lambda value: f"{type(value).__name__} {value}",
)
def test_watermarks_may_be_given_in_many_ways(watermark: object) -> None:
    op = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts").operator()
    op.process({"ts": pa.array(MINUTE, pa.timestamp("us"))})
    assert op.advance(watermark)["n"].to_pylist() == [3]


def test_a_bad_time_that_python_cannot_hold_is_told_as_an_integer() -> None:
    shape = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count())
    far = pa.table({"t": pa.array([2**62, 0], pa.timestamp("s"))})
    with pytest.raises(DataError, match=r"must lie within .*4611686018427387904.* \(1 of 2 tuples are bad\)"):
        shape.on("t").run(far)
    assert shape.on("t", bad="skip").run(far)["n"].to_pylist() == [1]


def test_a_zone_that_nobody_knows_is_refused() -> None:
    shape = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("t")
    with pytest.raises(DataError, match=r'zone of the time column must be known: got "Mars/Olympus"; cast'):
        shape.run(pa.table({"t": pa.array([1], pa.timestamp("us", "Mars/Olympus"))}))
