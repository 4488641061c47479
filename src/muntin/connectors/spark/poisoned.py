"""Watermarks of Spark that cannot be followed: moved by a tuple from the future, or never moved at all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from muntin.errors import DataError, SnapshotError
from muntin.query import AHEAD
from muntin.timeline import INF, Micros, format_instant, format_span

if TYPE_CHECKING:
    from muntin.connectors.spark.state import Stored
    from muntin.connectors.spark.step import Given, Job

__all__ = ["explained", "to_follow", "warn"]

LOG = logging.getLogger("muntin")

STUCK = (
    "no window can close: Spark's watermark has not moved, although tuples came in earlier micro-batches. "
    "Another watermark of this streaming query has had no tuples yet: that of a stream which is united or "
    "joined, or one that withWatermark sets on results of Muntin; write these to a table, and read that in "
    "a second streaming query"
)

_warned: set[str] = set()
"""Queries about whose watermark this worker process has warned."""


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
    if stored.operator.watermark > given.now + job.ahead:
        raise SnapshotError(
            "a checkpoint can go on where its watermark is not ahead of the clock: a tuple with a wrong time "
            f"has moved it to {format_instant(Micros(stored.operator.watermark))}, and has closed every "
            "window; give the stream a new checkpoint, and let its source begin behind what was read"
        )
    return None if newest is None else newest - job.delay


def explained(error: DataError, job: Job, given: Given) -> DataError:
    """The error of a step, with the cure where a tuple from the future is the cause."""
    if not _is_poisoned(job, given):
        return error
    return DataError(
        f"{_too_far(given)}; start the stream again from its checkpoint with "
        'events.transform(query, watermark="10 seconds") and no withWatermark, which ignores that watermark. '
        f"({error})"
    )


def warn(stored: Stored, job: Job, given: Given) -> None:
    """Log once that Spark's watermark makes all tuples late, or lets no window close."""
    if _is_poisoned(job, given):
        text = f"{_too_far(given)}. Tuples of today are late; transform(query, watermark=...) prevents it"
    elif _is_stuck(stored, job, given):
        text = STUCK
    else:
        return
    name = job.query.fingerprint()
    if name not in _warned:
        _warned.add(name)
        LOG.warning(text)


def _is_poisoned(job: Job, given: Given) -> bool:
    """Whether no guard has kept the watermark near the clock."""
    if job.ahead is not None or given.now is None or given.watermark is None:
        return False
    return given.now + AHEAD < given.watermark < INF


def _too_far(given: Given) -> str:
    at = format_instant(Micros(given.watermark or 0))
    return (
        f"Spark's watermark must not be more than {format_span(AHEAD)} ahead of the clock: it is at {at}, "
        "where a tuple with a wrong time has moved it"
    )


def _is_stuck(stored: Stored, job: Job, given: Given) -> bool:
    """Whether tuples of earlier micro-batches should have moved the watermark."""
    operator = stored.operator
    if given.watermark is not None or given.newest is None or operator.binding is None:
        return False
    return operator.slices.newest - job.delay > 1000  # Spark counts from 1970 on, in milliseconds
