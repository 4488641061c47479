"""A single plain tumbling window over a stream, handed to Spark's own `window()`.

There the built-in operator has no slices to share and no state in Python to keep, and is faster as long
as keys are not many. Tuples are judged late, and windows close, by the same watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.jvm.times import complaint
from muntin.connectors.spark.jvm.translation import MARK, results_of, translated
from muntin.query import QuerySpec
from muntin.slicing.binding import Binding
from muntin.windows import Periodic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["handed_over"]


def handed_over(query: QuerySpec, binding: Binding, frame: DataFrame) -> DataFrame:
    """The window results of a streaming DataFrame with a watermark."""
    ((name, window),) = query.windows
    assert isinstance(window, Periodic)
    time = quoted(query.time)
    tuples = frame
    if query.bad == "fail":
        # Not deterministic, or Spark would drop tuples without a time before it looks at them.
        here = f.spark_partition_id() >= 0
        fails = f.when(time.isNull() & here, f.raise_error(complaint(query)).cast("boolean"))
        tuples = frame.filter(fails.otherwise(f.lit(True)))
    parts = translated(query, binding)
    length, offset = (f"{int(span)} microseconds" for span in (window.length, window.offset))
    found = (
        tuples.select(*parts.keys, time.alias("time"), *parts.inputs)
        .groupBy(*parts.names, f.window("time", length, None, offset).alias(MARK))
        .agg(*parts.partials.lifts)
    )
    start, end = (f.unix_micros(f.col(MARK)[side]) for side in ("start", "end"))
    return results_of(query, binding, parts, found, f.lit(name), start, end)
