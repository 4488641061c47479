"""One step of a key group: take in payloads, advance the watermark, return rows. It does not need Spark."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from muntin.connectors.spark.group_state import Stored
from muntin.connectors.spark.packed_rows import take_in
from muntin.connectors.spark.query_changes import apply_texts
from muntin.connectors.spark.result_rows import BAD, LATE, tuple_rows, window_rows
from muntin.connectors.spark.watermark_faults import usable_watermark, warn_once, with_cure
from muntin.connectors.spark.workers import OncePerWorker
from muntin.errors import DataError
from muntin.query import WINDOW_NAME, QuerySpec
from muntin.slicing.operator import SlicingOperator
from muntin.timeline import INF

__all__ = ["Given", "Job", "step"]


@dataclass(frozen=True)
class Job(OncePerWorker):
    """The query, and the columns of the input and of the results: the same for all steps of all groups."""

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
    """The input of a group in one micro-batch."""

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
    """Rows of the outcome; `stored` has the state after the step."""
    operator = stored.operator
    operator.bind(job.schema)
    if (now := given.now) is not None:
        operator.arrivals.clock = lambda: now / 1_000_000
    warn_once(stored, job, given)
    apply_texts(stored, given.changes, job.outcome)
    results = [take_in(operator, job.schema, given.payloads, given.newest, stored.changes)]
    watermark = usable_watermark(stored, job, given)
    if watermark == INF:
        results.append(operator.finish())
    elif watermark is not None:
        results.append(_advanced(operator, watermark, job, given))
    if _is_idle(stored, given):
        results.append(operator.close_idle())
    rows = [window_rows(table, job.outcome) for table in results if table.num_rows]
    keys = job.query.keys
    if job.query.late == "route" and operator.state.late_output:
        rows.append(tuple_rows(operator.take_late(), LATE, (*keys, WINDOW_NAME), job.outcome))
    if job.query.bad == "route" and operator.state.bad_output:
        rows.append(tuple_rows(operator.take_bad(), BAD, keys, job.outcome))
    return rows


def _advanced(operator: SlicingOperator, watermark: int, job: Job, given: Given) -> pa.Table:
    """The results of the watermark; windows that tuples cut wait one unit of time longer.

    Embedded, a tuple follows those of its time that arrived before it. Here tuples of one time are ordered
    by their values: a tuple may precede one at the watermark that has closed a window.
    """
    try:
        return operator.advance(watermark if operator.state.tuples is None else watermark - 1)
    except DataError as error:
        raise with_cure(error, job, given) from error.__cause__


def _is_idle(stored: Stored, given: Given) -> bool:
    """Whether the stream has been silent for `idle_after`; notes when it may have had tuples."""
    limit = stored.query.idle_after
    if limit is None:
        return False
    if given.newest is not None:
        stored.heard = given.clock
    if given.newest is not None or given.clock is None:
        return False
    if stored.heard is None:  # tuples arrived after the last heartbeat
        stored.heard = given.clock
    return given.clock - stored.heard >= limit
