"""A query as Spark's columns: its keys and inputs, its partials and results, and the rows that come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_type

from muntin.connectors.spark.jvm.aggregates import Partials, lowered
from muntin.connectors.spark.jvm.expressions import quoted, to_column
from muntin.connectors.spark.jvm.times import told
from muntin.connectors.spark.nullability import exact_schema
from muntin.query import QuerySpec
from muntin.slicing.binding import Binding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["MARK", "Translated", "results_of", "translated"]

MARK = "mark"
"""The column that tells windows of one type apart."""


@dataclass(frozen=True)
class Translated:
    """The query as Spark's columns, under names that no column of the user has."""

    keys: list[Column]
    names: list[str]
    inputs: list[Column]
    partials: Partials
    results: list[Column]


def translated(query: QuerySpec, binding: Binding) -> Translated:
    """Keys k0, k1, ..., inputs x0, x1, ... and, over the partials of a window, the results."""
    exprs = list(dict.fromkeys(expr for _, a in query.aggregates for expr in a.reads))
    partials = Partials({expr: f.col(f"x{i}") for i, expr in enumerate(exprs)})
    kinds = binding.types
    return Translated(
        keys=[quoted(key).alias(f"k{i}") for i, key in enumerate(query.keys)],
        names=[f"k{i}" for i in range(len(query.keys))],
        inputs=[to_column(expr, binding.schema).alias(f"x{i}") for i, expr in enumerate(exprs)],
        partials=partials,
        results=[lowered(a, tuple(kinds[e] for e in a.inputs), partials) for _, a in query.aggregates],
    )


def results_of(
    query: QuerySpec,
    binding: Binding,
    parts: Translated,
    windows: DataFrame,
    name: Column,
    start: Column,
    end: Column,
) -> DataFrame:
    """The rows of the result, with exactly the columns and types that the packed plan gives them."""
    types = binding.result_schema(tuple(window for _, window in query.windows))
    schema = exact_schema(query, types, binding.schema)
    edge = from_arrow_type(binding.time.edge_type)
    there = f.col(MARK).isNotNull()  # which is always so, but makes a column nullable

    def nullable(column: Column) -> Column:
        return f.when(there, column)

    edges = f.struct(nullable(told(start, edge)).alias("start"), nullable(told(end, edge)).alias("end"))
    name = f.coalesce(name, f.lit(""))  # which it never is, but Spark cannot tell
    columns = [*map(f.col, parts.names), name, edges, *parts.results, f.lit("final"), f.lit(0)]
    aggregates = dict(query.aggregates)
    shown = []
    for column, field in zip(columns, schema, strict=True):
        value = column.cast(field.dataType)
        if field.nullable:
            value = nullable(value)
        elif field.name in aggregates:
            value = f.coalesce(value, f.lit(0))
        shown.append(value.alias(field.name))
    return windows.select(*shown)
