"""The input as Spark prepares it: the columns that a query reads, a key group, an order for equal times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, FloatType

from muntin.connectors.spark.groups import group_numbers
from muntin.connectors.spark.packing import GROUP
from muntin.query import QuerySpec
from muntin.slicing.binding import Binding, require
from muntin.slicing.operator import ARRIVAL
from muntin.windows.base import TupleDriven

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Input", "can_slice", "prepare"]


@dataclass(frozen=True)
class Input:
    """A DataFrame whose columns are those that the query reads, GROUP and ARRIVAL."""

    frame: DataFrame
    groups: tuple[int, ...]
    schema: pa.Schema
    results: pa.Schema
    sliced: bool
    """Whether tuples become slices before the shuffle."""


def prepare(query: QuerySpec, frame: DataFrame) -> Input:
    """Check the query against the columns and lay out the work."""
    session = frame.sparkSession
    zone = session.conf.get("spark.sql.session.timeZone")
    given = to_arrow_schema(frame.schema, timezone=zone)
    require((query.time, *query.keys), given)
    windows = tuple(window for _, window in query.windows)
    binding = Binding.of(query, windows, given)
    columns = _columns_read(query, binding)
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 200)
    groups = group_numbers(partitions)[: None if query.keys else 1]
    prepared = frame.select(
        *columns,
        _group(query, frame, groups).alias(GROUP),
        # Not negative, and the same whenever the same tuple is read again.
        f.shiftrightunsigned(f.xxhash64(*columns), 1).alias(ARRIVAL),
    )
    schema = to_arrow_schema(prepared.drop(GROUP).schema, timezone=zone)
    return Input(prepared, tuple(groups), schema, binding.result_schema(windows), can_slice(query))


def _columns_read(query: QuerySpec, binding: Binding) -> list[str]:
    names = {query.time, *query.keys, *binding.measures}
    for expr in binding.inputs:
        names |= set(expr.columns)
    return [name for name in binding.schema.names if name in names]


def can_slice(query: QuerySpec) -> bool:
    """Whether no window needs tuples, or their order, behind the shuffle."""
    driven = any(isinstance(window, TupleDriven) for _, window in query.windows)
    empty = any(getattr(window, "emit_empty", False) for _, window in query.windows)
    return not driven and not empty and query.late == "drop"


def _group(query: QuerySpec, frame: DataFrame, groups: list[int]) -> Column:
    if not query.keys:
        return f.lit(groups[0]).cast("int")
    floats = {field.name for field in frame.schema if isinstance(field.dataType, DoubleType | FloatType)}
    # 0.0 and -0.0 are one key.
    keys = [frame[key] + f.lit(0.0) if key in floats else frame[key] for key in query.keys]
    number = f.pmod(f.xxhash64(*keys), f.lit(len(groups)))
    return f.element_at(f.array(*map(f.lit, groups)), (number + 1).cast("int")).cast("int")
