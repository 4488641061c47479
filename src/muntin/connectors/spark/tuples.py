"""The input as Spark prepares it: the columns that a query reads, a key group, an order for equal times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from muntin.connectors.spark.columns import BEYOND, arrow_schema
from muntin.connectors.spark.groups import group_numbers
from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.jvm.query_columns import as_integer
from muntin.connectors.spark.nullability import exact_schema
from muntin.connectors.spark.outcome import outcome_schema
from muntin.connectors.spark.packed_rows import GROUP
from muntin.connectors.spark.partition_packer import AT, can_slice
from muntin.errors import QueryError
from muntin.query import QuerySpec
from muntin.slicing.binding import ARRIVAL, Binding, require
from muntin.windows import count, slide_by_tuple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Input", "prepare", "tie_column"]

_BITS = 62
"""So many bits fit a number that is not negative."""
_BESIDE_INTEGER, _BESIDE_TIMESTAMP = 20, 11
_SMALL = 1 << _BITS - _BESIDE_INTEGER


@dataclass(frozen=True)
class Input:
    """A DataFrame whose columns are those that the query reads, GROUP and, where order counts, ARRIVAL."""

    frame: DataFrame
    groups: tuple[int, ...]
    schema: pa.Schema
    results: pa.Schema
    """What Python gives back."""
    output: StructType
    """What Spark makes of that."""
    sliced: bool
    """Whether tuples become slices before the shuffle."""
    timed: bool
    """Whether the column AT is present."""


def prepare(
    query: QuerySpec, frame: DataFrame, tie: str | Column | None = None, open_ended: bool = False
) -> Input:
    """Check the query against the columns and lay out the work.

    `open_ended`: other windows may come while the stream runs, and read any column.
    """
    session = frame.sparkSession
    zone = session.conf.get("spark.sql.session.timeZone")
    given = arrow_schema(frame, zone)
    require((query.time, *query.keys), given)
    windows = tuple(window for _, window in query.windows)
    binding = Binding.of(query, windows, given)
    whole = open_ended or query.late == "route" or query.bad == "route"
    columns = given.names if whole else _columns_read(query, binding)
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 200)
    # Without keys there is one group, whatever the number of partitions.
    groups = group_numbers(partitions) if query.keys else [0]
    ordered = open_ended or _is_ordered(query, binding)
    timed = BEYOND in frame.columns and query.bad != "fail"
    prepared = frame.select(
        # By number: pyspark takes names apart that have a dot. `PartitionPacker` gives them back.
        *(_whole(query, frame, name).alias(f"c{i}") for i, name in enumerate(columns)),
        *([f.unix_micros(f.current_timestamp()).alias(AT)] if timed else []),
        _group(query, frame, groups).alias(GROUP),
        *([_place(frame, columns, tie).alias(ARRIVAL)] if ordered else []),
    )
    schema = pa.schema([*(given.field(name) for name in columns), pa.field(ARRIVAL, pa.int64())])
    # Count windows have ranks, and windows that tuples cut have numbers, beside their edges.
    possible = (*windows, count(1), slide_by_tuple(1, every=1)) if open_ended else windows
    output = exact_schema(query, outcome_schema(query, binding.result_schema(possible), schema), given)
    # Spark wants instants in UTC, whatever the zone of the session.
    results = to_arrow_schema(output, timezone="UTC")
    return Input(prepared, tuple(groups), schema, results, output, can_slice(query), timed)


def _whole(query: QuerySpec, frame: DataFrame, name: str) -> Column:
    """A column of the source; the time column is joined with the times that a guard moved to BEYOND."""
    hidden = name == query.time and BEYOND in frame.columns
    return f.coalesce(quoted(name), quoted(BEYOND)) if hidden else quoted(name)


def _is_ordered(query: QuerySpec, binding: Binding) -> bool:
    """Whether results depend on the order of tuples of one time; to compute it and pass it on takes time."""
    return not can_slice(query) or any(partial.ordered for partial in binding.partials.partials)


def _place(frame: DataFrame, columns: list[str], tie: str | Column | None) -> Column:
    """The place of a tuple among those of its time: not negative, and the same whenever it is read again.

    What orders tuples also tells them apart. So behind a tie column stand bits of the hash, as many as
    there is room for: beside a timestamp 11, beside an integer 20, as long as that is below 2**42.
    """
    number = _hash(frame, columns)
    if tie is None:
        return f.shiftrightunsigned(number, 1)
    told = tie_column(frame, tie)
    if not isinstance(frame.select(_column(tie)).schema[0].dataType, IntegralType):
        return _behind(told, number, _BESIDE_TIMESTAMP)
    small = told < _SMALL
    return f.when(small, _behind(told, number, _BESIDE_INTEGER)).otherwise(told - _SMALL + (1 << _BITS))


def _behind(told: Column, number: Column, bits: int) -> Column:
    return f.shiftleft(told, bits).bitwiseOR(f.shiftrightunsigned(number, 64 - bits))


def _hash(frame: DataFrame, columns: list[str]) -> Column:
    """64 bits that tell what a tuple holds."""
    fields = {field.name: field for field in frame.schema}
    values = [_with_nulls(quoted(name), fields[name].dataType) for name in columns]
    # Spark's hash passes over a null: (1, null) and (null, 1) would be equal. So it gets a bit for each.
    absent = [quoted(name).isNull() for name in columns if fields[name].nullable]
    bits = [flag.cast("long") * f.lit(1 << i % _BITS) for i, flag in enumerate(absent)]
    masks = [reduce(add, bits[i : i + _BITS]) for i in range(0, len(bits), _BITS)]
    return f.xxhash64(*values, *masks)


def tie_column(frame: DataFrame, tie: str | Column) -> Column:
    """The place of a tuple among those of its time, as a column of the user tells it."""
    if isinstance(tie, str):
        require((tie,), arrow_schema(frame, "UTC"))
    given = _column(tie)
    kind = frame.select(given).schema[0]
    if not isinstance(kind.dataType, TimestampType | TimestampNTZType | IntegralType):
        raise QueryError(
            f'tie must be a column of integers or timestamps: "{kind.name}" is '
            f"{kind.dataType.simpleString()}; leave it out to order tuples of one time by their values"
        )
    number = as_integer(given, kind.dataType)
    integer = isinstance(kind.dataType, IntegralType)
    room = "2**62" if integer else "the year 2112"
    message = (
        f'the tie column "{kind.name}" must not be null or negative, nor lie above {room}; leave tie= out, '
        "or shift its values"
    )
    fits = number.between(0, (1 << _BITS if integer else 1 << 63 - _BESIDE_TIMESTAMP) - 1)
    return f.when(fits, number).otherwise(f.raise_error(f.lit(message)).cast("long"))


def _column(tie: str | Column) -> Column:
    return quoted(tie) if isinstance(tie, str) else tie


def _with_nulls(column: Column, kind: DataType) -> Column:
    """The column, or as text where Spark refuses to hash it, or would pass over a null inside."""
    return _text(column) if isinstance(kind, ArrayType | StructType) else _hashable(column, kind)


def _hashable(column: Column, kind: DataType) -> Column:
    """The column, so that equal values have one hash; as text where Spark has none for maps and variants."""
    if isinstance(kind, DoubleType | FloatType):
        return column + f.lit(0.0)  # as -0.0 is 0.0
    told = kind.json()
    return _text(column) if '"type":"map"' in told or '"variant"' in told else column


def _text(column: Column) -> Column:
    return f.to_json(f.struct(column), {"ignoreNullFields": "false"})


def _columns_read(query: QuerySpec, binding: Binding) -> list[str]:
    names = {query.time, *query.keys, *binding.measures}
    for expr in binding.inputs:
        names |= set(expr.columns)
    return [name for name in binding.schema.names if name in names]


def _group(query: QuerySpec, frame: DataFrame, groups: list[int]) -> Column:
    if not query.keys:
        return f.lit(groups[0]).cast("int")
    kinds = {field.name: field.dataType for field in frame.schema}
    keys = [_hashable(quoted(key), kinds[key]) for key in query.keys]
    number = f.pmod(f.xxhash64(*keys), f.lit(len(groups)))
    return f.element_at(f.array(*map(f.lit, groups)), (number + 1).cast("int")).cast("int")
