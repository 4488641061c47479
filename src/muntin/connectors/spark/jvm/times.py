"""Event time in Spark's columns: as integers inside, in the type of the time column outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

from muntin.connectors.spark.jvm.expressions import quoted
from muntin.query import QuerySpec
from muntin.timeline import LIMIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["TIME", "complaint", "inside", "told", "with_time"]

TIME = "time"
"""The column of event time as integers: microseconds, or units of an integer time column."""

_EPOCH = "1970-01-01"


def with_time(query: QuerySpec, frame: DataFrame) -> tuple[DataFrame, Column]:
    """The tuples that are not bad, and their time; where bad tuples are fatal, reading it fails on one."""
    kind = frame.schema[query.time].dataType
    time = inside(quoted(query.time), kind)
    good = time.isNotNull()
    if isinstance(kind, LongType):
        good = good & time.between(-LIMIT, LIMIT)
    if query.bad == "fail":
        return frame, f.when(good, time).otherwise(f.raise_error(complaint(query)).cast("bigint"))
    return frame.filter(good), time


def inside(column: Column, kind: DataType) -> Column:
    """A time, or a whole number, as an integer."""
    if isinstance(kind, TimestampType):
        return f.unix_micros(column)
    if isinstance(kind, TimestampNTZType):
        # Through an interval: a cast to another kind of time would go through the zone of the session.
        since = column - f.lit(_EPOCH).cast("timestamp_ntz")
        return (since.cast("interval second").cast("decimal(20, 6)") * 1_000_000).cast("bigint")
    return column.cast("bigint")


def told(time: Column, kind: DataType) -> Column:
    """An edge in the type of the results."""
    if isinstance(kind, TimestampType):
        return f.timestamp_micros(time)
    if isinstance(kind, TimestampNTZType):
        return f.timestamp_add("MICROSECOND", time, f.lit(_EPOCH).cast("timestamp_ntz"))
    return time


def complaint(query: QuerySpec) -> Column:
    """What is wrong with a tuple whose time is missing or out of range."""
    time = quoted(query.time)
    needs = f.lit(f'the column "{query.time}" needs a value in every tuple: got null')
    within = f'the column "{query.time}" must lie within +-2**62 (microseconds, or units of its own): got '
    wrong = f.coalesce(f.concat(f.lit(within), time.cast("string")), needs)
    return f.concat(wrong, f.lit('; repair it, or choose bad="skip" or bad="route"'))
