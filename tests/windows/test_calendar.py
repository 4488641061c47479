"""Calendar windows, on the days on which zones do odd things."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import windows as w
from muntin.errors import QueryError
from muntin.timeline import INF, LIMIT, NEG_INF, Micros, instant
from muntin.windows.calendar import _edges_of_known_year, _edges_of_range, _edges_of_year

HOUR = 3_600_000_000
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour of summer time
    "Asia/Kathmandu",
    "Pacific/Apia",  # left out 30 December 2011
    "America/Sao_Paulo",  # used to skip midnight
    "America/Toronto",  # skipped 23:30 to 00:30 in 1919
    "America/St_Johns",  # used to change at one minute past midnight
    "Africa/Cairo",
]


def clock(time: int, tz: str) -> dt.datetime:
    """What the clocks of the zone show."""
    utc = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=time)
    return utc.astimezone(ZoneInfo(tz)).replace(tzinfo=None)


def unit_start(unit: str, wall: dt.datetime) -> dt.datetime:
    day = dt.datetime(wall.year, wall.month, wall.day)
    match unit:
        case "week":
            return day - dt.timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
        case "year":
            return day.replace(month=1, day=1)
    return day


def hours(unit: str, tz: str, day: str) -> list[float]:
    """The lengths, in hours, of the windows that overlap a day of UTC and its neighbours."""
    noon = instant(day) + 12 * HOUR
    edges = w.calendar(unit, tz).edges(noon - 60 * HOUR, noon + 60 * HOUR)
    return [(b - a) / HOUR for a, b in pairwise(edges.tolist())]


def test_days_of_daylight_saving() -> None:
    assert 23 in hours("day", "Europe/Berlin", "2024-03-31")
    assert 25 in hours("day", "Europe/Berlin", "2024-10-27")
    assert 23 in hours("day", "America/New_York", "2024-03-10")
    assert 25 in hours("day", "America/New_York", "2024-11-03")
    assert 23.5 in hours("day", "Australia/Lord_Howe", "2024-10-06")
    assert 24.5 in hours("day", "Australia/Lord_Howe", "2024-04-07")
    assert 23 in hours("day", "America/Sao_Paulo", "2018-11-04")
    assert set(hours("day", "Asia/Kathmandu", "2024-03-31")) == {24}


def test_a_zone_that_is_no_whole_hour_away() -> None:
    edges = w.calendar("day", "Asia/Kathmandu").edges(0, 24 * HOUR)
    assert edges.tolist() == [instant("1970-01-01T18:30:00")]  # it was 5:30 ahead then
    edges = w.calendar("day", "Asia/Kathmandu").edges(instant("2024-01-01"), instant("2024-01-02"))
    assert edges.tolist() == [instant("2024-01-01T18:15:00")]


def test_a_day_that_was_left_out_is_no_window() -> None:
    edges = w.calendar("day", "Pacific/Apia").edges(instant("2011-12-28"), instant("2012-01-02"))
    days = [clock(edge, "Pacific/Apia").strftime("%m-%d %H:%M") for edge in edges.tolist()]
    assert days == ["12-28 00:00", "12-29 00:00", "12-31 00:00", "01-01 00:00", "01-02 00:00"]
    assert np.diff(edges).tolist() == [24 * HOUR] * 4


def test_midnight_inside_a_gap() -> None:
    # The clocks jumped from 23:30 on 30 March 1919 to 00:30 on the 31st.
    edges = w.calendar("day", "America/Toronto").edges(instant("1919-03-30"), instant("1919-04-01"))
    shown = [clock(edge, "America/Toronto").strftime("%m-%d %H:%M") for edge in edges.tolist()]
    assert shown == ["03-30 00:00", "03-31 00:30"]
    assert 23.5 in hours("day", "America/Toronto", "1919-03-30")


def test_a_midnight_that_comes_twice_counts_once() -> None:
    # At 00:01 on 29 October 2006 the clocks went back to 23:01.
    edges = w.calendar("day", "America/St_Johns").edges(
        instant("2006-10-28T12:00"), instant("2006-10-30T12:00")
    )
    shown = [clock(edge, "America/St_Johns").strftime("%m-%d %H:%M") for edge in edges.tolist()]
    assert shown == ["10-29 00:00", "10-30 00:00"]
    assert (edges[1] - edges[0]) / HOUR == 25


def test_an_offset_is_on_the_clock() -> None:
    window = w.calendar("day", "Europe/Berlin", offset="6 hours")
    edges = window.edges(instant("2024-03-30"), instant("2024-04-02"))
    assert [clock(edge, "Europe/Berlin").hour for edge in edges.tolist()] == [6, 6, 6]
    assert (np.diff(edges) / HOUR).tolist() == [23, 24]
    skipped = w.calendar("day", "Europe/Berlin", offset="2 hours 30 minutes")  # 02:30 does not exist
    edges = skipped.edges(instant("2024-03-31"), instant("2024-03-31T12:00"))
    assert clock(int(edges[0]), "Europe/Berlin").strftime("%H:%M") == "03:00"


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("tz", ZONES)
def test_edges_are_the_first_instants_of_civil_units(unit: str, tz: str) -> None:
    window = w.calendar(unit, tz)
    years = [1918, 1969, 1986, 2006, 2011, 2024]
    for year in years:
        lo, hi = instant(f"{year}-01-01"), instant(f"{year + 1}-03-01")
        edges = window.edges(lo, hi).tolist()
        assert edges == sorted(set(edges))
        assert edges == window.starts(lo, hi).tolist()
        for edge in edges:
            # At the edge the clocks have reached a new unit, and just before they had not.
            begun = unit_start(unit, clock(edge, tz))
            before = clock(edge - 1, tz)
            assert unit_start(unit, before) < begun
        for start, end in pairwise(edges):
            middle = (start + end) // 2
            assert unit_start(unit, clock(start, tz)) == unit_start(unit, clock(middle, tz))


@given(
    unit=st.sampled_from(["day", "week", "month", "quarter", "year"]),
    tz=st.sampled_from(ZONES),
    times=st.lists(st.integers(-(2**51), 2**51) | st.integers(-LIMIT, LIMIT), min_size=1, max_size=6).map(
        sorted
    ),
    after=st.integers(-(2**51), 2**51) | st.just(NEG_INF),
    upto=st.integers(-(2**51), 2**51) | st.just(INF),
)
def test_windows_agree_with_edges(unit: str, tz: str, times: list[int], after: int, upto: int) -> None:
    window, array = w.calendar(unit, tz), np.array(times, np.int64)
    near = 400 * 24 * HOUR
    expected = set()
    for time in times:
        around = window.edges(time - near, time + near)
        place = int(np.searchsorted(around, time, side="right"))
        expected.add((int(around[place - 1]), int(around[place])))
    ends = window.last_end(array).tolist()
    assert set(ends) == {end for _, end in expected}
    starts, found = window.windows(array, after, upto)
    inside = sorted(pair for pair in expected if after < pair[1] <= upto)
    assert list(zip(starts.tolist(), found.tolist(), strict=True)) == inside
    assert window.first_start(times[0]) == min(start for start, end in expected if end > times[0])


def test_what_cannot_be() -> None:
    with pytest.raises(QueryError, match=r'unit must be .* got "dya"\. Did you mean "day"\?'):
        w.calendar("dya")
    with pytest.raises(QueryError, match=r'got "hour"\..*tumbling\("1 hour"\)'):
        w.calendar("hour")
    with pytest.raises(QueryError, match='tz must name a time zone: got "Mars/Olympus"'):
        w.calendar("day", tz="Mars/Olympus")
    with pytest.raises(QueryError, match='offset must lie inside every day: got "1 day 1 hour"'):
        w.calendar("day", offset="25 hours")
    with pytest.raises(QueryError, match="offset must be a duration: got 5"):
        w.calendar("day", offset=5)


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
def test_far_years_are_moved_by_whole_cycles(unit: str) -> None:
    offset = 20 * HOUR
    for year in (2, 1199, 1200, 1599, 1600, 2399, 2400, 2799, 2800, 9998):
        for tz in ("Europe/Berlin", "Pacific/Apia"):
            found = _edges_of_year(unit, tz, offset, year)
            assert found.tolist() == _edges_of_known_year(unit, tz, offset, year).tolist(), (year, tz)


def test_the_clocks_of_every_zone_repeat_after_a_cycle() -> None:
    for tz in sorted(available_timezones()):
        for year in (1000, 1601 - 400, 2401 + 400, 9001):
            found = _edges_of_year("month", tz, 0, year)
            assert found.tolist() == _edges_of_known_year("month", tz, 0, year).tolist(), (year, tz)


def test_years_that_datetime_does_not_know() -> None:
    month = w.calendar("month", "Europe/Berlin")
    starts, ends = month.windows(np.array([instant("0001-01-01"), instant("9999-12-31T23:30")]), NEG_INF, INF)
    shown = np.stack([starts, ends]).astype("datetime64[us]").astype("datetime64[s]").astype(str)
    assert shown.tolist() == [
        ["0000-12-31T23:06:32", "9999-12-31T23:00:00"],
        ["0001-01-31T23:06:32", "10000-01-31T23:00:00"],
    ]
    # The rules of summer time hold in all years to come.
    days = w.calendar("day", "Europe/Berlin")
    spring = int(np.datetime64("102024-03-31T12").astype("datetime64[us]").astype(np.int64))
    assert np.diff(days.edges(spring - 36 * HOUR, spring + 36 * HOUR)).tolist() == [23 * HOUR, 24 * HOUR]


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
def test_the_ends_of_time(unit: str) -> None:
    window = w.calendar(unit, "Asia/Kathmandu", offset="18 hours")
    times = np.array([-LIMIT, LIMIT])
    starts, ends = window.windows(times, NEG_INF, INF)
    assert (starts <= times).all()
    assert (ends > times).all()
    assert window.last_end(times).tolist() == ends.tolist()
    assert [window.first_start(int(time)) for time in times] == starts.tolist()
    assert window.first_start(int(ends[1]) - 1) == starts[1]


def test_beyond_all_times() -> None:
    day = w.calendar("day")
    assert day.edges(NEG_INF, -(2**62) - 2**60).tolist() == []
    assert (day.first_start(NEG_INF), day.first_start(INF)) == (NEG_INF, INF)
    empty = np.zeros(0, np.int64)
    assert [len(part) for part in (*day.windows(empty, 0, INF), day.last_end(empty))] == [0, 0, 0]


def test_it_needs_a_time_column_of_timestamps() -> None:
    assert all(isinstance(span, Micros) for span in w.calendar("day", offset="1 hour").spans())
    assert w.calendar("day", tz=ZoneInfo("Europe/Berlin")) == w.calendar("day", "Europe/Berlin")


@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
def test_edges_of_near_times_are_those_of_times_far_apart(unit: str) -> None:
    window = w.calendar(unit, "Pacific/Apia", offset="20 hours")
    lo, hi = instant("1990-06-01"), instant("2030-06-01")
    far = window.edges(lo, hi)
    near = [
        window.edges(instant(f"{year}-06-01") + 1, instant(f"{year + 1}-06-01")) for year in range(1990, 2030)
    ]
    assert np.concatenate(near).tolist() == far[far > lo].tolist()


def test_edges_around_now_are_made_once() -> None:
    window, noon = w.calendar("day", "Asia/Kathmandu"), instant("2021-03-04T12:00")
    window.edges(noon, noon + 24 * HOUR)
    made = _edges_of_range.cache_info().misses
    for hour in range(1_000):
        assert len(window.edges(noon + hour * HOUR, noon + (hour + 24) * HOUR - 1)) == 1
        assert window.first_start(noon + hour * HOUR) <= noon + hour * HOUR
    assert _edges_of_range.cache_info().misses == made
