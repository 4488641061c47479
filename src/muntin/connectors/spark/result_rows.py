"""The rows of a result on Spark: those of windows and, where tuples are routed, those of tuples.

A streaming query has one output. So late and bad tuples are rows of the same DataFrame, in the columns `late`
and `bad`: structs of the input's columns, null in the rows of windows. Their `kind` is "late" or "bad".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.connectors.spark.packed_rows import GROUP
from muntin.errors import QueryError, SnapshotError
from muntin.query import WINDOW_NAME, QuerySpec
from muntin.slicing.binding import ARRIVAL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "BAD", "LATE", "bad", "in_types", "late", "latest", "outcome_schema", "tuple_rows", "window_rows",
    "windows",
]  # fmt: skip

LATE, BAD, REASON = "late", "bad", "reason"
REVISION = "__newest"
"""A column with all but the identity of a window, while the newest revision is looked for."""


def outcome_schema(query: QuerySpec, results: pa.Schema, tuples: pa.Schema) -> pa.Schema:
    """The columns of windows and of routed tuples; `tuples` is the schema of the input."""
    own = [field for field in tuples if field.name not in (GROUP, ARRIVAL)]
    for name, route in ((WINDOW_NAME, query.late), (REASON, query.bad)):
        if route == "route" and name in tuples.names:
            raise QueryError(
                f'routed tuples get a column "{name}" beside their own: the input has one of that name; '
                f'rename it, like events.withColumnRenamed("{name}", "its_{name}")'
            )
    wanted = {
        LATE: pa.struct(own) if query.late == "route" else None,
        BAD: pa.struct([*own, pa.field(REASON, pa.string())]) if query.bad == "route" else None,
    }
    for name, kind in wanted.items():
        if any(wanted.values()) and name in results.names:
            raise QueryError(
                f'the column "{name}" is for routed tuples: got an aggregate or key of that name; rename it'
            )
        if kind is not None:
            results = results.append(pa.field(name, kind))
    return results


def window_rows(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Window results with all columns of the outcome, and all edges that a window of the query may have."""
    if table.schema.equals(schema):
        return table
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    edges, kind = columns["window"], schema.field("window").type
    fields = in_types({name: edges.field(name) for name in edges.type.names}, kind, len(table))
    columns["window"] = pa.StructArray.from_arrays(fields, fields=list(kind))
    return pa.Table.from_arrays(in_types(columns, schema, len(table)), schema=schema)


def tuple_rows(table: pa.Table, kind: str, shown: tuple[str, ...], schema: pa.Schema) -> pa.Table:
    """Routed tuples as a struct; the columns `shown` of the result have their values as well.

    A tuple that has waited in the checkpoint since before a column was added has null there.
    """
    values = {name: table.column(name).combine_chunks() for name in table.column_names}
    own = schema.field(kind).type
    columns = {name: values[name] for name in shown}
    try:
        fields = in_types(values, own, len(table))
    except pa.ArrowException as error:
        raise SnapshotError(
            f"{kind} tuples in the checkpoint do not fit the columns of the input as they are now ({error}); "
            "cast the columns to the types that they had, or start from a new checkpoint"
        ) from error
    columns[kind] = pa.StructArray.from_arrays(fields, fields=list(own))
    columns["kind"] = pa.repeat(pa.scalar(kind), len(table))
    return pa.Table.from_arrays(in_types(columns, schema, len(table)), schema=schema)


def in_types(columns: dict[str, pa.Array], fields: Iterable[pa.Field], rows: int) -> list[pa.Array]:
    """The columns of these fields, with nulls for those that are not given."""
    return [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in fields
    ]


def windows(results: DataFrame) -> DataFrame:
    """The rows of windows, without the columns of routed tuples.

    >>> import muntin as mt
    >>> mt.spark.windows(results).writeStream.format("parquet")  # doctest: +SKIP
    """
    return results.where("kind not in ('late', 'bad')").drop(*_routes(results))


def late(results: DataFrame) -> DataFrame:
    """Late tuples, each with the window that it missed, for `.on(..., late="route")`.

    >>> import muntin as mt
    >>> mt.spark.late(results).writeStream.format("parquet")  # doctest: +SKIP
    """
    return _routed(results, LATE, [WINDOW_NAME, f"{LATE}.*"])


def bad(results: DataFrame) -> DataFrame:
    """Bad tuples, each with the reason, for `.on(..., bad="route")`.

    >>> import muntin as mt
    >>> mt.spark.bad(results).writeStream.format("parquet")  # doctest: +SKIP
    """
    return _routed(results, BAD, [f"{BAD}.*"])


def latest(results: DataFrame) -> DataFrame:
    """One row for each key and window: the newest revision, without windows that were retracted.

    `results` is bounded and has all revisions: the table into which a stream has written its results. The
    columns stay in their order; rows of routed tuples are left out. A row that was written twice counts once.

    >>> import muntin as mt
    >>> mt.spark.latest(spark.read.parquet("revisions")).show()  # doctest: +SKIP
    """
    from pyspark.sql import functions as f

    from muntin.connectors.spark.jvm.expressions import quoted

    if missing := [
        name for name in (WINDOW_NAME, "window", "kind", "revision") if name not in results.columns
    ]:
        raise QueryError(
            f'latest needs the columns of results: "{missing[0]}" is not there; '
            "call it before columns are dropped or renamed"
        )
    if results.isStreaming:
        raise QueryError(
            "latest needs all revisions, in a bounded DataFrame: got a stream; write its results to a table, "
            'and read that: mt.spark.latest(spark.read.parquet("revisions"))'
        )
    rows = windows(results)
    names = rows.columns
    identity = [*names[: names.index(WINDOW_NAME) + 1], "window"]
    others = f.struct(*(quoted(name) for name in names if name not in identity))
    newest = rows.groupBy(*map(quoted, identity)).agg(f.max_by(others, "revision").alias(REVISION))
    columns = [quoted(name) if name in identity else f.col(REVISION)[name] for name in names]
    current = newest.where(f.col(REVISION)["kind"] != "retract")
    return current.select(*(column.alias(name) for column, name in zip(columns, names, strict=True)))


def _routed(results: DataFrame, kind: str, columns: list[str]) -> DataFrame:
    if kind not in _routes(results):
        raise QueryError(f'the query does not route its {kind} tuples; write .on(..., {kind}="route")')
    return results.where(f"kind = '{kind}'").select(*columns)


def _routes(results: DataFrame) -> list[str]:
    """The columns of routed tuples, which are after all others."""
    names = results.columns
    last = names[names.index("revision") + 1 :] if "revision" in names else names
    return [name for name in last if name in (LATE, BAD)]
