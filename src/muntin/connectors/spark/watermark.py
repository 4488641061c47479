"""The column of a streaming DataFrame that has Spark's watermark: it must be the query's time.

Spark stores the watermark in the metadata of the column that `withWatermark` names. Python functions such as
`mapInArrow` drop this metadata, while the watermark stays in force. After them, only the plan has its column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import DataType, IntegralType, TimestampType

from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.plan_text import (
    has_partial_watermark,
    keeps_watermark,
    plan_of,
    watermarks_in,
)
from muntin.errors import QueryError
from muntin.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "MARK", "check_watermark", "delay_of", "never_shared", "require_none", "require_timestamp", "watermarks",
]  # fmt: skip

MARK = "spark.watermarkDelayMs"
"""Spark's key in the metadata of the column that `withWatermark` names."""


def delay_of(frame: DataFrame, time: str) -> int | None:
    """The delay of the watermark on this column in microseconds; None if its metadata lacks it."""
    delay = (frame.schema[time].metadata or {}).get(MARK)
    return None if delay is None else int(delay) * 1000


def check_watermark(query: QuerySpec, frame: DataFrame, stated: str | None = None) -> None:
    """A QueryError unless the watermark of the DataFrame is on the query's time.

    `stated` is the column that had the watermark before a Python function computed the time from it.
    """
    time, plan = query.time, plan_of(frame)
    noted = [field.name for field in frame.schema if MARK in (field.metadata or {})]
    if has_partial_watermark(plan):
        raise QueryError(
            "every stream of a union needs the watermark: one of them has none, and its tuples would be "
            "judged by the times of the others; leave withWatermark out and write "
            'events.transform(query, watermark="10 seconds") behind the union'
        )
    if time in noted and stated in (None, time):
        return
    require_timestamp(time, frame.schema[time].dataType)
    others = watermarks_in(plan)
    if stated and stated in others:
        return
    # JVM operators drop the metadata only of a column that is computed anew.
    if not stated and not noted and keeps_watermark(plan_of(frame.select(quoted(time))), time):
        return
    if stated:
        actual = f"the watermark is on {_listed(others)}" if others else "there is no watermark"
        raise QueryError(
            f'watermark_from must name the column that has the watermark: got "{stated}", and {actual}; '
            "name that column, or leave watermark_from= out"
        )
    if others:
        on_others = f"it is on {_listed(others)}"
        where = "it was set before the column was computed" if time in others else on_others
        raise QueryError(
            f'a streaming query needs a watermark on its time column: "{time}" has none, {where}; leave '
            'withWatermark out and write events.transform(query, watermark="10 seconds"), or, if '
            f'"{time}" has the times of "{others[0]}", events.transform(query, watermark_from="{others[0]}")'
        )
    raise QueryError(
        f'a streaming query needs a watermark on its time column: "{time}" has none; write '
        f'events.transform(query, watermark="10 seconds"), or events.withWatermark("{time}", "10 seconds")'
    )


def require_none(frame: DataFrame, cure: str) -> None:
    """A QueryError if the DataFrame already has a watermark: Spark allows one."""
    if present := watermarks(frame):
        raise QueryError(
            f"a stream must have only one watermark: there already is one on {_listed(present)}; {cure}"
        )


def require_timestamp(time: str, kind: DataType) -> None:
    """A QueryError where Spark allows no watermark on the time column."""
    if isinstance(kind, TimestampType):
        return
    cast, hint = f'f.col("{time}").cast("timestamp")', ""
    if isinstance(kind, IntegralType):
        cast = f'f.timestamp_millis("{time}")'
        hint = (
            ', with f.timestamp_seconds or f.timestamp_micros for other units, and windows like "10 seconds"'
        )
    raise QueryError(
        f'Spark has watermarks on columns of type timestamp only: "{time}" is {kind.simpleString()}; write '
        f'events.withColumn("{time}", {cast}).transform(query, watermark="10 seconds"){hint}'
    )


def watermarks(frame: DataFrame) -> list[str]:
    """The columns on which some step of a DataFrame's plan sets a watermark."""
    return watermarks_in(plan_of(frame))


def _listed(names: list[str]) -> str:
    return " and ".join(f'"{name}"' for name in names)


def never_shared() -> Column:
    """A condition that is always true, and prevents Spark from sharing the shuffle of two equal plans.

    Where results are used twice in a streaming query, Spark would shuffle their tuples once, and the second
    stateful operator after that shuffle would see no watermark. Spark gives each random expression its own
    seed in each micro-batch, so plans with one are never equal. (Spark's optimizer would remove a
    comparison with `rand()`, since its range is known.)
    """
    return f.expr("uuid()") != f.lit("")
