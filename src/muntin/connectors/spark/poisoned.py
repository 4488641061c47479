"""Watermarks of Spark that cannot be followed: moved by a tuple from the future, or never moved at all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from muntin.errors import DataError
from muntin.query import AHEAD
from muntin.timeline import INF, Micros, format_instant, format_span

if TYPE_CHECKING:
    from muntin.connectors.spark.state import Stored
    from muntin.connectors.spark.step import Given, Job

__all__ = ["explained", "to_follow", "warn_if_stuck"]

LOG = logging.getLogger("muntin")

_stuck: set[str] = set()
"""Queries of which this worker process has said that the watermark does not move."""


def to_follow(stored: Stored, job: Job, given: Given) -> int | None:
    """The watermark of this step: Spark's, or one of our own where Spark's is poisoned.

    Behind a guard no tuple moves Spark's watermark more than `ahead` beyond the clock. One that is there
    comes from a checkpoint that was written without the guard, and stays there for good. Then the newest
    tuple of the micro-batches since then counts, less the delay, as Spark would have it.
    """
    watermark, newest = given.watermark, stored.newest_guarded
    if job.ahead is None or given.now is None:
        return watermark
    if given.newest is not None:
        stored.newest_guarded = given.newest if newest is None else max(newest, given.newest)
    if watermark is None or watermark == INF or watermark <= given.now + job.ahead:
        return watermark
    return None if newest is None else newest - job.delay


def explained(error: DataError, job: Job, given: Given) -> DataError:
    """The error of a step, with the cure where a tuple from the future is the cause."""
    watermark, now = given.watermark, given.now
    if job.ahead is not None or now is None or watermark is None or not now + AHEAD < watermark < INF:
        return error
    return DataError(
        f"Spark's watermark must not be more than {format_span(AHEAD)} ahead of the clock: it is at "
        f"{format_instant(Micros(watermark))}, where a tuple with a wrong time has moved it; start the "
        'stream again from its checkpoint with events.transform(query, watermark="10 seconds") and no '
        f"withWatermark, which ignores that watermark. ({error})"
    )


def warn_if_stuck(stored: Stored, job: Job, given: Given) -> None:
    """Log that tuples of earlier micro-batches have not moved the watermark; no window can close."""
    operator = stored.operator
    if given.watermark is not None or given.newest is None or operator.binding is None:
        return
    name = job.query.fingerprint()
    if operator.slices.newest - job.delay > 1000 and name not in _stuck:  # as Spark counts, from 1970 on
        _stuck.add(name)
        LOG.warning(
            "no window can close: Spark's watermark has not moved, although tuples came in earlier "
            "micro-batches. Another watermark of this streaming query has had no tuples yet: that of a "
            "stream which is united or joined, or one that withWatermark sets on results of Muntin; write "
            "these to a table, and read that in a second streaming query"
        )
