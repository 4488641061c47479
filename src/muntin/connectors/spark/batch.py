"""A query over a bounded DataFrame: packed groups, and the end of the table closes every window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.connectors.spark.packing import GROUP, PACKED, Packing
from muntin.connectors.spark.payload import take_in
from muntin.connectors.spark.tuples import prepare
from muntin.query import QuerySpec
from muntin.slicing.operator import SlicingOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["whole"]


def whole(query: QuerySpec, frame: DataFrame) -> DataFrame:
    """The window results of a bounded DataFrame."""
    tuples = prepare(query, frame)
    packing = Packing(query, tuples.groups, tuples.sliced)
    finish = _finisher(query, tuples.schema, tuples.results)
    return (
        tuples.frame.mapInArrow(packing, from_arrow_schema(PACKED))
        .groupBy(GROUP)
        .applyInArrow(finish, from_arrow_schema(tuples.results))
    )


def _finisher(query: QuerySpec, schema: pa.Schema, results: pa.Schema) -> Callable[[pa.Table], pa.Table]:
    """What runs for each key group: a function, since of a callable object Spark counts `self` too."""

    def finish(packed: pa.Table) -> pa.Table:
        operator = SlicingOperator(query)
        payloads = packed.column("payload").drop_null().to_pylist()
        take_in(operator, schema, payloads, pc.max(packed.column("newest")).as_py())
        found = operator.finish()
        return found if found.num_rows else results.empty_table()

    return finish
