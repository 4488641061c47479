"""Muntin on Spark: window results of streaming and batch DataFrames.

import muntin as mt

spark = mt.spark.session()
results = events.withWatermark("ts", "10 seconds").transform(query)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.connectors.spark.settings import session
from muntin.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from muntin.planning.plan import Explanation
    from muntin.query import QuerySpec

__all__ = ["explain", "session", "transform"]


def transform(query: QuerySpec, frame: DataFrame, plan: str = "auto") -> DataFrame:
    """The window results of a DataFrame: of a streaming one as windows close, else of the whole of it.

    `plan` forces the packed plan or that of the JVM, where the query can run there.
    """
    _require_frame(frame)
    from muntin.connectors.spark.jvm_plan import Case, choose

    case = Case(query, frame)
    in_jvm = choose(case, plan).plan == "jvm"
    if frame.isStreaming:
        from muntin.connectors.spark.builtin_window import handed_over
        from muntin.connectors.spark.streaming import stream

        return handed_over(query, case.binding, frame) if in_jvm else stream(query, frame)
    from muntin.connectors.spark.batch import whole
    from muntin.connectors.spark.jvm_batch import whole_in_jvm

    return whole_in_jvm(query, case.binding, frame) if in_jvm else whole(query, frame)


def explain(query: QuerySpec, frame: DataFrame, plan: str = "auto") -> Explanation:
    """What would run on this DataFrame, where, and why."""
    _require_frame(frame)
    from muntin.connectors.spark import explaining

    return explaining.explain(query, frame, plan)


def _require_frame(frame: object) -> None:
    if not hasattr(frame, "isStreaming"):
        raise QueryError(
            f"a query transforms a Spark DataFrame: got a {type(frame).__name__}; "
            "use .run(table) for tables in memory"
        )
