"""A query over a streaming DataFrame: packed micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.connectors.spark.guard import max_ahead_of
from muntin.connectors.spark.packed_rows import (
    CHANGE,
    CLOCK,
    GROUP,
    NEVER,
    NEWEST,
    PACKED,
    PAYLOAD,
    unpack_results,
)
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.processor import STEPPED, WindowProcessor
from muntin.connectors.spark.progress import metrics, metrics_name
from muntin.connectors.spark.settings import check_settings
from muntin.connectors.spark.step import Job
from muntin.connectors.spark.tuples import Input, prepare
from muntin.connectors.spark.watermark import RESULTS, delay_of, never_shared
from muntin.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["stream"]


def stream(
    query: QuerySpec, frame: DataFrame, tie: str | Column | None = None, control: str | None = None
) -> DataFrame:
    """The window results of a streaming DataFrame with a watermark."""
    session = frame.sparkSession
    check_settings(session)
    tuples = prepare(query, frame, tie, open_ended=control is not None)
    ahead, delay = max_ahead_of(query, frame), delay_of(frame, query.time)
    # With bad="fail" the guard itself raises the error for tuples from the future.
    engine = replace(query, max_ahead=ahead if tuples.timed else None)
    packer = PartitionPacker(engine, tuples.groups, tuples.schema, control, tuples.timed)
    packed = tuples.frame.mapInArrow(packer, from_arrow_schema(PACKED))
    if control is not None:
        packed = packed.unionByName(_changes(session, control, tuples))
    if query.idle_after is not None:
        packed = packed.unionByName(_heartbeat(session, tuples))
    ahead = None if delay is None else ahead
    job = Job(engine, tuples.schema, tuples.results, len(tuples.groups), ahead, delay or 0)
    run = uuid4().hex
    return (
        packed.where(never_shared())
        .groupBy(GROUP)
        .transformWithStateInPandas(WindowProcessor(job, run), STEPPED, "Append", "EventTime")
        .observe(f"{metrics_name(query)}_{run[:8]}", *metrics())
        .alias(RESULTS)
        .mapInArrow(_unpacker(), tuples.output)
    )


def _changes(session: SparkSession, control: str, tuples: Input) -> DataFrame:
    """Each new file in the directory, once for every key group.

    Spark's log of the micro-batches says which files belong to which one: a repeated micro-batch reads
    the same ones.
    """
    files = (
        session.readStream.format("text")
        .option("wholetext", True)
        .option("pathGlobFilter", "*.toml")
        .load(control)
    )
    text = f.concat(f.col("_metadata.file_name"), f.lit("\n"), f.col("value"))
    return files.select(_every_group(tuples), *_besides({CHANGE: text}))


def _heartbeat(session: SparkSession, tuples: Input) -> DataFrame:
    """The time of day, once a second for every key group.

    It starts a micro-batch where no tuple does, and is part of Spark's log: a repeated micro-batch sees
    the same time.
    """
    ticks = session.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
    return ticks.select(_every_group(tuples), *_besides({CLOCK: f.unix_micros("timestamp")}))


def _every_group(tuples: Input) -> Column:
    return f.explode(f.array(*(f.lit(group).cast("int") for group in tuples.groups))).alias(GROUP)


def _besides(given: dict[str, Column]) -> list[Column]:
    """The columns of a packed row beside its group; those not given hold nothing."""
    nothing = {
        NEWEST: f.lit(NEVER),
        PAYLOAD: f.lit(None).cast("binary"),
        CHANGE: f.lit(None).cast("string"),
        CLOCK: f.lit(NEVER),
    }
    return [column.alias(name) for name, column in (nothing | given).items()]


def _unpacker() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(PAYLOAD).drop_null():
                yield from unpack_results(payload.as_py())

    return unpack
