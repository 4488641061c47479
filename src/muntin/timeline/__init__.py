"""The time axis: int64 microseconds inside, what the user writes and sees outside.

`muntin.timeline.spans` reads and writes lengths and points of time;
`muntin.timeline.column` translates the user's time column. For an integer time
column the unit inside is the column's own.
"""

from muntin.timeline.column import TimeColumn, TimeExtent, bare_number, epoch_unit
from muntin.timeline.spans import (
    INF,
    LIMIT,
    NEG_INF,
    InstantLike,
    LengthLike,
    Micros,
    SpanLike,
    format_instant,
    format_span,
    instant,
    span,
)

__all__ = [
    "INF",
    "LIMIT",
    "NEG_INF",
    "InstantLike",
    "LengthLike",
    "Micros",
    "SpanLike",
    "TimeColumn",
    "TimeExtent",
    "bare_number",
    "epoch_unit",
    "format_instant",
    "format_span",
    "instant",
    "span",
]
