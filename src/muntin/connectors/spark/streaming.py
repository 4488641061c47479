"""A query over a streaming DataFrame: packed micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.connectors.spark.packing import GROUP, PACKED, Packing
from muntin.connectors.spark.payload import unpack_results
from muntin.connectors.spark.processor import WindowProcessor
from muntin.connectors.spark.settings import check_settings
from muntin.connectors.spark.tuples import prepare
from muntin.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["stream"]


def stream(query: QuerySpec, frame: DataFrame) -> DataFrame:
    """The window results of a streaming DataFrame with a watermark."""
    check_settings(frame)
    tuples = prepare(query, frame)
    packing = Packing(query, tuples.groups, tuples.sliced)
    processor = WindowProcessor(query, tuples.schema, uuid4().hex)
    return (
        tuples.frame.mapInArrow(packing, from_arrow_schema(PACKED))
        .groupBy(GROUP)
        .transformWithStateInPandas(processor, "payload binary", "Append", "EventTime")
        .mapInArrow(_unpack, from_arrow_schema(tuples.results))
    )


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for payload in batch.column("payload"):
            yield from unpack_results(payload.as_py())
