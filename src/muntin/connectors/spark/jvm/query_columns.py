"""A query as Spark's columns: event time, keys and inputs, partials and results, and the rows of the result.

Event time is an integer inside: microseconds, or units of an integer time column. Results have edges in the
type of the time column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

from muntin.connectors.spark.jvm.aggregates import Partials, lowered
from muntin.connectors.spark.jvm.expressions import quoted, to_column
from muntin.connectors.spark.nullability import exact_schema
from muntin.query import QuerySpec
from muntin.slicing.binding import Binding
from muntin.timeline import LIMIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["MARK", "TIME", "QueryColumns", "as_integer", "bad_time_message", "with_time"]

TIME = "time"
"""The column of event time as integers."""
MARK = "mark"
"""The column that identifies a window among those of its type."""

_EPOCH = "1970-01-01"


@dataclass(frozen=True)
class QueryColumns:
    """A query as Spark's columns, with names that no column of the user has.

    Keys are k0, k1, ..., inputs x0, x1, ... The results are columns over the partials of a window.
    """

    query: QuerySpec
    binding: Binding
    keys: list[Column]
    names: list[str]
    inputs: list[Column]
    partials: Partials
    results: list[Column]

    @classmethod
    def of(cls, query: QuerySpec, binding: Binding) -> QueryColumns:
        """The columns of a query over input of these types."""
        exprs = list(dict.fromkeys(expr for _, a in query.aggregates for expr in a.reads))
        partials = Partials({expr: f.col(f"x{i}") for i, expr in enumerate(exprs)})
        kinds = binding.types
        return cls(
            query,
            binding,
            keys=[quoted(key).alias(f"k{i}") for i, key in enumerate(query.keys)],
            names=[f"k{i}" for i in range(len(query.keys))],
            inputs=[to_column(expr, binding.schema).alias(f"x{i}") for i, expr in enumerate(exprs)],
            partials=partials,
            results=[lowered(a, tuple(kinds[e] for e in a.inputs), partials) for _, a in query.aggregates],
        )

    def rows(self, windows: DataFrame, name: Column, start: Column, end: Column) -> DataFrame:
        """The rows of the result, with exactly the columns and types of the packed plan.

        `windows` has a row for each window: its keys, MARK and partials.
        """
        types = self.binding.result_schema(tuple(window for _, window in self.query.windows))
        schema = exact_schema(self.query, types, self.binding.schema)
        edge = from_arrow_type(self.binding.time.edge_type)
        present = f.col(MARK).isNotNull()  # always true, but makes a column nullable

        def nullable(column: Column) -> Column:
            return f.when(present, column)

        edges = (nullable(_in_type(start, edge)).alias("start"), nullable(_in_type(end, edge)).alias("end"))
        name = f.coalesce(name, f.lit(""))  # it is never null, which Spark cannot know
        columns = [*map(f.col, self.names), name, f.struct(*edges), *self.results, f.lit("final"), f.lit(0)]
        aggregates = dict(self.query.aggregates)
        shown = []
        for column, field in zip(columns, schema, strict=True):
            value = column.cast(field.dataType)
            if field.nullable:
                value = nullable(value)
            elif field.name in aggregates:
                value = f.coalesce(value, f.lit(0))
            shown.append(value.alias(field.name))
        return windows.select(*shown)


def with_time(query: QuerySpec, frame: DataFrame) -> tuple[DataFrame, Column]:
    """The good tuples, and their time; with bad="fail", reading the time of a bad one fails."""
    kind = frame.schema[query.time].dataType
    time = as_integer(quoted(query.time), kind)
    good = time.isNotNull()
    if isinstance(kind, LongType):
        good = good & time.between(-LIMIT, LIMIT)
    if query.bad == "fail":
        return frame, f.when(good, time).otherwise(f.raise_error(bad_time_message(query)).cast("bigint"))
    return frame.filter(good), time


def as_integer(column: Column, kind: DataType) -> Column:
    """A time, or a whole number, as an integer."""
    if isinstance(kind, TimestampType):
        return f.unix_micros(column)
    if isinstance(kind, TimestampNTZType):
        # Through an interval: a cast to another kind of time would go through the zone of the session.
        since = column - f.lit(_EPOCH).cast("timestamp_ntz")
        return (since.cast("interval second").cast("decimal(20, 6)") * 1_000_000).cast("bigint")
    return column.cast("bigint")


def _in_type(time: Column, kind: DataType) -> Column:
    """The inverse of `as_integer`."""
    if isinstance(kind, TimestampType):
        return f.timestamp_micros(time)
    if isinstance(kind, TimestampNTZType):
        return f.timestamp_add("MICROSECOND", time, f.lit(_EPOCH).cast("timestamp_ntz"))
    return time


def bad_time_message(query: QuerySpec) -> Column:
    """The message about a tuple whose time is missing or out of range."""
    needs = f.lit(f'the column "{query.time}" needs a value in every tuple: got null')
    within = f'the column "{query.time}" must lie within +-2**62 (microseconds, or units of its own): got '
    wrong = f.coalesce(f.concat(f.lit(within), quoted(query.time).cast("string")), needs)
    return f.concat(wrong, f.lit('; repair it, or choose bad="skip" or bad="route"'))
