"""Faulty watermarks of Spark: moved by a tuple from the future, or never moved at all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from muntin.errors import DataError, SnapshotError
from muntin.query import MAX_AHEAD
from muntin.timeline import INF, Micros, format_instant, format_span

if TYPE_CHECKING:
    from muntin.connectors.spark.group_state import Stored
    from muntin.connectors.spark.step import Given, Job

__all__ = ["usable_watermark", "warn_once", "with_cure"]

LOG = logging.getLogger("muntin")

STUCK = (
    "no window can close: Spark's watermark has not moved, although earlier micro-batches had tuples. "
    "Another watermark of this streaming query has had no tuples yet: that of a united or joined stream, or "
    "one that withWatermark sets on results of Muntin, which carry the first one: leave it out, and take "
    'f.window_time("window") as their time'
)

_warned: set[str] = set()
"""Fingerprints of the queries that this worker process has warned about."""


def usable_watermark(stored: Stored, job: Job, given: Given) -> int | None:
    """The watermark of this step: Spark's, or one that is computed here where Spark's is in the future.

    With a guard, no tuple moves Spark's watermark more than `ahead` beyond the clock. A watermark further
    ahead comes from a checkpoint that was written without a guard, and Spark never moves it back. It is
    replaced by what Spark would compute: the newest tuple since the guard was added, minus the delay.
    """
    watermark, newest = given.watermark, stored.newest_guarded
    if job.ahead is None or given.now is None:
        return watermark
    if given.newest is not None:
        stored.newest_guarded = given.newest if newest is None else max(newest, given.newest)
    if watermark is None or watermark == INF or watermark <= given.now + job.ahead:
        return watermark
    watermark = stored.operator.header.watermark
    if watermark > given.now + job.ahead:
        raise SnapshotError(
            "a checkpoint cannot continue if its watermark is ahead of the clock: a tuple with a wrong time "
            f"has moved it to {format_instant(Micros(watermark))}, which has closed every "
            "window; give the stream a new checkpoint, and start its source after the tuples already read"
        )
    return None if newest is None else newest - job.delay


def with_cure(error: DataError, job: Job, given: Given) -> DataError:
    """The error of a step, with a cure if a tuple from the future caused it."""
    if not _is_in_future(job, given):
        return error
    return DataError(
        f"{_too_far(given)}; start the stream again from its checkpoint with "
        'events.transform(query, watermark="10 seconds") and no withWatermark, which ignores that watermark. '
        f"({error})"
    )


def warn_once(stored: Stored, job: Job, given: Given) -> None:
    """Log once that Spark's watermark makes all tuples late, or lets no window close."""
    text = STUCK
    if _is_in_future(job, given):
        text = f"{_too_far(given)}. Current tuples are late; transform(query, watermark=...) prevents it"
    elif not _is_stuck(stored, job, given):
        return
    name = job.query.fingerprint()
    if name not in _warned:
        _warned.add(name)
        LOG.warning(text)


def _is_in_future(job: Job, given: Given) -> bool:
    """Whether the watermark is far ahead of the clock, and no guard corrects it."""
    if job.ahead is not None or given.now is None or given.watermark is None:
        return False
    return given.now + MAX_AHEAD < given.watermark < INF


def _too_far(given: Given) -> str:
    return (
        f"Spark's watermark must not be more than {format_span(MAX_AHEAD)} ahead of the clock: it is at "
        f"{format_instant(Micros(given.watermark or 0))}, where a tuple with a wrong time has moved it"
    )


def _is_stuck(stored: Stored, job: Job, given: Given) -> bool:
    """Whether tuples of earlier micro-batches should have moved the watermark."""
    operator = stored.operator
    if given.watermark is not None or given.newest is None or operator.binding is None:
        return False
    return operator.state.newest - job.delay > 1000  # Spark counts milliseconds from 1970 on
