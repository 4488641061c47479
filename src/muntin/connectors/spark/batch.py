"""A query over a bounded DataFrame: packed groups, and the end of the table closes every window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.connectors.spark.packed_rows import GROUP, NEVER, NEWEST, PACKED, PAYLOAD
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.state import Stored
from muntin.connectors.spark.step import Given, Job, step
from muntin.connectors.spark.tuples import prepare
from muntin.connectors.spark.workers import message_first
from muntin.query import QuerySpec
from muntin.slicing.operator import SlicingOperator
from muntin.timeline import INF

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["whole"]


def whole(query: QuerySpec, frame: DataFrame, tie: str | Column | None = None) -> DataFrame:
    """The window results of a bounded DataFrame."""
    tuples = prepare(query, frame, tie)
    packer = PartitionPacker(query, tuples.groups, tuples.schema)
    finish = _finisher(Job(query, tuples.schema, tuples.results))
    return (
        tuples.frame.mapInArrow(packer, from_arrow_schema(PACKED))
        .groupBy(GROUP)
        .applyInArrow(finish, tuples.output)
    )


def _finisher(job: Job) -> Callable[[pa.Table], pa.Table]:
    """What runs for each key group: a function, since of a callable object Spark counts `self` too."""

    def finish(packed: pa.Table) -> pa.Table:
        stored = Stored(SlicingOperator(job.query), job.query)
        payloads = packed.column(PAYLOAD).drop_null().to_pylist()
        newest = pc.max(packed.column(NEWEST)).as_py()
        given = Given(tuple(payloads), None if newest == NEVER else newest, watermark=INF)
        with message_first():
            rows = step(stored, job, given)
        return pa.concat_tables(rows) if rows else job.outcome.empty_table()

    return finish
