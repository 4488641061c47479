"""A guard in front of Spark's watermark: a time too far ahead of the clock does not move it.

One tuple of the year 2100 would move the watermark there for good, since it is part of the checkpoint. So the
time column is null for such a tuple, and its time moves to the column BEYOND. The engine joins both again,
and treats the tuple as bad. The clock is that of the micro-batch: a repeated one decides the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.connectors.spark.input_columns import BEYOND, arrow_schema, resolved
from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.watermark import require_none, require_timestamp
from muntin.errors import QueryError
from muntin.query import MAX_AHEAD, QuerySpec
from muntin.slicing.binding import require
from muntin.timeline import Micros, format_span, span

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["guarded", "max_ahead_of", "watermark_delay", "with_watermark"]

_NOTE = "muntin.guard"
"""A key in the metadata of the column BEYOND, under which the guard names its query."""


def guarded(events: DataFrame, query: QuerySpec) -> DataFrame:
    """The events with times too far ahead of the clock moved from the time column to BEYOND."""
    if not events.isStreaming:
        return events
    require_none(events, "leave one of the two out")
    if BEYOND in events.columns:
        _check_guard(query, events)
        return events
    events = resolved((query.time,), events)
    require((query.time,), arrow_schema(events, "UTC"))
    kind = events.schema[query.time].dataType
    require_timestamp(query.time, kind)
    limit = query.max_ahead or MAX_AHEAD
    time, nothing = quoted(query.time), f.lit(None).cast(kind)
    ahead = f.unix_micros(time) > f.unix_micros(f.current_timestamp()) + f.lit(int(limit))
    if query.bad == "fail":
        refused = f.raise_error(_complaint(query, time, limit)).cast(kind)
        columns = {BEYOND: nothing, query.time: f.when(ahead, refused).otherwise(time)}
    else:
        columns = {BEYOND: f.when(ahead, time), query.time: f.when(ahead, nothing).otherwise(time)}
    return events.withColumns(columns).withMetadata(BEYOND, {_NOTE: _terms(query)})


def _terms(query: QuerySpec) -> str:
    """The time column, the limit and the policy of a guard, as the query writes them."""
    bad = 'bad="fail"' if query.bad == "fail" else 'bad="skip" or bad="route"'
    return f'on("{query.time}"), max_ahead="{format_span(query.max_ahead or MAX_AHEAD)}" and {bad}'


def _check_guard(query: QuerySpec, frame: DataFrame) -> None:
    """A QueryError where a guard was made for a query that treats other tuples as bad.

    Functions in Python drop the metadata: after them, the guard is assumed to be the right one.
    """
    noted = (frame.schema[BEYOND].metadata or {}).get(_NOTE)
    if noted not in (None, _terms(query)):
        raise QueryError(
            f"a guard must be that of the query: it is for {noted}, and the query has {_terms(query)}; write "
            "mt.spark.guarded(events, query) with this query, and set the watermark behind it"
        )


def _complaint(query: QuerySpec, time: Column, limit: int) -> Column:
    """The message of the engine about a tuple that is too far ahead of the clock."""
    rule = f'the column "{query.time}" must not be more than {format_span(limit)} ahead of the clock ('
    cure = '; repair it, give .on() a longer max_ahead= if it is right, or choose bad="skip" or bad="route"'
    now = f.date_format(f.current_timestamp(), "yyyy-MM-dd'T'HH:mm:ssXXX")
    return f.concat(f.lit(rule), now, f.lit("): got "), time.cast("string"), f.lit(cure))


def max_ahead_of(query: QuerySpec, frame: DataFrame) -> int | None:
    """How far ahead of the clock a tuple of a stream may be; None without a guard."""
    if BEYOND in frame.columns:
        _check_guard(query, frame)
        return query.max_ahead or MAX_AHEAD
    if query.max_ahead is not None:
        raise QueryError(
            f'max_ahead needs a guard in front of Spark\'s watermark: got "{format_span(query.max_ahead)}"; '
            'write events.transform(query, watermark="10 seconds"), or mt.spark.guarded(events, query) '
            "before withWatermark"
        )
    return None


def with_watermark(query: QuerySpec, frame: DataFrame, delay: object) -> DataFrame:
    """The DataFrame with a guarded watermark on the query's time."""
    length = watermark_delay(delay)
    time = query.time.replace("`", "``")  # as one name: Spark would read "event.ts" as the field of a struct
    return guarded(frame, query).withWatermark(f"`{time}`", f"{int(length)} microseconds")


def watermark_delay(delay: object) -> Micros:
    """The delay of a watermark, as a user gives it."""
    length = span(delay, "watermark")
    if not isinstance(length, Micros) or length < 0:
        raise QueryError(
            f"watermark must be a duration, the delay behind the newest tuple: got {delay!r}; "
            'write watermark="10 seconds"'
        )
    return length
