"""The counters of a streaming query.

Each step of a key group adds a row with its counters to the results. Spark sums them up as observed metrics,
which are part of every `StreamingQueryProgress`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from muntin.connectors.spark.group_state import Stored
from muntin.errors import QueryError
from muntin.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import Column, Row
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["COUNTED", "COUNTERS", "StreamStats", "counted", "metrics", "metrics_name", "stats", "time_of"]


@dataclass(frozen=True, slots=True)
class StreamStats:
    """Counters of a streaming query over all its key groups; printing it shows them line by line."""

    batch: int
    tuples: int
    late: int
    bad: int
    errors: int
    windows: int
    updates: int
    retractions: int
    update_combines: int
    """Tuples that joined a partial aggregate of their slice."""
    merge_combines: int
    """Partial aggregates of slices that were combined, mostly into windows."""
    keys: int
    slices: int
    kept_tuples: int
    state_bytes: int
    written_bytes: int
    refused_changes: int
    newest: dt.datetime | None
    watermark: dt.datetime | None

    @property
    def watermark_lag(self) -> dt.timedelta | None:
        """The time from the watermark to the newest tuple."""
        if self.newest is None or self.watermark is None:
            return None
        return self.newest - self.watermark

    def __str__(self) -> str:
        lines = [(f.name, getattr(self, f.name)) for f in fields(self)]
        lines.append(("watermark_lag", self.watermark_lag))
        return "\n".join(f"{name.replace('_', ' '):>16}: {_shown(value)}" for name, value in lines)


TIMES = ("newest", "watermark")
GREATEST = (*TIMES, "refused_changes")
"""Counters that are the same for all key groups, or of which the greatest counts."""
SUMMED = tuple(f.name for f in fields(StreamStats) if f.name not in ("batch", *GREATEST))
COUNTERS = (*SUMMED, *GREATEST)
COUNTED = "counted"
"""The column with the values of COUNTERS, as text: one for all, since each column takes time on its way."""


def _shown(value: object) -> str:
    if value is None:
        return "none yet"
    return f"{value:,}" if isinstance(value, int) else str(value)


def counted(stored: Stored, written: int) -> str:
    """The values of COUNTERS of a key group after a step that wrote this number of bytes."""
    state = stored.operator.state
    of_state = {
        "keys": len(state.keys),
        "slices": len(state.slices),
        "kept_tuples": 0 if state.tuples is None else len(state.tuples),
        "state_bytes": stored.nbytes,
        "written_bytes": written,
        "newest": state.newest,
        "watermark": stored.operator.header.watermark,
        "refused_changes": stored.refused,
    }
    values = [of_state[name] if name in of_state else getattr(state.metrics, name) for name in COUNTERS]
    return ",".join(map(str, values))


def metrics_name(query: QuerySpec) -> str:
    """The beginning of the name of a query's metrics; a stream may have several queries."""
    return f"muntin_{query.fingerprint()[:12]}"


def metrics() -> list[Column]:
    """The counters of the stream from those of the key groups."""
    from pyspark.sql import functions as f

    values = {
        name: f.split_part(COUNTED, f.lit(","), f.lit(i + 1)).cast("long") for i, name in enumerate(COUNTERS)
    }
    return [(f.max if name in GREATEST else f.sum)(value).alias(name) for name, value in values.items()]


def stats(query: QuerySpec, running: StreamingQuery) -> StreamStats:
    """The counters after the latest micro-batch that has any."""
    if not hasattr(running, "recentProgress"):
        raise QueryError(
            f"stats takes a running stream: got a {type(running).__name__}; pass what start() returns: "
            "running = events.transform(query).writeStream...start()"
        )
    begin = metrics_name(query)
    for progress in reversed(running.recentProgress):
        rows = [_by_name(row) for name, row in progress.observedMetrics.items() if name.startswith(begin)]
        rows = [row for row in rows if row.get("tuples") is not None]
        if rows:  # several, where the query runs more than once in a stream
            summed = {name: int(sum(row[name] for row in rows)) for name in SUMMED}
            greatest = {name: max(row[name] for row in rows) for name in GREATEST}
            times = {name: time_of(greatest[name]) for name in TIMES}
            return StreamStats(batch=progress.batchId, **(summed | greatest | times))
    if running.lastProgress is None:
        raise QueryError("the stream has not finished a micro-batch yet; ask again later")
    raise QueryError(
        "this stream does not run the query, or hands it to Spark's own window(); "
        "ask with the query that was transformed, or look at lastProgress"
    )


def _by_name(row: Row | None) -> dict[str, Any]:
    """The counters by name; Spark Connect gives a row of values and a row of names."""
    if row is None:
        return {}
    values = row.asDict()
    if "schema" not in values:
        return values
    return dict(zip((field["name"] for field in values["schema"]["fields"]), values["values"], strict=True))


def time_of(micros: int | None) -> dt.datetime | None:
    """The time of a number of microseconds since 1970; None for none yet, and for the end of time."""
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    try:
        return None if micros is None else epoch + dt.timedelta(microseconds=micros)
    except OverflowError:  # the beginning or the end of time
        return None
