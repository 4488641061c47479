"""Civil days, weeks, months, quarters and years of a time zone.

An edge is the first instant at which the clocks of the zone show the civil
boundary or a later time. That settles the odd cases: where the clocks skip
midnight the day starts when they jump, where they repeat it the day starts at the
first one, and a day that a zone left out altogether (Apia, 30 December 2011) is no
window.

The calendar is Gregorian in all years, also before 1 and after 9999, which datetime
does not know: there, edges are those of a year that it knows, moved by whole cycles of
400 years.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np

from muntin.errors import QueryError, nearest
from muntin.timeline import INF, LIMIT, NEG_INF, Micros, SpanLike
from muntin.windows.arguments import constructor
from muntin.windows.base import ContextFreeWindow, Ints
from muntin.windows.grids import integer_ranges, unseen_ranges
from muntin.windows.validation import fail, flag, shown, text, time_offset

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400_000_000
_SHORTEST = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}
"""The shortest length of each unit, in days: an offset must stay inside it."""

# The Gregorian calendar repeats after 400 years, weekdays included. So do the clocks: no zone has
# changed them before 1834, and from 2088 on each follows a rule for all years (tzdata 2025).
_CYCLE = 400
_CYCLE_LENGTH = 146_097 * _DAY
_MEAN_YEAR = _CYCLE_LENGTH // _CYCLE
_STANDING_UNTIL, _REGULAR_FROM = 1_600, 2_400  # both begin a cycle

# A zone is at most a day away from UTC, and an offset at most a year long.
_SLACK = 2

_NEAR = 8 * 366 * _DAY
"""Edges around times that are no further apart are kept for the next call."""

# No time lies beyond LIMIT, and the edges around one at most four years further.
_FURTHEST = LIMIT + 4 * 366 * _DAY


@dataclass(frozen=True, slots=True)
class Calendar(ContextFreeWindow):
    """One window per civil unit of a time zone; weeks start on Monday.

    `offset` shifts the boundary on the clocks of the zone: a day that starts at
    6 o'clock starts at 6 o'clock in summer and in winter.

    >>> spring = Calendar("day", "Europe/Berlin").edges(1_711_839_600_000_000, 1_711_929_600_000_000)
    >>> (np.diff(spring) // 3_600_000_000).tolist()  # 31 March 2024 has 23 hours
    [23]
    """

    unit: str
    tz: str
    offset: int = 0
    emit_empty: bool = False

    constructor = "calendar"
    civil = True

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or self.unit not in _SHORTEST:
            raise QueryError(
                f'unit must be "day", "week", "month", "quarter" or "year": got {shown(self.unit)}.'
                + (nearest(self.unit, _SHORTEST) or ' For other lengths use tumbling("1 hour").')
            )
        tz = _name(self.tz)
        offset = time_offset(self.offset)
        if offset and not isinstance(offset, Micros):
            raise fail("offset must be a duration", offset, 'for example "6 hours"')
        longest = _SHORTEST[self.unit] * _DAY - 1
        if not 0 <= offset <= longest:
            cure = f"give 0 to {text(Micros(longest + 1))}, without the latter"
            raise fail(f"offset must lie inside every {self.unit}", offset, cure)
        flag(self.emit_empty, "emit_empty")
        self._settle(tz=tz, offset=offset)

    def describe(self) -> str:
        return self._described(f"calendar {self.unit} in {self.tz}")

    @property
    def period(self) -> int:
        return _SHORTEST[self.unit] * _DAY

    def spans(self) -> tuple[int, ...]:
        return (Micros(_DAY), self.offset) if self.offset else (Micros(_DAY),)

    def edges(self, lo: int, hi: int) -> Ints:
        lo, hi = max(lo, -_FURTHEST), min(hi, _FURTHEST)
        if lo > hi:
            return np.zeros(0, np.int64)
        around = self._around(lo, hi)
        return around[np.searchsorted(around, lo) : np.searchsorted(around, hi, side="right")]

    def starts(self, lo: int, hi: int) -> Ints:
        return self.edges(lo, hi)

    def overlapping(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        edges = self._edges_around(first, last)
        number = unseen_ranges(_numbers(edges, first), _numbers(edges, last))
        starts, ends = edges[number], edges[number + 1]
        inside = (ends > after) & (ends <= upto)
        return starts[inside], ends[inside]

    def last_end(self, times: Ints) -> Ints:
        edges = self._edges_around(times, times)
        ends: Ints = edges[_numbers(edges, times) + 1]
        return ends

    def first_start(self, after: int) -> int:
        if after < -_FURTHEST:
            return NEG_INF
        if after > _FURTHEST:
            return INF
        around = self._around(after, after)
        return int(around[np.searchsorted(around, after, side="right") - 1])

    def _edges_around(self, first: Ints, last: Ints) -> Ints:
        """All edges in the spans [first, last], and at least one before and one after each of them."""
        if not len(first):
            return np.zeros(0, np.int64)
        low, high = int(first.min()), int(last.max())
        if high - low <= _NEAR:
            return self._around(low, high)
        years = np.unique(integer_ranges(_years(first) - _SLACK, _years(last) + _SLACK)).tolist()
        return _edges_of_years(self.unit, self.tz, int(self.offset), years)

    def _around(self, lo: int, hi: int) -> Ints:
        # Years of mean length: near a new year the number may be off by one, so one more is taken.
        first, last = lo // _MEAN_YEAR + _EPOCH.year - _SLACK - 1, hi // _MEAN_YEAR + _EPOCH.year + _SLACK + 1
        if hi - lo <= _NEAR:
            return _edges_of_range(self.unit, self.tz, int(self.offset), first, last)
        return _edges_of_years(self.unit, self.tz, int(self.offset), range(first, last + 1))


def _numbers(edges: Ints, times: Ints) -> Ints:
    """Per time the number of the last edge at or before it."""
    return np.searchsorted(edges, times, side="right") - 1


@constructor
def calendar(
    unit: str, tz: str | dt.tzinfo = "UTC", offset: SpanLike = 0, *, emit_empty: bool = False
) -> Calendar:
    """Civil days, weeks, months, quarters or years of a time zone, right on daylight-saving days.

    >>> calendar("month", tz="America/New_York").describe()
    'calendar month in America/New_York'
    >>> calendar("day", tz="Europe/Belrin")
    Traceback (most recent call last):
    muntin.errors.QueryError: tz must name a time zone: got "Europe/Belrin"; did you mean "Europe/Berlin"?
    """
    # __post_init__ reads zones and durations.
    return Calendar(unit, tz, offset, emit_empty)  # type: ignore[arg-type]


def _name(tz: object) -> str:
    """The name of a time zone, or of a tzinfo that knows its own."""
    name = "UTC" if tz is dt.UTC else getattr(tz, "key", tz)
    try:
        ZoneInfo(name)  # type: ignore[arg-type]  # which refuses everything but a name
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise fail("tz must name a time zone", tz, _meant(name if isinstance(name, str) else "")) from None
    return str(name)


def _meant(tz: str) -> str:
    """Time zones of that city, or with a name much like it."""
    by_case = {zone.lower(): zone for zone in available_timezones()}
    city = tz.strip().replace(" ", "_").lower()
    close = [zone for zone in sorted(by_case) if city and city in zone.split("/")[-1]]
    if not close and "/" in city:  # abbreviations resemble those of quite other zones
        close = get_close_matches(city, by_case, n=1)
    names = " or ".join(f'"{by_case[zone]}"' for zone in close[:3])
    return f"did you mean {names}?" if names else 'write a place, like "Europe/Berlin", or "UTC"'


def _years(times: Ints) -> Ints:
    return times.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + _EPOCH.year


@lru_cache(maxsize=256)
def _edges_of_range(unit: str, tz: str, offset: int, first: int, last: int) -> Ints:
    """The edges of these years, both included: streams ask for those around now in every step."""
    edges = _edges_of_years(unit, tz, offset, range(first, last + 1))
    edges.flags.writeable = False  # it is shared
    return edges


def _edges_of_years(unit: str, tz: str, offset: int, years: Iterable[int]) -> Ints:
    # Not only unique years: the two sides of a day that was left out are one edge.
    return np.unique(np.concatenate([_edges_of_year(unit, tz, offset, year) for year in years]))


def _edges_of_year(unit: str, tz: str, offset: int, year: int) -> Ints:
    """The edges of the units whose first day lies in the year, as instants.

    >>> far, near = (_edges_of_year("week", "Europe/Berlin", 0, year) for year in (12_424, 2_424))
    >>> set((far - near).tolist()) == {25 * _CYCLE_LENGTH}
    True
    """
    if _STANDING_UNTIL <= year < _REGULAR_FROM:
        return _edges_of_known_year(unit, tz, offset, year)
    known = (_REGULAR_FROM if year >= _REGULAR_FROM else _STANDING_UNTIL - _CYCLE) + year % _CYCLE
    return _edges_of_known_year(unit, tz, offset, known) + (year - known) // _CYCLE * _CYCLE_LENGTH


@lru_cache(maxsize=4096)
def _edges_of_known_year(unit: str, tz: str, offset: int, year: int) -> Ints:
    zone = ZoneInfo(tz)
    shift = dt.timedelta(microseconds=offset)
    edges = [
        _first_instant(dt.datetime(d.year, d.month, d.day) + shift, zone) for d in _first_days(unit, year)
    ]
    result = np.array(edges, np.int64)
    result.flags.writeable = False  # it is shared
    return result


def _first_days(unit: str, year: int) -> Iterator[dt.date]:
    if unit in ("day", "week"):
        first = dt.date(year, 1, 1)
        step = 1 if unit == "day" else 7
        ahead = 0 if unit == "day" else -first.weekday() % 7
        for number in range(first.toordinal() + ahead, dt.date(year + 1, 1, 1).toordinal(), step):
            yield dt.date.fromordinal(number)
    else:
        for month in {"month": range(1, 13), "quarter": (1, 4, 7, 10), "year": (1,)}[unit]:
            yield dt.date(year, month, 1)


def _first_instant(wall: dt.datetime, zone: ZoneInfo) -> int:
    """The first instant at which the clocks of the zone show `wall` or later."""
    shown_first = wall.replace(tzinfo=zone, fold=0).utcoffset() or dt.timedelta()
    shown_last = wall.replace(tzinfo=zone, fold=1).utcoffset() or dt.timedelta()
    instant = wall - shown_first
    if shown_first < shown_last:
        # The clocks skip `wall`: they jump somewhere between the two readings of it.
        low, high = wall - shown_last, instant
        while high - low > _MICROSECOND:
            middle = low + (high - low) // 2
            jumped = middle.replace(tzinfo=dt.UTC).astimezone(zone).utcoffset() != shown_first
            low, high = (low, middle) if jumped else (middle, high)
        instant = high
    return (instant - _EPOCH) // _MICROSECOND
