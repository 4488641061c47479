"""Muntin on Spark: window results of streaming and batch DataFrames.

import muntin as mt

spark = mt.spark.session()
results = events.transform(query, watermark="10 seconds")
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING

from muntin.connectors.spark.input_columns import check_columns, with_columns
from muntin.connectors.spark.result_rows import bad, late, latest, windows
from muntin.connectors.spark.spark_session import session
from muntin.connectors.spark.stream_stats import StreamStats
from muntin.errors import QueryError, value_text
from muntin.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from muntin.connectors.spark.query_changes import Controlled
    from muntin.connectors.spark.state_view import StreamState
    from muntin.planning.plan import Explanation

__all__ = [
    "StreamStats",
    "bad",
    "explain",
    "guarded",
    "late",
    "latest",
    "session",
    "state",
    "transform",
    "windows",
]


def transform(
    query: QuerySpec,
    frame: DataFrame,
    plan: str = "auto",
    *,
    tie: str | Column | None = None,
    control: str | None = None,
    watermark: object = None,
    watermark_from: str | None = None,
) -> DataFrame:
    """The window results of a DataFrame: of a streaming one as windows complete, else of the whole of it.

    `plan` forces the packed plan or that of the JVM, where the query can run there. `tie` is a column
    that orders tuples of one time. `control` is the directory with changes of the windows of a stream.
    `watermark` is the delay of the watermark behind the newest tuple; tuples from the future do not move the
    watermark. `watermark_from` is the column that had the watermark before a Python function computed the
    time column from it.
    """
    _require_frame(frame)
    from muntin.connectors.spark.guard import max_ahead_of, watermark_delay, with_watermark
    from muntin.connectors.spark.hashing import tie_column
    from muntin.connectors.spark.plan_choice import Case, choose
    from muntin.connectors.spark.result_watermark import require_watermark, with_watermark_of
    from muntin.connectors.spark.watermark import check_watermark
    from muntin.connectors.spark.workers import check_workers

    frame = with_columns(query, frame)
    check_columns(query, frame)
    if watermark is not None:
        watermark_delay(watermark)  # also where the DataFrame is bounded, and ignores it
    if frame.isStreaming:
        require_watermark(query, frame)
        if watermark is not None:
            frame = with_watermark(query, frame, watermark)
    case = Case(query, frame, changing=control is not None)
    in_jvm = choose(case, plan).plan == "jvm"
    if tie is not None:
        tie_column(frame, tie)  # also where no result depends on it
    if not in_jvm:
        check_workers(frame.sparkSession)
    if frame.isStreaming:
        from muntin.connectors.spark.jvm.builtin_window import by_builtin_window
        from muntin.connectors.spark.packed_plan import stream_packed

        check_watermark(query, frame, watermark_from)
        max_ahead_of(query, frame)
        if in_jvm:
            results = by_builtin_window(query, case.binding, frame)
        else:
            results = stream_packed(query, frame, tie, control)
        return with_watermark_of(query, frame, results, changing=control is not None)
    if control is not None:
        raise QueryError(
            "only the windows of a stream can change, and this DataFrame is bounded; "
            "transform it with the query itself"
        )
    from muntin.connectors.spark.jvm.bounded import bounded_in_jvm
    from muntin.connectors.spark.packed_plan import bounded_packed

    return bounded_in_jvm(query, case.binding, frame) if in_jvm else bounded_packed(query, frame, tie)


def explain(query: QuerySpec, frame: DataFrame, plan: str = "auto", verbose: bool = False) -> Explanation:
    """The plan of the query on this DataFrame; `verbose` with its steps and the reasons for it."""
    _require_frame(frame)
    from muntin.connectors.spark import explaining

    frame = with_columns(query, frame)
    check_columns(query, frame)
    return explaining.explain(query, frame, plan, verbose)


def guarded(events: DataFrame, query: QuerySpec | Controlled) -> DataFrame:
    """Protect a watermark that you set with `withWatermark` from tuples from the future.

    mt.spark.guarded(events, query).withWatermark("ts", "10 seconds").transform(query)

    A tuple that is more than `max_ahead` ahead of the clock, by default 366 days, is a bad tuple of the
    query. `events.transform(query, watermark="10 seconds")` does both. A bounded DataFrame is returned
    as it is.

    Args:
        events: A streaming DataFrame, before `withWatermark`.
        query: The query; its time column, `max_ahead` and `bad` count here.
    """
    _require_frame(events)
    from muntin.connectors.spark.guard import guarded as guard

    wanted = getattr(query, "query", query)  # that of a Controlled
    if not isinstance(wanted, QuerySpec):
        raise QueryError(
            f"guarded needs a query: got a {type(wanted).__name__}; write mt.spark.guarded(events, query)"
        )
    return guard(events, wanted.validated())


def state(
    spark: SparkSession,
    checkpoint: str | PathLike[str],
    batch: int | None = None,
    *,
    operator: int | None = None,
    query: QuerySpec | Controlled | None = None,
) -> StreamState:
    """The state of a streaming query, read from its checkpoint; the stream may run meanwhile.

    >>> import muntin as mt
    >>> found = mt.spark.state(spark, "/checkpoints/shops")  # doctest: +SKIP
    >>> print(found)  # doctest: +SKIP
    checkpoint    /checkpoints/shops
    micro-batch   6; 0 to 6 can be read
    watermark     2026-03-01 00:04:05+00:00
    ...
    >>> found.open_windows().where("shop = 'north'").show()  # doctest: +SKIP

    Args:
        spark: The session; it may be that of the stream or any other one.
        checkpoint: The folder of the stream's `checkpointLocation`.
        batch: A committed micro-batch; the last one if left out. Spark keeps the state of the last 100.
        operator: The number of Spark's operator, where a stream has several Muntin queries.
        query: The query, where it has Python functions, which the state cannot hold.
    """
    if not hasattr(spark, "readStream"):
        raise QueryError(
            f"state takes a session, then a checkpoint: got a {type(spark).__name__} as session; "
            'write mt.spark.state(spark, "/checkpoints/shops")'
        )
    if not isinstance(checkpoint, str | PathLike):
        raise QueryError(
            f"checkpoint must be the path of a folder: got {value_text(checkpoint)}; give the one that "
            '.option("checkpointLocation", ...) names'
        )
    from muntin.connectors.spark.checkpoints import find
    from muntin.connectors.spark.state_view import state_at

    asked = getattr(query, "query", query)  # that of a Controlled
    if asked is not None and not isinstance(asked, QuerySpec):
        raise QueryError(f"query must be the query of the stream: got a {type(query).__name__}")
    return state_at(find(spark, fspath(checkpoint), batch, operator), asked)


def _require_frame(frame: object) -> None:
    if not hasattr(frame, "isStreaming"):
        raise QueryError(
            f"a query transforms a Spark DataFrame: got a {type(frame).__name__}; "
            "use .run(table) for tables in memory"
        )
