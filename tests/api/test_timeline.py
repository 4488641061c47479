"""Spans, instants and the time column: every unit, every zone, both sides of the epoch."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import DataError, QueryError
from muntin.timeline import (
    INF,
    LIMIT,
    NEG_INF,
    Micros,
    TimeColumn,
    format_instant,
    format_span,
    instant,
    span,
)

NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
ZONES = [None, "UTC", "Europe/Berlin", "+05:30"]
DATETIMES = st.datetimes(
    timezones=st.sampled_from([dt.UTC, zoneinfo.ZoneInfo("America/New_York")]), allow_imaginary=False
)


def test_the_ends_of_time_are_symmetric() -> None:
    assert np.iinfo(np.int64).max == INF
    assert NEG_INF == -INF


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1 minute", 60_000_000),
        ("5 seconds", 5_000_000),
        ("5s", 5_000_000),
        ("250 ms", 250_000),
        ("250ms", 250_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1 hour, 30 minutes", 5_400_000_000),
        ("1h30m", 5_400_000_000),
        ("1 Hour", 3_600_000_000),
        ("1.5 hours", 5_400_000_000),
        ("0.1 s", 100_000),
        ("2 days", 172_800_000_000),
        ("1 week", 604_800_000_000),
        ("10 µs", 10),
        ("10 μs", 10),
        ("10 us", 10),
        ("10 microseconds", 10),
        ("3000 ns", 3),
        ("10 secs", 10_000_000),
        ("10 mins", 600_000_000),
        ("-15 minutes", -900_000_000),
        ("0 seconds", 0),
    ],
)
def test_durations_as_text(text: str, micros: int) -> None:
    result = span(text, "length")
    assert result == micros
    assert isinstance(result, Micros)


def test_durations_of_python_numpy_and_pandas() -> None:
    assert span(dt.timedelta(seconds=1.5), "gap") == Micros(1_500_000)
    assert span(np.timedelta64(5, "s"), "gap") == Micros(5_000_000)
    assert span(np.timedelta64(-3000, "ns"), "gap") == Micros(-3)
    assert isinstance(span(np.timedelta64(3000, "ns"), "gap"), Micros)
    assert span(pd.Timedelta("2min"), "gap") == Micros(120_000_000)
    assert isinstance(span(pd.Timedelta("2min"), "gap"), Micros)


def test_integers_stay_units_of_the_column() -> None:
    for value in (10, np.int64(10), np.uint8(10)):
        assert span(value, "length") == 10
        assert type(span(value, "length")) is int


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "length must be a duration"),
        ("10", 'write "10 seconds", or the integer 10'),
        ("ten minutes", "length must be a duration"),
        ("5 minuets", 'Did you mean "minute"?'),
        ("5 minutes and", "length must be a duration"),
        ("1 month", 'calendar("month")'),
        ("1 ns", "whole number of microseconds"),
        (1.5, 'did you mean "1.5 seconds"?'),
        (True, "length must be a duration"),
        (np.bool_(True), "length must be a duration"),
        (np.arange(3), "length must be a duration"),
        (None, "length must be a duration"),
        (2**63, "within"),
        ("1000000000 days", "within"),
        (pd.Timedelta(1, "ns"), "whole number of microseconds"),
        (np.timedelta64(1, "ns"), "whole number of microseconds"),
        (np.timedelta64(1, "Y"), "length must be a duration"),
        (np.timedelta64("NaT", "us"), "length must be a duration"),
        (pd.NaT, "length must be a duration"),
    ],
)
def test_what_is_no_duration(value: object, words: str) -> None:
    with pytest.raises(QueryError, match="length") as error:
        span(value, "length")
    assert words in str(error.value)


@given(st.integers(-LIMIT, LIMIT))
def test_format_span_reads_back(micros: int) -> None:
    again = span(format_span(Micros(micros)), "length")
    assert again == micros
    assert isinstance(again, Micros)


def test_format_span_of_plain_integers() -> None:
    assert format_span(90) == "90"


@given(DATETIMES)
def test_instants_of_datetimes(value: dt.datetime) -> None:
    micros = instant(value)
    # In UTC: Python calls a time of the hour that comes twice unequal to itself in another zone.
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert epoch + dt.timedelta(microseconds=micros) == value.astimezone(dt.UTC)
    assert instant(value.isoformat()) == micros
    assert instant(format_instant(micros)) == micros


def test_instants_of_other_kinds() -> None:
    assert instant(dt.date(1970, 1, 2)) == 86_400_000_000
    assert instant(dt.datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000
    assert instant("1970-01-01") == 0
    assert instant("1970-01-01T01:00:00+01:00") == 0
    assert instant(np.datetime64("1969-12-31T23:59:59.999999999")) == -1
    assert instant(pd.Timestamp("1969-12-31T23:59:59.999999999")) == -1
    assert instant(pd.Timestamp("1970-01-01T01:00", tz="Europe/Berlin")) == 0
    assert type(instant(5)) is int
    assert format_instant(Micros(LIMIT)) == LIMIT
    for wrong in ("noon", 1.5, None, True):
        with pytest.raises(QueryError, match="start"):
            instant(wrong, "start")


@given(
    st.sampled_from(sorted(NANOS)),
    st.sampled_from(ZONES),
    st.lists(st.one_of(st.none(), st.integers(-(2**62 // 10**6), 2**62 // 10**6)), max_size=20),
    st.integers(0, 3),
)
def test_timestamps_become_microseconds(
    unit: str, zone: str | None, raw: list[int | None], skipped: int
) -> None:
    array = pa.array(raw, pa.timestamp(unit, zone)).slice(min(skipped, len(raw)))
    times, valid, _ = TimeColumn(array.type).to_internal(array)
    expected = [None if value is None else value * NANOS[unit] // 1000 for value in raw[skipped:]]
    assert times.dtype == np.int64
    assert (valid is None) == (array.null_count == 0)
    mask = np.ones(len(times), bool) if valid is None else valid
    assert [int(t) if ok else None for t, ok in zip(times, mask, strict=True)] == expected


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_of_every_width(kind: str) -> None:
    lowest = -5 if kind.startswith("int") else 0
    array = pa.array([lowest, None, 100], kind)
    times, valid, _ = TimeColumn(array.type).to_internal(array)
    assert times.tolist() == [lowest, 0, 100]
    assert valid is not None
    assert valid.tolist() == [True, False, True]
    assert TimeColumn(array.type).to_edges(times, ceil=False).type == pa.int64()


@pytest.mark.parametrize(
    "array",
    [
        pa.array([0, 2**62 + 1]),
        pa.array([0, -(2**62) - 1]),
        pa.array([-(2**63)]),
        pa.array([2**64 - 1], "uint64"),
        pa.array([2**62 + 1], pa.timestamp("us")),
        pa.array([2**43], pa.timestamp("s")),
        pa.array([-(2**53)], pa.timestamp("ms", "UTC")),
    ],
)
def test_times_near_the_limits_of_int64_are_refused(array: pa.Array) -> None:
    column = TimeColumn(array.type)
    with pytest.raises(DataError, match=r"2\*\*62.*in row"):
        column.to_internal(array)
    times, valid, _ = column.to_internal(array, strict=False)
    assert valid is not None
    assert not valid[-1]
    assert times[-1] == 0


def test_the_limit_itself_and_garbage_under_nulls_are_fine() -> None:
    assert TimeColumn(pa.int64()).to_internal(pa.array([LIMIT, -LIMIT]))[0].tolist() == [LIMIT, -LIMIT]
    hidden = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([2**63 - 1, 7], np.int64).tobytes())]
    )
    times, valid, _ = TimeColumn(pa.int64()).to_internal(hidden)
    assert times.tolist() == [0, 7]
    assert valid is not None
    assert valid.tolist() == [False, True]


@pytest.mark.parametrize("type_", [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "Asia/Tokyo")])
def test_no_copy_of_microseconds(type_: pa.DataType) -> None:
    array = pa.array(range(10), type_).slice(3)
    times, _, _ = TimeColumn(type_).to_internal(array)
    assert times.__array_interface__["data"][0] == array.buffers()[1].address + 3 * 8


def test_chunks_empty_columns_and_columns_of_nulls() -> None:
    column = TimeColumn(pa.int64())
    assert column.to_internal(pa.chunked_array([[1, 2], [3]]))[0].tolist() == [1, 2, 3]
    assert column.to_internal(pa.chunked_array([], pa.int64()))[0].tolist() == []
    times, valid, _ = column.to_internal(pa.nulls(2))
    assert times.tolist() == [0, 0]
    assert valid is not None
    assert valid.tolist() == [False, False]


def test_batches_may_differ_in_unit_but_not_in_kind() -> None:
    column = TimeColumn(pa.timestamp("us", "UTC"))
    assert column.to_internal(pa.array([1], pa.timestamp("ms", "Asia/Tokyo")))[0].tolist() == [1000]
    for other in (pa.int64(), pa.timestamp("us"), pa.date32()):
        with pytest.raises(DataError, match="in every batch"):
            column.to_internal(pa.array([1], other) if other != pa.date32() else pa.nulls(1, other))


@pytest.mark.parametrize("type_", [pa.string(), pa.date32(), pa.float64(), pa.null()])
def test_what_is_no_time_column(type_: pa.DataType) -> None:
    with pytest.raises(DataError, match="must be a timestamp or an integer"):
        TimeColumn(type_)


@given(st.sampled_from(sorted(NANOS)), st.lists(st.integers(-(10**12), 10**12), max_size=10))
def test_edges_round_outwards(unit: str, micros: list[int]) -> None:
    column = TimeColumn(pa.timestamp(unit, "UTC"))
    times = np.array(micros, np.int64)
    size = NANOS[unit]
    lower = [value * 1000 // size for value in micros]
    upper = [-(-value * 1000 // size) for value in micros]
    assert column.edge_type == pa.timestamp(unit, "UTC")
    assert column.to_edges(times, ceil=False).cast(pa.int64()).to_pylist() == lower
    assert column.to_edges(times, ceil=True).cast(pa.int64()).to_pylist() == upper


def test_edges_finer_than_the_column_come_in_microseconds() -> None:
    quarter = Micros(250_000)
    assert TimeColumn(pa.timestamp("s", "UTC"), (quarter,)).edge_type == pa.timestamp("us", "UTC")
    assert TimeColumn(pa.timestamp("ms"), (quarter,)).edge_type == pa.timestamp("ms")
    assert TimeColumn(pa.timestamp("s"), (Micros(60_000_000), 0)).edge_type == pa.timestamp("s")


def test_times_in_nanoseconds_leave_room_for_edges() -> None:
    column = TimeColumn(pa.timestamp("ns", "UTC"), (Micros(60_000_000),))
    assert column.edge_type == pa.timestamp("ns", "UTC")
    year = 366 * 86_400 * 10**9
    given = [2**63 - 1, 2**63 - year, 2**63 - year - 60 * 10**9, -(2**63) + year + 60 * 10**9, None]
    times, valid, _ = column.to_internal(pa.array(given, pa.timestamp("ns", "UTC")), strict=False)
    assert valid is not None
    assert valid.tolist() == [False, False, True, True, False]
    assert times[2:4].tolist() == [ns // 1000 for ns in given[2:4] if ns is not None]
    with pytest.raises(DataError, match=r"must lie between 1678-.* and 2261-.*: got 9223372036854775807"):
        column.to_internal(pa.array(given, pa.timestamp("ns", "UTC")))
    with pytest.raises(DataError, match="1677 to 2262"):  # the start of a landmark may lie anywhere
        column.to_edges(np.array([2**60]), ceil=True)
    assert TimeColumn(pa.timestamp("ns"), (Micros(60 * year // 1000),)).edge_type == pa.timestamp("us")


@pytest.mark.parametrize(
    "nothing",
    [pd.NaT, np.datetime64("NaT", "s"), np.datetime64("NaT", "ns"), pa.scalar(None, pa.timestamp("us"))],
)
def test_a_time_must_not_be_null(nothing: object) -> None:
    with pytest.raises(DataError, match=r"time must not be null: got .*(NaT|None).*; "):
        TimeColumn(pa.timestamp("us")).internal(nothing)
    if not isinstance(nothing, pa.Scalar):
        with pytest.raises(QueryError, match=r"start must not be null: got .*NaT.*; give a time"):
            instant(nothing, "start")


def test_lengths_must_fit_the_column() -> None:
    with pytest.raises(QueryError, match=r"lengths must be integers.*1 minute"):
        TimeColumn(pa.int64(), (Micros(60_000_000),))
    with pytest.raises(QueryError, match=r'lengths must be durations.*"10 seconds"'):
        TimeColumn(pa.timestamp("us"), (10,))
    assert TimeColumn(pa.int64(), (10, 0, Micros(0))).edge_type == pa.int64()


def test_single_times() -> None:
    column = TimeColumn(pa.timestamp("ms", "Europe/Berlin"))
    one = 1_000_000
    for value in (
        Micros(one),
        dt.datetime(1970, 1, 1, 0, 0, 1),
        dt.datetime(1970, 1, 1, 1, 0, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        "1970-01-01T00:00:01Z",
        pd.Timestamp("1970-01-01T00:00:01"),
        np.datetime64("1970-01-01T00:00:01"),
        pa.scalar(1000, pa.timestamp("ms", "UTC")),
    ):
        assert column.internal(value) == one
    with pytest.raises(DataError, match="got 1000000, which has no unit"):
        column.internal(one)
    integers = TimeColumn(pa.int32())
    assert integers.internal(7) == integers.internal(np.int16(7)) == integers.internal(pa.scalar(7)) == 7
    for wrong in ("1970-01-01", dt.datetime(1970, 1, 1), None, "x", 1.5, pa.scalar(None, pa.int64())):
        with pytest.raises(DataError):
            integers.internal(wrong)
