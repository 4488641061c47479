"""A single tumbling window over a stream by Spark's own `window()`.

Spark's operator has no state in Python, and is faster up to tens of thousands of keys. Tuples are late, and
windows complete, by the same watermark. This holds in the output mode append only: in the others `window()`
shows windows that are not complete, so they are refused.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DecimalType, StructField, StructType

from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.jvm.query_columns import MARK, QueryColumns, bad_time_message
from muntin.connectors.spark.watermark import never_shared
from muntin.query import QuerySpec
from muntin.query.forms import fingerprint_form, source_form
from muntin.slicing.binding import Binding
from muntin.timeline import NEG_INF
from muntin.windows.periodic import Periodic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["by_builtin_window"]

APPEND_ONLY = (
    'windows are complete in the output mode append only: for update use transform(query, plan="packed")'
)
"""A name in the plan, which Spark shows in its error."""

_DECIMALS = [DecimalType(digits, behind) for digits in range(1, 39) for behind in range(digits + 1)]
_FIELDS = 4
"""Decimals in a seal: there are 3 * 10**11 different seals."""


def by_builtin_window(query: QuerySpec, binding: Binding, frame: DataFrame) -> DataFrame:
    """The window results of a streaming DataFrame with a watermark."""
    ((name, window),) = query.windows
    assert isinstance(window, Periodic)
    time, kind, text = quoted(query.time), _seal(query), source_form(query)
    columns = QueryColumns.of(query, binding)
    length, offset = (f"{int(span)} microseconds" for span in (window.length, window.offset))
    # Null for all tuples. If Spark knew that, it would not group by it.
    odd, value = f.unix_micros(time) == NEG_INF, f.array().cast(kind)
    if query.bad == "fail":
        odd, value = time.isNull(), f.raise_error(bad_time_message(query)).cast(kind)
    # Not deterministic, so that Spark does not filter tuples without a time before it checks them.
    sealed = f.when(odd & never_shared(), value)
    windows = (
        frame.select(*columns.keys, time.alias("time"), *columns.inputs, sealed.alias(text))
        .groupBy(*columns.names, f.window("time", length, None, offset).alias(MARK), quoted(text))
        .agg(*columns.partials.lifts)
    )
    start, end = (f.unix_micros(f.col(MARK)[side]) for side in ("start", "end"))
    return _in_append_only(columns.rows(windows, f.lit(name), start, end), frame)


def _seal(query: QuerySpec) -> ArrayType:
    """The type of a column without values, different for each query.

    Spark compares the types of a checkpoint with those of the plan before it reads a tuple, and shows
    both with the names of their columns. So the name of the column is the text of the query.
    """
    form = fingerprint_form(query)
    unnamed = [item for _, item in (*form["windows"], *form["aggregates"])]
    asked = json.dumps([form["time"], form["keys"], form.get("columns"), unnamed])
    number = int.from_bytes(sha256(asked.encode()).digest())
    places = [number // len(_DECIMALS) ** i % len(_DECIMALS) for i in range(_FIELDS)]
    return ArrayType(StructType([StructField(f"_{i}", _DECIMALS[place]) for i, place in enumerate(places)]))


def _in_append_only(results: DataFrame, frame: DataFrame) -> DataFrame:
    """The same rows, which Spark refuses to write in the output modes update and complete.

    The mode is not known here, but Spark joins two streams in the mode append only. Spark plans a limit of
    no rows as an empty table: nothing is joined, and the source is not read again.
    """
    joined = frame.alias(APPEND_ONLY).crossJoin(frame.select(f.lit(1)))
    # A limit makes columns nullable; an empty array has exactly the given types.
    nothing = f.inline(f.array().cast(ArrayType(results.schema, containsNull=False)))
    return results.union(joined.limit(0).select(nothing))
