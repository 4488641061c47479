"""A single plain tumbling window over a stream, handed to Spark's own `window()`.

There the built-in operator has no slices to share and no state in Python to keep, and is faster as long
as keys are not many. Tuples are judged late, and windows close, by the same watermark. Only in the output
mode append, though: in the others `window()` shows windows that are not complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType

from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.jvm.times import complaint
from muntin.connectors.spark.jvm.translation import MARK, results_of, translated
from muntin.query import QuerySpec
from muntin.slicing.binding import Binding
from muntin.windows import Periodic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["handed_over"]

TOLD = 'windows of the output mode update are not complete: use transform(query, plan="packed")'
"""Spark shows it in its error, as a name in the plan."""


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
    return _in_append_only(results_of(query, binding, parts, found, f.lit(name), start, end))


def _in_append_only(results: DataFrame) -> DataFrame:
    """The same rows, which Spark refuses to write in the output mode update.

    The mode is not known here, but Spark allows no limit in that one. Of a limit of no rows only
    an empty table is left when a micro-batch is planned: the source is not read again.
    """
    # A limit makes columns nullable; those of an empty array have exactly the types that it is given.
    nothing = f.inline(f.array().cast(ArrayType(results.schema, containsNull=False)))
    return results.union(results.alias(TOLD).limit(0).select(nothing))
