"""The nullability of the columns of a result, as that of Spark's own functions.

A key is nullable where the input's column is. Windows and their names are never null, nor are aggregates
with a result over no value (counts, lists, sketches) that all windows show. All of these are nullable where
tuples are routed, whose rows lack them, and aggregates where a change may remove them.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, NullType, StructField, StructType

from muntin.aggregates.base import Aggregate
from muntin.query import WINDOW_NAME, QuerySpec

__all__ = ["exact_schema"]

LISTS = frozenset(
    {"collect", "collect_set", "count_min", "frequent_items", "histogram", "naive_bayes", "percentiles"}
)


def exact_schema(
    query: QuerySpec, results: pa.Schema, given: pa.Schema, changing: bool = False
) -> StructType:
    """The columns `results` with their nullability, for a query over the columns `given`."""
    has_routed_rows = query.late == "route" or query.bad == "route"
    keys = {key: given.field(key).nullable for key in query.keys}
    aggregates = dict(query.aggregates)
    always = {"kind"} if has_routed_rows else {WINDOW_NAME, "window", "kind", "revision"}
    fields = []
    for field in from_arrow_schema(results):
        kind, aggregate = field.dataType, aggregates.get(field.name)
        nullable = keys.get(field.name, field.name not in always)
        if aggregate is not None:
            nullable = has_routed_rows or changing or aggregate.only is not None or _may_be_null(aggregate)
            kind = _without_null_items(kind) if _skips_nulls(aggregate) else kind
        fields.append(StructField(field.name, kind, nullable))
    return StructType(fields)


def _may_be_null(aggregate: Aggregate) -> bool:
    """Whether the result over no value is null; functions of the user may return None for any."""
    return aggregate.constructor == "aggregate" or aggregate.lower(aggregate.identity()) is None


def _skips_nulls(aggregate: Aggregate) -> bool:
    """Whether the result is a list of values without nulls, and not a list from an input column."""
    if aggregate.constructor == "top_k":
        return getattr(aggregate, "by", None) is None
    return aggregate.constructor in LISTS


def _without_null_items(kind: DataType) -> DataType:
    if not isinstance(kind, ArrayType) or isinstance(kind.elementType, NullType):
        return kind
    return ArrayType(kind.elementType, containsNull=False)
