"""A single plain tumbling window over a stream, handed to Spark's own `window()`.

There the built-in operator has no slices to share and no state in Python to keep, and is faster as long
as keys are not many. Tuples are judged late, and windows close, by the same watermark. That holds in the
output mode append: in the others `window()` shows windows that are not complete, and they are refused.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DecimalType, StructField, StructType

from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.jvm.times import complaint
from muntin.connectors.spark.jvm.translation import MARK, results_of, translated
from muntin.connectors.spark.watermark import RESULTS, never_shared
from muntin.query import QuerySpec
from muntin.query.forms import fingerprint_form, source_form
from muntin.slicing.binding import Binding
from muntin.timeline import NEG_INF
from muntin.windows import Periodic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["handed_over"]

APPEND_ONLY = (
    'windows are complete in the output mode append only: for update use transform(query, plan="packed")'
)
"""Spark shows it in its error, as a name in the plan."""

_DECIMALS = [DecimalType(digits, behind) for digits in range(1, 39) for behind in range(digits + 1)]
_FIELDS = 4
"""So many decimals in a row tell three hundred thousand million queries apart."""


def handed_over(query: QuerySpec, binding: Binding, frame: DataFrame) -> DataFrame:
    """The window results of a streaming DataFrame with a watermark."""
    ((name, window),) = query.windows
    assert isinstance(window, Periodic)
    time, kind, text = quoted(query.time), _seal(query), source_form(query)
    parts = translated(query, binding)
    length, offset = (f"{int(span)} microseconds" for span in (window.length, window.offset))
    # Null for all tuples, which Spark must not know, or it would not group by it.
    odd, value = f.unix_micros(time) == NEG_INF, f.array().cast(kind)
    if query.bad == "fail":
        odd, value = time.isNull(), f.raise_error(complaint(query)).cast(kind)
    # Not deterministic, so that Spark does not filter tuples without a time before it checks them.
    sealed = f.when(odd & never_shared(), value)
    found = (
        frame.select(*parts.keys, time.alias("time"), *parts.inputs, sealed.alias(text))
        .groupBy(*parts.names, f.window("time", length, None, offset).alias(MARK), quoted(text))
        .agg(*parts.partials.lifts)
    )
    start, end = (f.unix_micros(f.col(MARK)[side]) for side in ("start", "end"))
    return _in_append_only(results_of(query, binding, parts, found, f.lit(name), start, end), frame)


def _seal(query: QuerySpec) -> ArrayType:
    """A type that no other window or aggregates have, for a column without values.

    Spark compares the types of a checkpoint with those of the plan before it reads a tuple, and shows
    both with the names of their columns, so the query is the name.
    """
    form = fingerprint_form(query)
    unnamed = [item for _, item in (*form["windows"], *form["aggregates"])]
    asked = json.dumps([form["time"], form["keys"], form.get("columns"), unnamed])
    number = int.from_bytes(sha256(asked.encode()).digest())
    places = [number // len(_DECIMALS) ** i % len(_DECIMALS) for i in range(_FIELDS)]
    return ArrayType(StructType([StructField(f"_{i}", _DECIMALS[place]) for i, place in enumerate(places)]))


def _in_append_only(results: DataFrame, frame: DataFrame) -> DataFrame:
    """The same rows, which Spark refuses to write in the output modes update and complete.

    The mode is not known here, but Spark joins two streams in the mode append only. Of a limit of no
    rows only an empty table is left when a micro-batch is planned: nothing is joined, and the source is
    not read again.
    """
    joined = frame.alias(APPEND_ONLY).crossJoin(frame.select(f.lit(1)))
    # A limit makes columns nullable; those of an empty array have exactly the types that it is given.
    nothing = f.inline(f.array().cast(ArrayType(results.schema, containsNull=False)))
    return results.union(joined.limit(0).select(nothing)).alias(RESULTS)
