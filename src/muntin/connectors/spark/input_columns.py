"""The columns of a DataFrame: checks, types in Arrow, and columns that a query computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.connectors.spark.arrow_types import to_arrow
from muntin.connectors.spark.packed_rows import GROUP
from muntin.errors import QueryError
from muntin.expressions.foreign import ColumnName
from muntin.query import QuerySpec
from muntin.query.forms import columns_named
from muntin.slicing.binding import ARRIVAL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["BEYOND", "arrow_schema", "check_columns", "resolved", "with_columns"]

BEYOND = "__beyond"
"""The column that a guard adds: the time of a tuple that is too far ahead of the clock, null for others."""


def arrow_schema(frame: DataFrame, zone: str) -> pa.Schema:
    """The columns of a DataFrame with their types in Arrow, without those whose types Arrow lacks."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    fields: list[pa.Field] = []
    for field in frame.schema:
        if field.name == BEYOND:
            continue
        try:
            fields += list(to_arrow(StructType([field]), zone))
        except PySparkException:
            continue
    return pa.schema(fields)


def check_columns(query: QuerySpec, frame: DataFrame) -> None:
    """A QueryError where a name fits several columns, or the JVM would compare values differently."""
    from pyspark.sql.types import StringType

    exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    for reserved in (GROUP, ARRIVAL):
        if reserved in frame.columns:
            raise QueryError(f'the column "{reserved}" is for the engine; rename yours')
    for field in frame.schema:
        if field.name == query.time and isinstance(field.dataType, StringType):
            raise QueryError(
                f'the time column "{query.time}" must be a timestamp or an integer: got texts; write '
                f'events.withColumn("{query.time}", f.to_timestamp("{query.time}")), or with a format, '
                f'f.to_timestamp("{query.time}", "MM/dd/yyyy HH:mm")'
            )
    for name in dict.fromkeys(columns_named(query)):
        fields = [f for f in frame.schema if f.name == name or (not exact and f.name.lower() == name.lower())]
        if len(fields) > 1:
            shown = " and ".join(f'"{field.name}"' for field in fields)
            raise QueryError(f'"{name}" must name one column: there are {shown}; rename or drop the others')
        for field in fields:
            kind = field.dataType
            if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
                raise QueryError(
                    f'texts are compared byte by byte: the column "{name}" has the collation '
                    f'{kind.collation}; write events.withColumn("{name}", f.col("{name}").cast("string")), '
                    "or lower it first"
                )


def with_columns(query: QuerySpec, frame: DataFrame) -> DataFrame:
    """The input with a column for each name in the query, also for those that it writes as Spark columns."""
    frame = resolved([name for name in columns_named(query) if not isinstance(name, ColumnName)], frame)
    new: dict[str, ColumnName] = {}
    known = {name.lower() for name in frame.columns}
    for name in columns_named(query):
        if not isinstance(name, ColumnName) or (name in frame.columns and not name.computed):
            continue
        other = new.setdefault(name.lower(), name)
        if (name.computed and name.lower() in known) or str(other.source) != str(name.source):
            raise QueryError(
                f'a computed column needs a name of its own: "{name}" is there already; '
                f'give it another one, like .alias("{name}_computed")'
            )
    return frame.withColumns({str(name): name.source for name in new.values()}) if new else frame


def resolved(names: Sequence[str], frame: DataFrame) -> DataFrame:
    """The input with a column for each name that Spark resolves in another case, or as a field of a struct.

    As in Spark, such a column has the name that the query writes.
    """
    from pyspark.sql import functions as f

    exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    renamed: dict[str, str] = {}
    fields: dict[str, Column] = {}
    written: dict[str, str] = {}
    for name in dict.fromkeys(names):
        other = written.setdefault(name if exact else name.lower(), name)
        if name in frame.columns and other == name:
            continue
        same_names = [
            one for one in frame.columns if one == name or (not exact and one.lower() == name.lower())
        ]
        if other != name and len(same_names) < 2:
            raise QueryError(
                f'a query must write the name of a column in one way: got "{other}" and "{name}"; '
                f'write "{same_names[0] if same_names else name}"'
            )
        if len(same_names) == 1:
            renamed[same_names[0]] = name
        elif not same_names and _has_field(frame.schema, name.split("."), exact):
            fields[name] = f.col(name)
    frame = frame.withColumns(fields) if fields else frame
    return frame.withColumnsRenamed(renamed) if renamed else frame


def _has_field(kind: DataType, path: Sequence[str], exact: bool) -> bool:
    """Whether a struct has a field at this path of names."""
    from pyspark.sql.types import StructType

    if not path:
        return True
    if not isinstance(kind, StructType):
        return False
    same_names = [
        one for one in kind if one.name == path[0] or (not exact and one.name.lower() == path[0].lower())
    ]
    return len(same_names) == 1 and _has_field(same_names[0].dataType, path[1:], exact)
