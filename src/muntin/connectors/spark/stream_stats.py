"""What a streaming query has done so far: counters that ride along with the results.

Each step of a key group tells its counters in a row of its own. Spark adds them up as observed metrics,
which stand in every `StreamingQueryProgress`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from muntin.connectors.spark.state import Stored
from muntin.errors import QueryError
from muntin.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import Column, Row
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["COUNTERS", "StreamStats", "counted", "metrics", "metrics_name", "stats"]

SUMMED = (
    "tuples", "late", "bad", "errors", "windows", "updates", "retractions", "keys", "slices", "kept_tuples",
    "state_bytes", "written_bytes",
)  # fmt: skip
GREATEST = ("newest", "watermark", "refused_changes")
COUNTERS = (*SUMMED, *GREATEST)


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
        """How far the watermark is behind the newest tuple."""
        if self.newest is None or self.watermark is None:
            return None
        return self.newest - self.watermark

    def __str__(self) -> str:
        lines = [(f.name, getattr(self, f.name)) for f in fields(self)]
        lines.append(("watermark_lag", self.watermark_lag))
        return "\n".join(f"{name.replace('_', ' '):>16}: {_shown(value)}" for name, value in lines)


def _shown(value: object) -> str:
    if value is None:
        return "none yet"
    return f"{value:,}" if isinstance(value, int) else str(value)


def counted(stored: Stored, written: int) -> dict[str, int | None]:
    """The counters of a key group after a step that wrote so many bytes."""
    operator = stored.operator
    metrics, slices = operator.metrics, operator.slices
    kept = slices.kept
    return {
        "tuples": metrics.tuples,
        "late": metrics.late,
        "bad": operator.arrivals.bad,
        "errors": metrics.errors,
        "windows": metrics.windows,
        "updates": metrics.updates,
        "retractions": metrics.retractions,
        "keys": len(operator.keys),
        "slices": len(slices.table),
        "kept_tuples": 0 if kept is None else len(kept.tuples),
        "state_bytes": stored.nbytes,
        "written_bytes": written,
        "newest": slices.newest,
        "watermark": operator.watermark,
        "refused_changes": stored.refused,
    }


def metrics_name(query: QuerySpec) -> str:
    """What the names of a query's metrics begin with; several queries may be part of one stream."""
    return f"muntin_{query.fingerprint()[:12]}"


def metrics() -> list[Column]:
    """How the counters of the key groups become those of the stream."""
    from pyspark.sql import functions as f

    return [f.sum(name).alias(name) for name in SUMMED] + [f.max(name).alias(name) for name in GREATEST]


def stats(query: QuerySpec, running: StreamingQuery) -> StreamStats:
    """The counters after the latest micro-batch that told them."""
    begin = metrics_name(query)
    for progress in reversed(running.recentProgress):
        rows = [_told(row) for name, row in progress.observedMetrics.items() if name.startswith(begin)]
        told = [row for row in rows if row.get("tuples") is not None]
        if told:
            return _stats(progress.batchId, _together(told))
    if running.lastProgress is None:
        raise QueryError("the stream has not finished a micro-batch yet; ask again later")
    raise QueryError(
        "this stream does not run the query, or hands it to Spark's own window(); "
        "ask with the query that was transformed, or look at lastProgress"
    )


def _told(row: Row | None) -> dict[str, Any]:
    """The counters by name; Spark Connect gives a row of values and a row of names."""
    if row is None:
        return {}
    found = row.asDict()
    if "schema" in found:
        return dict(zip((field["name"] for field in found["schema"]["fields"]), found["values"], strict=True))
    return found


def _together(told: list[dict[str, Any]]) -> dict[str, Any]:
    """The counters of a query that runs more than once in a stream."""
    found = {name: sum(row[name] for row in told) for name in SUMMED}
    return found | {name: max(row[name] for row in told) for name in GREATEST}


def _stats(batch: int, told: dict[str, Any]) -> StreamStats:
    counters = {name: int(value) for name, value in told.items() if name not in ("newest", "watermark")}
    newest, watermark = _time(told["newest"]), _time(told["watermark"])
    return StreamStats(batch=batch, newest=newest, watermark=watermark, **counters)


def _time(micros: int | None) -> dt.datetime | None:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    try:
        return None if micros is None else epoch + dt.timedelta(microseconds=micros)
    except OverflowError:  # the beginning or the end of time
        return None
