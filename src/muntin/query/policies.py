"""Policies for the emission of results."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.errors import QueryError, value_text
from muntin.timeline import Micros, SpanLike, span

MAX_AHEAD = Micros(366 * 86_400_000_000)
"""The default of `max_ahead` where the watermark follows the data: a leap year.

Times of sensors and schedules may lie in the near future; a wrong year or unit mostly lies further ahead,
and would move the watermark to a time at which all later tuples are late.
"""

MAX_WINDOWS = 10_000_000
"""The default of `max_windows`: about a gigabyte of results. The limit rises with the input of a step."""


@dataclass(frozen=True, slots=True)
class OnClose:
    """Emit a window when the watermark says that it is complete."""


@dataclass(frozen=True, slots=True)
class OnChange:
    """Emit a complete window only if its values differ from those of the window before it."""


@dataclass(frozen=True, slots=True)
class Every:
    """Emit open windows too, whenever the watermark passes a multiple of the period."""

    period: int


@dataclass(frozen=True, slots=True)
class EachBatch:
    """Emit open windows too, after each batch that changed them."""


def on_close() -> OnClose:
    """Emit each window once it is complete; the default.

    >>> on_close()
    OnClose()
    """
    return OnClose()


def on_change() -> OnChange:
    """Emit a complete window only if some aggregate differs from the window of this name and key before it.

    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(most=a.max("v")).on("t", emit=mt.on_change())
    >>> query.run({"t": [1, 12, 25, 33], "v": [5, 5, 5, 7]})
    window_name  window_start  window_end  most
    ten                     0          10     5
    ten                    30          40     7
    2 rows
    """
    return OnChange()


def every(period: SpanLike) -> Every:
    """Early results whenever the watermark passes a multiple of `period` of event time.

    >>> every("10 seconds")
    Every(period=Micros(10000000))
    """
    length = span(period, "period")
    if length <= 0:
        raise QueryError(
            f"period must be positive: got {value_text(period)}; use each_batch() for every change"
        )
    return Every(length)


def each_batch() -> EachBatch:
    """Early results after each batch, for the windows that it changed.

    >>> each_batch()
    EachBatch()
    """
    return EachBatch()
