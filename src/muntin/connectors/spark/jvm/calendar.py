"""Civil periods in the JVM, in the zone of the session: Spark's dates know no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.windows.calendar import Calendar

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["in_zone", "next_period", "period_of"]

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}


def in_zone(window: Calendar, zone: str) -> bool:
    """Whether Spark's dates are those of the window: in its zone, without an offset."""
    return window.tz == zone and not window.offset


def period_of(window: Calendar, time: Column) -> Column:
    """The start of the period that a time, in microseconds, lies in."""
    # A date as a time is the first instant of that day, also where the clocks skip or repeat midnight.
    return _instant(_first_day(window, time))


def next_period(window: Calendar, start: Column) -> Column:
    """The start of the period behind the one that starts there."""
    first = _first_day(window, start)
    if window.unit in _DAYS:
        return _instant(f.date_add(first, _DAYS[window.unit]))
    return _instant(f.add_months(first, _MONTHS[window.unit]))


def _first_day(window: Calendar, time: Column) -> Column:
    date = f.timestamp_micros(time).cast("date")
    return date if window.unit == "day" else f.trunc(date, window.unit)


def _instant(date: Column) -> Column:
    return f.unix_micros(date.cast("timestamp"))
