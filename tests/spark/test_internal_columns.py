"""The columns that the packed plan adds for itself are not shown to users."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark.group_state import Stored
from muntin.connectors.spark.packed_rows import GROUP, PACKED
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.step import Given, Job, step
from muntin.errors import DataError
from muntin.slicing.operator import SlicingOperator

sys.path.insert(0, str(Path(__file__).parent))
from test_streams import table

WINDOWS = {"slices": w.tumbling("10 seconds"), "tuples": w.count(2)}
SCHEMA = pa.schema([*table((1, "a", 1)).schema, pa.field("__arrival", pa.int64())])


def batch() -> pa.RecordBatch:
    """What Spark gives to a worker: a tuple without a time, and a good one."""
    (found,) = table((None, "a", 1), (3, "a", 2)).to_batches()
    columns = [*found.columns, pa.array([0, 0], pa.int32()), pa.array([123456789, 987654321])]
    return pa.record_batch(columns, names=[*found.schema.names, GROUP, "__arrival"])


def packed(query: mt.Query) -> list[pa.RecordBatch]:
    return list(PartitionPacker(query, (0,), SCHEMA)(iter([batch()])))


def stepped(query: mt.Query) -> Stored:
    stored = Stored(SlicingOperator(query), query)
    payloads = [row for one in packed(query) for row in one.column("payload").drop_null().to_pylist()]
    step(stored, Job(query, SCHEMA, PACKED), Given(tuple(payloads)))
    return stored


@pytest.mark.parametrize("kind", WINDOWS)
def test_the_message_about_a_bad_tuple_shows_the_columns_of_the_input(kind: str) -> None:
    query = mt.windows(it=WINDOWS[kind]).aggregate(total=a.sum("v")).by("k").on("ts")
    with pytest.raises(DataError, match="needs a value in every tuple") as failed:
        stepped(query)
    assert "'k': 'a', 'v': 1" in str(failed.value)
    assert "__" not in str(failed.value)


@pytest.mark.parametrize("kind", WINDOWS)
def test_the_log_of_bad_tuples_shows_the_columns_of_the_input(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    query = mt.windows(it=WINDOWS[kind]).aggregate(total=a.sum("v")).by("k").on("ts", bad="skip")
    with caplog.at_level(logging.WARNING, "muntin"):
        stepped(query)
    assert "1 bad tuples" in caplog.text
    assert "__" not in caplog.text


class Pairs(w.ForwardContextFree):
    """A window begins at each odd tuple; it counts on what the records show."""

    def observe(self, state: object, record: Any) -> tuple[object, int, int]:
        if sorted(record) != ["k", "ts", "v"]:
            raise ValueError(f"the record has {sorted(record)}")
        return state, int(record["v"] % 2), int(record["v"] % 2)


def test_functions_of_the_user_see_the_columns_of_the_input(spark: SparkSession) -> None:
    query = mt.windows(it=Pairs()).aggregate(n=a.count()).by("k").on("ts")
    data = table((1, "a", 1), (2, "a", 2), (3, "a", 1), (4, "a", 2), (5, "a", 3))
    found = spark.createDataFrame(data).transform(query).collect()
    assert sorted(row["n"] for row in found) == sorted(query.run(data).column("n").to_pylist())
