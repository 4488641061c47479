"""The benchmark `spark`, small: both sides give what NumPy counts, and all that is promised is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.flights import SPARK_BATCH, measure_on_spark
from benchmarks.micro_batch import PHASES, measure_micro_batches
from benchmarks.spark import measure
from benchmarks.spark_cases import CASES, chosen
from muntin.demo.flights import load

ROWS = 40_000


def ten_seconds(folder: Path) -> int:
    """How many windows of 10 s with tuples there are per key."""
    table = pq.read_table(folder)
    slots = table["ts"].to_numpy().astype("M8[s]").astype(np.int64) // 10
    return len(np.unique(np.stack([slots, table["k"].to_numpy()]), axis=1).T)


def test_a_bounded_workload(spark: SparkSession, tmp_path: Path) -> None:
    (case,) = chosen(("B1",))
    found = measure(spark, case, ROWS, 1, tmp_path / "run")
    assert found.windows == ten_seconds(tmp_path / "run" / "input")
    assert found.ratio == found.seconds[1] / found.seconds[0]
    assert min(found.shuffled) > 0
    assert found.state == found.overhead == (None, None)


def test_the_flights_of_the_demo(spark: SparkSession, tmp_path: Path) -> None:
    found = measure_on_spark(spark, load().slice(0, 2 * SPARK_BATCH + 1), tmp_path)
    assert len(found) == 2
    assert min(found) > 0


@pytest.mark.deep
@pytest.mark.parametrize("case", [case for case in CASES if case.streaming], ids=lambda case: case.name)
def test_a_stream(spark: SparkSession, tmp_path: Path, case: object) -> None:
    found = measure(spark, case, 2 * ROWS, 1, tmp_path / "run")  # 16 s: some windows of 10 s are complete
    assert found.windows > 0
    assert min(*found.shuffled, *found.state, *found.overhead) > 0


def test_small_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    found = measure_micro_batches(spark, 8, 1, tmp_path)
    assert [one.side for one in found] == ["Muntin", "Spark's window()"]
    assert all(one.milliseconds[name] > 0 for one in found for name in PHASES)
    assert all(one.jvm > 0 for one in found)
