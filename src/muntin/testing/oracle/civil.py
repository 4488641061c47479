"""Days, weeks, months and years of a time zone, for the oracle."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

__all__ = ["calendar_window"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def calendar_window(window: Any, time: int) -> tuple[int, int]:
    """The civil unit [start, end) that contains `time`, all in microseconds.

    A unit begins when the clocks show its first midnight plus the offset, or first
    a later time. The day of the change to summer time in Berlin has 23 hours:

    >>> from muntin import windows as w
    >>> start, end = calendar_window(w.calendar("day", "Europe/Berlin"), 1_711_845_000_000_000)  # 2024-03-31
    >>> (end - start) // 3_600_000_000
    23
    """
    unit, zone, shift = window.unit, ZoneInfo(window.tz), dt.timedelta(microseconds=window.offset)
    first = _first_day(unit, (_EPOCH + dt.timedelta(microseconds=time)).astimezone(zone).date())
    if _begin(first, shift, zone) > time:  # it begins later today
        first = _first_day(unit, first - dt.timedelta(days=1))
    return _begin(first, shift, zone), _begin(_following(unit, first), shift, zone)


def _first_day(unit: str, day: dt.date) -> dt.date:
    if unit in _DAYS:
        return day - dt.timedelta(days=day.weekday() % _DAYS[unit])
    return day.replace(month=day.month - (day.month - 1) % _MONTHS[unit], day=1)


def _following(unit: str, first: dt.date) -> dt.date:
    if unit in _DAYS:
        return first + dt.timedelta(days=_DAYS[unit])
    return (first + dt.timedelta(days=31 * _MONTHS[unit])).replace(day=1)


def _begin(day: dt.date, shift: dt.timedelta, zone: ZoneInfo) -> int:
    """The first instant at which the clocks show midnight plus the shift, or later."""
    wall = dt.datetime(day.year, day.month, day.day) + shift
    instants = [
        (wall.replace(tzinfo=zone, fold=fold) - _EPOCH) // dt.timedelta(microseconds=1) for fold in (0, 1)
    ]
    low, high = min(instants) - 1, instants[0]
    while high - low > 1:  # at `high` the clocks show it or later, at `low` they do not
        middle = (low + high) // 2
        shown = (_EPOCH + dt.timedelta(microseconds=middle)).astimezone(zone).replace(tzinfo=None)
        low, high = (low, middle) if shown >= wall else (middle, high)
    return high
