"""The packed plan: partitions pack slices or tuples, and each key group has one call per micro-batch.

In a streaming DataFrame the call is stateful, and the watermark completes windows. In a bounded one, the end
of the table completes all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from muntin.connectors.spark import packed_rows as rows
from muntin.connectors.spark.group_state import Stored
from muntin.connectors.spark.guard import max_ahead_of
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.prepared_input import PreparedInput, prepare
from muntin.connectors.spark.processor import WindowProcessor
from muntin.connectors.spark.result_columns import PACKED_RESULTS, are_plain, plain_columns, results_of
from muntin.connectors.spark.spark_session import check_state_store
from muntin.connectors.spark.step import Given, Job, step
from muntin.connectors.spark.stream_stats import metrics, metrics_name
from muntin.connectors.spark.watermark import delay_of, never_shared
from muntin.connectors.spark.workers import message_first
from muntin.query import QuerySpec
from muntin.slicing.operator import SlicingOperator
from muntin.timeline import INF

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["bounded_packed", "stream_packed"]


def stream_packed(
    query: QuerySpec, frame: DataFrame, tie: str | Column | None = None, control: str | None = None
) -> DataFrame:
    """The window results of a streaming DataFrame with a watermark."""
    session = frame.sparkSession
    check_state_store(session)
    tuples = prepare(query, frame, tie, open_ended=control is not None)
    ahead, delay = max_ahead_of(query, frame), delay_of(frame, query.time)
    # With bad="fail" the guard itself raises the error for tuples from the future.
    engine = replace(query, max_ahead=ahead if tuples.timed else None)
    packer = PartitionPacker(engine, tuples.groups, tuples.schema, control, tuples.timed)
    packed = tuples.frame.mapInArrow(packer, from_arrow_schema(rows.PACKED))
    if control is not None:
        packed = packed.unionByName(_changes(session, control, tuples))
    if query.idle_after is not None:
        packed = packed.unionByName(_heartbeat(session, tuples))
    ahead = None if delay is None else ahead
    job = Job(engine, tuples.schema, tuples.results, len(tuples.groups), ahead, delay or 0)
    run = uuid4().hex
    plain = are_plain(tuples.output)
    stepped = (
        packed.where(never_shared())
        .groupBy(rows.GROUP)
        .transformWithStateInPandas(
            WindowProcessor(job, run, plain),
            plain_columns(tuples.output) if plain else PACKED_RESULTS,
            "Append",
            "EventTime",
        )
        .observe(f"{metrics_name(query)}_{run[:8]}", *metrics())
    )
    return results_of(stepped, tuples.output) if plain else stepped.mapInArrow(_unpacker(), tuples.output)


def bounded_packed(query: QuerySpec, frame: DataFrame, tie: str | Column | None = None) -> DataFrame:
    """The window results of a bounded DataFrame."""
    tuples = prepare(query, frame, tie)
    packer = PartitionPacker(query, tuples.groups, tuples.schema)
    return (
        tuples.frame.mapInArrow(packer, from_arrow_schema(rows.PACKED))
        .groupBy(rows.GROUP)
        .applyInArrow(_finisher(Job(query, tuples.schema, tuples.results)), tuples.output)
    )


def _changes(session: SparkSession, control: str, tuples: PreparedInput) -> DataFrame:
    """Each new file in the directory, once for every key group.

    Spark's log of the micro-batches names their files: a repeated micro-batch reads the same ones.
    """
    files = (
        session.readStream.format("text")
        .option("wholetext", True)
        .option("pathGlobFilter", "*.toml")
        .load(control)
    )
    text = f.concat(f.col("_metadata.file_name"), f.lit("\n"), f.col("value"))
    return files.select(*_to_every_group(tuples, {rows.CHANGE: text}))


def _heartbeat(session: SparkSession, tuples: PreparedInput) -> DataFrame:
    """The time of day, once a second for every key group.

    It starts a micro-batch where no tuple does, and is part of Spark's log: a repeated micro-batch reads
    the same time.
    """
    ticks = session.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
    return ticks.select(*_to_every_group(tuples, {rows.CLOCK: f.unix_micros("timestamp")}))


def _to_every_group(tuples: PreparedInput, given: dict[str, Column]) -> list[Column]:
    """The columns of packed rows for all key groups; those that are not given are empty."""
    columns = {
        rows.GROUP: f.explode(f.array(*(f.lit(group).cast("int") for group in tuples.groups))),
        rows.NEWEST: f.lit(rows.NEVER),
        rows.PAYLOAD: f.lit(None).cast("binary"),
        rows.CHANGE: f.lit(None).cast("string"),
        rows.CLOCK: f.lit(rows.NEVER),
    }
    return [column.alias(name) for name, column in (columns | given).items()]


def _unpacker() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(rows.PAYLOAD).drop_null():
                yield from rows.unpack_results(payload.as_py())

    return unpack


def _finisher(job: Job) -> Callable[[pa.Table], pa.Table]:
    """The function for each key group: not a callable object, since Spark would count `self` too."""

    def finish(packed: pa.Table) -> pa.Table:
        payloads = tuple(packed.column(rows.PAYLOAD).drop_null().to_pylist())
        newest = pc.max(packed.column(rows.NEWEST)).as_py()
        given = Given(payloads, None if newest == rows.NEVER else newest, watermark=INF)
        with message_first():
            results = step(Stored(SlicingOperator(job.query), job.query), job, given)
        return pa.concat_tables(results) if results else job.outcome.empty_table()

    return finish
