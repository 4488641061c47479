"""One step of a key group: what arrived goes in, the watermark moves on, rows come out. No Spark in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from muntin.connectors.spark.packed_rows import take_in
from muntin.connectors.spark.query_changes import apply_texts, names_of
from muntin.connectors.spark.result_rows import bad_rows, late_rows, window_rows
from muntin.connectors.spark.state import Stored
from muntin.connectors.spark.watermark_faults import usable_watermark, warn_once, with_cure
from muntin.connectors.spark.workers import OncePerWorker
from muntin.errors import DataError
from muntin.query import QuerySpec
from muntin.slicing.operator import SlicingOperator
from muntin.timeline import INF

__all__ = ["Given", "Job", "step"]


@dataclass(frozen=True)
class Job(OncePerWorker):
    """What every step of every group needs to know: the query, the columns that go in and that come out."""

    query: QuerySpec
    schema: pa.Schema
    outcome: pa.Schema
    groups: int = 1
    ahead: int | None = None
    """How far ahead of the clock a tuple may be; None without a guard."""
    delay: int = 0
    """The delay of the watermark behind the newest tuple, if known."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a micro-batch brings to a group."""

    payloads: tuple[bytes, ...] = ()
    newest: int | None = None
    """The newest time among the tuples of the micro-batch, in all groups."""
    changes: tuple[str, ...] = ()
    clock: int | None = None
    """The time of day, where there is a heartbeat."""
    watermark: int | None = None
    """INF at the end of the stream."""
    now: int | None = None
    """The clock of the micro-batch; a repeated micro-batch has the same."""


def step(stored: Stored, job: Job, given: Given) -> list[pa.Table]:
    """Rows of the outcome; `stored` goes on to the state after the step."""
    operator = stored.operator
    operator.bind(job.schema)
    if (now := given.now) is not None:
        operator.arrivals.clock = lambda: now / 1_000_000
    warn_once(stored, job, given)
    stored.refused += apply_texts(operator, given.changes, operator.state.newest, job.outcome)
    stored.changes += tuple(sorted(names_of(given.changes)))
    results = [take_in(operator, job.schema, given.payloads, given.newest, stored.changes)]
    watermark = usable_watermark(stored, job, given)
    if watermark == INF:
        results.append(operator.finish())
    elif watermark is not None:
        results.append(_advanced(operator, watermark, job, given))
    if _is_idle(stored, given):
        results.append(operator.close_idle())
    rows = [window_rows(table, job.outcome) for table in results if table.num_rows]
    return rows + list(_routed(operator, job))


def _advanced(operator: SlicingOperator, watermark: int, job: Job, given: Given) -> pa.Table:
    try:
        return operator.advance(_safe(operator, watermark))
    except DataError as error:
        raise with_cure(error, job, given) from error.__cause__


def _safe(operator: SlicingOperator, watermark: int) -> int:
    """A watermark that tuples of the same time, ordered by their values, cannot undercut.

    Embedded, a tuple comes behind those of its time that came before it. Here it may come in front of
    a tuple at the watermark that has closed a window. So windows that tuples cut wait one unit longer.
    """
    return watermark if operator.state.tuples is None else watermark - 1


def _is_idle(stored: Stored, given: Given) -> bool:
    """Whether the stream has been silent for `idle_after`; takes note of when it was heard."""
    limit = stored.query.idle_after
    if limit is None:
        return False
    if given.newest is not None:
        stored.heard = given.clock
        return False
    if given.clock is None:
        return False
    if stored.heard is None:  # tuples came since the last heartbeat, no earlier than that
        stored.heard = given.clock
    return given.clock - stored.heard >= limit


def _routed(operator: SlicingOperator, job: Job) -> Iterator[pa.Table]:
    if job.query.late == "route" and operator.state.late_output:
        yield late_rows(operator.take_late(), job.query.keys, job.outcome)
    if job.query.bad == "route" and operator.state.bad_output:
        yield bad_rows(operator.take_bad(), job.query.keys, job.outcome)
