"""Which column of a streaming DataFrame carries Spark's watermark, and whether it is the query's time.

Spark notes the watermark in the metadata of the column that `withWatermark` names. Functions in Python
drop this note, while the watermark itself goes on. Behind them only the plan tells the name of the column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql.types import DataType, IntegralType, TimestampType

from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.lineage import carries_through_python, uneven_union, watermarks_in
from muntin.errors import QueryError
from muntin.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "MARK",
    "RESULTS",
    "check_watermark",
    "delay_of",
    "refuse_results",
    "require_none",
    "require_timestamp",
    "unlike_others",
    "watermarks",
]

MARK = "spark.watermarkDelayMs"
"""The note of Spark at the column that `withWatermark` names."""
RESULTS = "results of this muntin query"
"""A name in the plans of results of Muntin, which no table and no file has."""


def plan_of(frame: Any) -> str:
    """The analyzed plan as text, which classic Spark and Spark Connect both give."""
    if hasattr(frame, "_jdf"):
        return str(frame._jdf.queryExecution().analyzed().toString())
    text = str(frame._explain_string(extended=True))
    return text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]


def marked(frame: DataFrame) -> list[str]:
    """The columns that carry a watermark as far as Spark's notes tell."""
    return [field.name for field in frame.schema if MARK in (field.metadata or {})]


def delay_of(frame: DataFrame, time: str) -> int | None:
    """The delay of the watermark on this column in microseconds, where Spark's notes tell it."""
    delay = (frame.schema[time].metadata or {}).get(MARK)
    return None if delay is None else int(delay) * 1000


def check_watermark(query: QuerySpec, frame: DataFrame, stated: str | None = None) -> None:
    """A QueryError unless the watermark of the DataFrame is on the query's time.

    `stated` is the column that had the watermark before a Python function made the time of it.
    """
    time, noted, plan = query.time, marked(frame), plan_of(frame)
    if uneven_union(plan):
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
    # Between JVM operators the note gets lost only where the column is computed anew.
    if not stated and not noted and carries_through_python(plan_of(frame.select(quoted(time))), time):
        return
    if stated:
        found = f"the watermark is on {_listed(others)}" if others else "there is no watermark"
        raise QueryError(
            f'watermark_from must name the column that has the watermark: got "{stated}", and {found}; '
            "name that column, or leave watermark_from= out"
        )
    if others:
        where = f"it is on {_listed(others)}" if time not in others else "it was set before that was computed"
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
    """A QueryError where the DataFrame has a watermark already: Spark allows one."""
    if found := watermarks(frame):
        raise QueryError(f"a stream has one watermark: there is one on {_listed(found)} already; {cure}")


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


def unlike_others() -> Column:
    """A condition that always holds, and differs in each use of the same results in a streaming query.

    Where two uses have equal plans, Spark shuffles their tuples once, and the second stateful operator
    behind that shuffle never sees a watermark. Spark gives a seed of its own to each random expression,
    in each micro-batch, so plans with one of them are never equal. (A comparison with `rand()` would be
    computed beforehand, since its range is known.)
    """
    return f.expr("uuid()") != f.lit("")


def refuse_results(frame: DataFrame) -> None:
    """A QueryError where a streaming DataFrame holds results of Muntin.

    Results come out when the watermark has passed them, so behind the same watermark all of them are
    late. A second watermark on results would wait for the first: Spark takes the lower one of the two.
    """
    if RESULTS in plan_of(frame):
        raise QueryError(
            "a streaming query cannot read the results of another one: Spark has one watermark for both, "
            "and it has passed a result before it comes out; write the results to a table or a topic, "
            "and read that in a second streaming query"
        )
