"""Random choices out of one drawn number, and the time columns that scenarios have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

__all__ = ["INTEGERS", "STAMPS", "Clock", "Picks"]


class Clock(NamedTuple):
    """The time column: integers, or timestamps, in which one unit is an hour; `stretch` lengthens spans."""

    type: pa.DataType
    origin: int | None = None
    stretch: int = 1

    def span(self, units: int) -> Any:
        """A length of time as a user writes it."""
        units *= self.stretch
        return units if self.origin is None else dt.timedelta(hours=units)

    @property
    def length_type(self) -> pa.DataType:
        """The type of a column of lengths of time."""
        return pa.int64() if self.origin is None else pa.duration("s")

    @property
    def unit(self) -> int:
        """A unit as a query holds it: in microseconds, where it is an hour."""
        return 1 if self.origin is None else 3_600_000_000

    def inside(self, units: int) -> int:
        """A point in time as a query holds it."""
        return ((self.origin or 0) + units) * self.unit

    def value(self, units: int) -> Any:
        """A point in time as the column holds it."""
        if self.origin is None:
            return units
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=self.origin + units)
        return moment if self.type.tz else moment.replace(tzinfo=None)


INTEGERS = Clock(pa.int64())
"""Integer times around zero."""

# Berlin changes to summer time on 2024-03-31 at 01:00 UTC, 475,441 hours after the epoch.
STAMPS = tuple(
    Clock(pa.timestamp(unit, zone), 475_430)
    for unit, zone in (("us", "UTC"), ("ms", None), ("s", "Europe/Berlin"))
)
"""Timestamps of several units and zones around a change to summer time."""


class Picks:
    """Decodes one drawn integer into a series of choices; 0 picks the first of everything.

    One draw instead of many: hypothesis draws an integer as fast as a bool, and
    shrinks it towards 0, the simplest choices.

    >>> pick = Picks(7)
    >>> pick("abc"), pick(range(1, 5)), pick([True, False])
    ('b', 3, True)
    """

    def __init__(self, code: int, clock: Clock = INTEGERS) -> None:
        self._code = code
        self.clock = clock

    def __call__(self, options: Sequence[Any]) -> Any:
        self._code, index = divmod(self._code, len(options))
        return options[index]

    def span(self, options: Sequence[int]) -> Any:
        """One of these lengths of time."""
        return self.clock.span(self(options))

    def moment(self, options: Sequence[int]) -> Any:
        """One of these points in time."""
        return self.clock.value(self(options))
