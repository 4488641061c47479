"""Spans and instants: what the user writes for lengths of time and points in time.

A *span* is a length of time, an *instant* a point in time. Both are plain
integers inside. `Micros` marks those that the user gave as time ("1 minute", a
timedelta, a datetime); a plain `int` counts units of an integer time column.
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsFloat, SupportsIndex, TypeAlias, TypeVar, Union

from muntin.errors import QueryError, nearest, value_text
from muntin.timeline.foreign_spans import in_our_words

if TYPE_CHECKING:
    import numpy as np

INF = 2**63 - 1
"""Later than every time: the watermark at the end of a stream."""

NEG_INF = -INF
"""Earlier than every time: the watermark before the first."""

LIMIT = 2**62
"""Largest absolute time; sums of a time and a length below it stay inside int64."""

SpanLike: TypeAlias = Union[str, SupportsIndex, dt.timedelta, "np.timedelta64"]
"""What users may write for a length of time: see `span`."""

LengthLike: TypeAlias = SpanLike | SupportsFloat
"""What users may write for a length of time, or for one on a measure."""

InstantLike: TypeAlias = Union[str, SupportsIndex, dt.date, "np.datetime64"]
"""What users may write for a point in time: see `instant`."""

_Int = TypeVar("_Int", bound=int)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

# Longest first: format_span() uses the singular names in this order.
_UNITS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_SHORT = {
    "d": "day", "h": "hour", "hr": "hour", "m": "minute", "min": "minute", "s": "second", "sec": "second",
    "ms": "millisecond", "milli": "millisecond", "us": "microsecond", "µs": "microsecond",
    "μs": "microsecond", "micro": "microsecond",
}  # fmt: skip
_NANOS = {"ns", "nano", "nanosecond"}
_MOST_LETTERS = 1_000
"""The longest text that is read as a length: Python reads no number of more than 4,300 digits."""
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\W\d_]+)\s*,?")


class Micros(int):
    """A span or an instant that was given as time: a number of microseconds.

    It is an int in every computation (the result is then a plain int); the type
    only separates `"10 us"` from the integer 10 of an integer time column.

    >>> Micros(60_000_000)
    Micros(60000000)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Micros({int(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)


def span(value: object, name: str) -> int | Micros:
    """A length of time from a text, a timedelta or an integer; errors call it `name`.

    >>> span("1 minute", "length"), span("1h30m", "length"), span("250 ms", "gap")
    (Micros(60000000), Micros(5400000000), Micros(250000))
    >>> span(10, "length")
    10
    """
    if type(value) is int and -LIMIT <= value <= LIMIT:
        return value
    if isinstance(value, str):
        return _within(_parse_span(value, name), value, name)
    if isinstance(value, dt.timedelta):
        if getattr(value, "nanoseconds", 0):  # pandas.Timedelta
            raise QueryError(
                f"{name} must be a whole number of microseconds: got {value_text(value)}; round it"
            )
        return _within(Micros(value // dt.timedelta(microseconds=1)), value, name)
    number = _integer(value)
    if number is not None:
        return _within(number, value, name)
    if type(value).__name__ == "timedelta64":
        length = value.item()  # type: ignore[attr-defined]  # numpy, not imported here
        if isinstance(length, dt.timedelta):
            return span(length, name)
        if length is not None and str(value.dtype) == "timedelta64[ns]":  # type: ignore[attr-defined]
            return span(f"{length} ns", name)
    raise QueryError(
        f'{name} must be a duration like "1 minute", a timedelta or an integer: got {value_text(value)}'
        + (f'; did you mean "{value} seconds"?' if isinstance(value, float) else "")
    )


def format_span(value: int) -> str:
    """The text of a span, which `span` reads back; a plain int is its own text.

    >>> format_span(Micros(5_400_000_000)), format_span(Micros(-1_500)), format_span(10)
    ('1 hour 30 minutes', '-1 millisecond 500 microseconds', '10')
    """
    if not isinstance(value, Micros):
        return str(value)
    rest, terms = abs(int(value)), []
    for name, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            terms.append(f"{count} {name}{'s' if count > 1 else ''}")
    return ("-" if value < 0 else "") + (" ".join(terms) or "0 seconds")


def instant(value: object, name: str = "time") -> int | Micros:
    """A point in time from a datetime, a date, an ISO text or an integer.

    A datetime without a zone is UTC. An integer stays as it is: microseconds
    since the epoch, or units of an integer time column.

    >>> instant("1970-01-01T00:00:01")
    Micros(1000000)
    >>> instant(-5)
    -5
    """
    if isinstance(value, str):
        try:
            return _of_datetime(dt.datetime.fromisoformat(value))
        except ValueError:
            raise QueryError(
                f'{name} must be a time in ISO format like "2024-01-31T12:00:00": got {value_text(value)}'
            ) from None
    if type(value).__name__ in ("NaTType", "datetime64") and value != value:  # NaT alone is not itself
        raise QueryError(
            f'{name} must not be null: got {value_text(value)}; give a time, for example "2024-01-31"'
        )
    if isinstance(value, dt.datetime):
        return _of_datetime(value)
    if isinstance(value, dt.date):
        return _of_datetime(dt.datetime(value.year, value.month, value.day))
    number = _integer(value)
    if number is not None:
        return _within(number, value, name)
    if type(value).__name__ == "datetime64":
        # Not .item(): beyond the years of datetime it gives a plain integer in some unit.
        micros = int(value.astype("datetime64[us]").astype("int64"))  # type: ignore[attr-defined]  # numpy
        return _within(Micros(micros), value, name)
    raise QueryError(
        f"{name} must be a datetime, an ISO text or an integer: "
        f'got {value_text(value)}; for example "2024-01-31"'
    )


def format_instant(value: int) -> str | int:
    """The ISO text of an instant, which `instant` reads back; a plain int stays an int.

    >>> format_instant(Micros(1_500_000)), format_instant(7)
    ('1970-01-01T00:00:01.500000+00:00', 7)
    """
    if not isinstance(value, Micros):
        return int(value)
    try:
        return (_EPOCH + dt.timedelta(microseconds=int(value))).isoformat()
    except OverflowError:  # beyond the years 1 to 9999; an integer means microseconds as well
        return int(value)


def _of_datetime(value: dt.datetime) -> Micros:
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    # pandas.Timestamp carries nanoseconds in addition to microseconds; floor division drops them.
    return Micros((value - _EPOCH) // dt.timedelta(microseconds=1))


def _integer(value: object) -> int | None:
    """`value` as an int if it is one (also NumPy's), None otherwise; a bool is no integer."""
    if type(value) is int or isinstance(value, Micros):  # the first is far quicker than what follows
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or type(value).__name__ == "bool":
        return None
    try:
        return value.__index__()
    except TypeError:  # a NumPy array of more than one value
        return None


def _within(number: _Int, value: object, name: str) -> _Int:
    if abs(number) > LIMIT:
        raise QueryError(f"{name} must lie within +-2**62: got {value_text(value)}; use a coarser unit")
    return number


def _parse_span(text: str, name: str) -> Micros:
    body = text.strip()
    sign = -1 if body.startswith("-") else 1
    body = body[1:] if body[:1] in ("-", "+") else body
    total, at = Fraction(0), 0
    while at < len(body) <= _MOST_LETTERS:
        part = _PART.match(body, at)
        if part is None:
            break
        total += Fraction(part[1]) * _unit(part[2], text, name)
        at = part.end()
    if at == 0 or at < len(body):
        cure = f"; write {ours}" if (ours := in_our_words(body[:_MOST_LETTERS])) else ""
        if body.isdecimal() and len(body) < 20:
            cure = f'; write "{body} seconds", or the integer {body}'
        raise QueryError(
            f'{name} must be a duration like "1 minute" or "1h30m": got {value_text(text)}{cure}'
        )
    if total.denominator != 1:
        raise QueryError(f"{name} must be a whole number of microseconds: got {value_text(text)}; round it")
    return Micros(sign * int(total))


def _unit(word: str, text: str, name: str) -> Fraction:
    """Microseconds in the unit `word`; single letters are exact, the rest in any case."""
    word = word if len(word) == 1 else word.lower()
    unit = _SHORT.get(word) or (word[:-1] if word.endswith("s") and len(word) > 2 else word)
    unit = _SHORT.get(unit, unit)
    if unit in _UNITS:
        return Fraction(_UNITS[unit])
    if unit in ("w", "week"):
        return Fraction(7 * _UNITS["day"])
    if unit in _NANOS:
        return Fraction(1, 1000)
    if unit in ("month", "year"):
        raise QueryError(
            f"{name} must have a fixed length: "
            f'got {value_text(text)}; use windows.calendar("{unit}") for civil time'
        )
    if ours := in_our_words(text):
        raise QueryError(f"{name} has an unknown unit {word!r}: got {value_text(text)}; write {ours}")
    raise QueryError(
        f"{name} has an unknown unit {word!r}: "
        f"got {value_text(text)}; use days, hours, minutes, seconds, ms or us."
        + nearest(word, [*_UNITS, "week"])
    )
