"""The types of Spark's columns in Arrow, for each pyspark from 4.0 on."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["to_arrow"]


def to_arrow(columns: StructType, zone: str) -> pa.Schema:
    """Columns with their types in Arrow, instants in this zone; PySparkException for types that Arrow lacks.

    >>> from pyspark.sql.types import ArrayType, StructField, StructType, TimestampType
    >>> columns = StructType([StructField("seen", ArrayType(TimestampType()))])
    >>> print(to_arrow(columns, "Asia/Tokyo"))
    seen: list<element: timestamp[us, tz=Asia/Tokyo]>
      child 0, element: timestamp[us, tz=Asia/Tokyo]
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(columns, timezone=zone)
    # pyspark 4.0 and 4.1 know UTC only; their JVM sends instants with the zone of the session, too.
    return pa.schema([_in_zone(field, zone) for field in to_arrow_schema(columns)])


def _in_zone(field: pa.Field, zone: str) -> pa.Field:
    """The field with its instants, and those of the fields inside it, in this zone.

    >>> _in_zone(
    ...     pa.field("m", pa.map_(pa.string(), pa.struct([("at", pa.timestamp("us", "UTC"))]))), "Asia/Tokyo"
    ... )
    pyarrow.Field<m: map<string, struct<at: timestamp[us, tz=Asia/Tokyo]>>>
    """
    kind = field.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        kind = pa.timestamp(kind.unit, zone)
    elif pa.types.is_map(kind):
        kind = pa.map_(_in_zone(kind.key_field, zone), _in_zone(kind.item_field, zone))
    elif pa.types.is_list(kind):
        kind = pa.list_(_in_zone(kind.value_field, zone))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_in_zone(part, zone) for part in kind])
    return field.with_type(kind)
