"""The input of the packed plan: the columns that a query reads, key groups, an order for equal times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from muntin.connectors.spark.arrow_types import to_arrow
from muntin.connectors.spark.hashing import group_column, group_numbers, order_column
from muntin.connectors.spark.input_columns import BEYOND, arrow_schema
from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.nullability import exact_schema
from muntin.connectors.spark.packed_rows import GROUP
from muntin.connectors.spark.partition_packer import AT
from muntin.connectors.spark.result_rows import outcome_schema
from muntin.planning.plan import make_plan
from muntin.query import QuerySpec
from muntin.slicing.binding import ARRIVAL, Binding, require
from muntin.windows import count, slide_by_tuple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["PreparedInput", "prepare"]


@dataclass(frozen=True)
class PreparedInput:
    """A DataFrame with the columns that the query reads, AT, GROUP and ARRIVAL."""

    frame: DataFrame
    groups: tuple[int, ...]
    schema: pa.Schema
    results: pa.Schema
    """The columns of results in Python."""
    output: StructType
    """The same columns in Spark."""
    timed: bool
    """Whether the column AT is present."""


def prepare(
    query: QuerySpec, frame: DataFrame, tie: str | Column | None = None, open_ended: bool = False
) -> PreparedInput:
    """Check the query against the columns, and compute the columns of the engine.

    `open_ended`: windows may be added while the stream runs, and read any column.
    """
    session = frame.sparkSession
    given = arrow_schema(frame, str(session.conf.get("spark.sql.session.timeZone")))
    require((query.time, *query.keys), given)
    windows = tuple(window for _, window in query.windows)
    binding = Binding.of(query, dict(query.windows), given)
    reads_all = open_ended or query.late == "route" or query.bad == "route"
    columns = given.names if reads_all else _columns_read(query, binding)
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 200)
    # Without keys there is one group, whatever the number of partitions.
    groups = group_numbers(partitions) if query.keys else [0]
    # The order of tuples of one time takes time to compute and to send.
    partials = binding.partials.partials
    ordered = open_ended or not make_plan(query).sends_slices or any(partial.ordered for partial in partials)
    timed = BEYOND in frame.columns and query.bad != "fail"
    prepared = frame.select(
        # By number: pyspark splits names that have a dot. `PartitionPacker` restores them.
        *(_with_future(query, frame, name).alias(f"c{i}") for i, name in enumerate(columns)),
        *([f.unix_micros(f.current_timestamp()).alias(AT)] if timed else []),
        group_column(query.keys, frame, groups).alias(GROUP),
        *([order_column(frame, columns, tie).alias(ARRIVAL)] if ordered else []),
    )
    schema = pa.schema([*(given.field(name) for name in columns), pa.field(ARRIVAL, pa.int64())])
    # Count windows have ranks, and windows that tuples cut have ordinals.
    possible = (*windows, count(1), slide_by_tuple(1, every=1)) if open_ended else windows
    outcome = outcome_schema(query, binding.result_schema(possible), schema)
    output = exact_schema(query, outcome, given, changing=open_ended)
    # Spark wants instants in UTC, whatever the zone of the session.
    results = to_arrow(output, "UTC")
    return PreparedInput(prepared, tuple(groups), schema, results, output, timed)


def _with_future(query: QuerySpec, frame: DataFrame, name: str) -> Column:
    """A column of the source; the time column with the times that a guard has moved to BEYOND."""
    guarded = name == query.time and BEYOND in frame.columns
    return f.coalesce(quoted(name), quoted(BEYOND)) if guarded else quoted(name)


def _columns_read(query: QuerySpec, binding: Binding) -> list[str]:
    names = {query.time, *query.keys, *binding.measures, *(c for e in binding.inputs for c in e.columns)}
    return [name for name in binding.schema.names if name in names]
