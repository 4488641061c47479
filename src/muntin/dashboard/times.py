"""Event times as integers, and in words: microseconds of timestamps, the units of an integer column."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.timeline import INF

__all__ = ["in_words", "length_in_words", "units"]

LENGTHS = (
    (86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms")
)  # fmt: skip
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def units(column: pa.ChunkedArray | pa.Array) -> Any:
    """The times of a column as int64; nulls stay.

    >>> units(pa.array([dt.datetime(1970, 1, 1, 0, 0, 1)])).to_pylist(), units(pa.array([5])).to_pylist()
    ([1000000], [5])
    """
    if pa.types.is_temporal(column.type):
        column = pc.cast(column, pa.timestamp("us", getattr(column.type, "tz", None)), safe=False)
    return pc.cast(column, pa.int64())


def in_words(time: int | None, timed: bool) -> str:
    """A time as the page shows it.

    >>> in_words(60_000_000, timed=True), in_words(7, timed=False), in_words(None, timed=True)
    ('1970-01-01 00:01:00', '7', 'none yet')
    """
    if time is None or time <= -INF:
        return "none yet"
    if time >= INF:
        return "the end"
    if not timed:
        return f"{time:,}"
    try:
        return f"{EPOCH + dt.timedelta(microseconds=time):%Y-%m-%d %H:%M:%S}"
    except OverflowError:
        return f"{time:,} µs"


def length_in_words(length: int, timed: bool) -> str:
    """A length of event time, in at most two units.

    >>> length_in_words(5_400_000_000, timed=True), length_in_words(7, timed=False)
    ('1 h 30 min', '7')
    """
    if not timed:
        return f"{length:,}"
    parts: list[str] = []
    rest = length
    for size, unit in LENGTHS:
        if rest >= size and len(parts) < 2:
            parts.append(f"{rest // size:,} {unit}")
            rest %= size
    return " ".join(parts) or f"{length} µs"
