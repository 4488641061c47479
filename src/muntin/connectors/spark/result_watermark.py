"""The watermark of results: with it another operator of the same streaming query can read them.

Spark gives every operator of a streaming query the same two watermarks: rows are late below that of the last
micro-batch, and windows close at that of this one. Results with an end between the two are emitted in this
micro-batch. So for the next operator no result is late, and none is missing when a window closes.

This holds for windows that are emitted once, by the first watermark at or after their end. Their column
`window` gets the metadata of a column of Spark's own `window()`: that of a window, and that of the watermark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.connectors.spark.plan_text import plan_of
from muntin.connectors.spark.watermark import MARK, delay_of
from muntin.errors import QueryError
from muntin.query import QuerySpec
from muntin.windows.base import ContextFreeWindow, Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["require_watermark", "with_watermark_of"]

RESULTS = "results of this muntin query"
"""The alias of Muntin's results in Spark's plans; no table or file has this name."""
TIME_WINDOW = "spark.timeWindow"
"""Spark's key in the metadata of a column that `window()` made: `window_time` and `window` read it."""
MILLISECOND = 1000


@dataclass(frozen=True)
class Rule:
    """A reason why the results of a query have no watermark."""

    applies: Callable[[QuerySpec, DataFrame, bool], object]
    reason: str


def _any(wanted: Callable[[Window], object]) -> Callable[[QuerySpec, DataFrame, bool], bool]:
    return lambda query, frame, changing: any(wanted(window) for _, window in query.windows)


RULES = (
    Rule(lambda q, f, c: c, "the windows may change while the stream runs"),
    Rule(lambda q, f, c: q.allowed_lateness, "with allowed_lateness windows are emitted again"),
    Rule(lambda q, f, c: q.early is not None, "with early= windows are emitted again"),
    Rule(
        _any(lambda w: not isinstance(w, ContextFreeWindow) or w.on_measure),
        "windows that follow the tuples (sessions, count windows, frames) may be emitted after a watermark "
        "that has passed their end",
    ),
    Rule(_any(lambda w: w.emits_empty), "empty windows are emitted when a later tuple of the key arrives"),
    Rule(
        _any(lambda w: any(span % MILLISECOND for span in w.spans())),
        "windows have edges between two milliseconds, the unit of Spark's watermark",
    ),
    Rule(
        lambda q, f, c: delay_of(f, q.time) is None,
        "the time column lost the metadata of its watermark in a Python function",
    ),
)
"""Why the results of a query have no watermark; the first one counts."""


def with_watermark_of(query: QuerySpec, frame: DataFrame, results: DataFrame, changing: bool) -> DataFrame:
    """The results of a stream under their alias, with the watermark of the stream where they can have it."""
    for rule in RULES:
        if rule.applies(query, frame, changing):
            return results.alias(f"{RESULTS}: {rule.reason}")
    delay = delay_of(frame, query.time) or 0
    marked = results.withMetadata("window", {TIME_WINDOW: True, MARK: delay // MILLISECOND})
    return marked.alias(RESULTS)


def require_watermark(query: QuerySpec, frame: DataFrame) -> None:
    """A QueryError where the DataFrame has results of Muntin and the query's time lacks their watermark."""
    reasons = re.findall(rf"\b{RESULTS}(?:: ([^`\n]*))?", plan_of(frame))
    if not reasons:
        return
    if reason := next(filter(None, reasons), None):
        raise QueryError(
            "a query can read results in the same streaming query if each is emitted once, when the "
            f"watermark passes its end: of the first query, {reason}; write its results to a table or a "
            "topic, and read that in a second streaming query"
        )
    if query.time not in frame.columns or MARK not in (frame.schema[query.time].metadata or {}):
        raise QueryError(
            f'the time of results must be that of their windows: "{query.time}" has no watermark; write '
            f'results.withColumn("{query.time}", f.window_time("window")), and no withWatermark behind it'
        )
