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

    from muntin.query import QuerySpec

__all__ = ["session", "transform"]


def transform(query: QuerySpec, frame: DataFrame) -> DataFrame:
    """The window results of a DataFrame: of a streaming one as windows close, else of the whole of it."""
    if not hasattr(frame, "isStreaming"):
        raise QueryError(
            f"a query transforms a Spark DataFrame: got a {type(frame).__name__}; "
            "use .run(table) for tables in memory"
        )
    if frame.isStreaming:
        from muntin.connectors.spark.streaming import stream

        return stream(query, frame)
    from muntin.connectors.spark.batch import whole

    return whole(query, frame)
