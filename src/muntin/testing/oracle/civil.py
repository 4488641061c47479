"""Days, weeks, months and years of a time zone, for the oracle."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

__all__ = ["calendar_window"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def calendar_window(unit: str, tz: str, time: int) -> tuple[int, int]:
    """The civil unit [start, end) that contains `time`, all in microseconds.

    The day of the change to summer time in Berlin has 23 hours:

    >>> start, end = calendar_window("day", "Europe/Berlin", 1_711_845_000_000_000)  # 2024-03-31
    >>> (end - start) // 3_600_000_000
    23
    """
    zone = ZoneInfo(tz)
    day = (_EPOCH + dt.timedelta(microseconds=time)).astimezone(zone).date()
    first = _first_day(unit, day)
    return _midnight(first, zone), _midnight(_following(unit, first), zone)


def _first_day(unit: str, day: dt.date) -> dt.date:
    if unit == "week":
        return day - dt.timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "year":
        return day.replace(month=1, day=1)
    return day


def _following(unit: str, first: dt.date) -> dt.date:
    if unit == "week":
        return first + dt.timedelta(days=7)
    if unit == "month":
        return (first + dt.timedelta(days=31)).replace(day=1)
    if unit == "year":
        return first.replace(year=first.year + 1)
    return first + dt.timedelta(days=1)


def _midnight(day: dt.date, zone: ZoneInfo) -> int:
    """The first instant of a local day, also where the clocks skip or repeat midnight."""
    midnights = [dt.datetime(day.year, day.month, day.day, tzinfo=zone, fold=fold) for fold in (0, 1)]
    instants = [(midnight - _EPOCH) // dt.timedelta(microseconds=1) for midnight in midnights]
    low, high = min(instants) - 1, instants[0]
    while high - low > 1:  # `high` lies in the day or after it, `low` before it
        middle = (low + high) // 2
        reached = (_EPOCH + dt.timedelta(microseconds=middle)).astimezone(zone).date() >= day
        low, high = (low, middle) if reached else (middle, high)
    return high
