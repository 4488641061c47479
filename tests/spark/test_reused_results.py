"""Results of one transform that are used twice in one streaming query."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files, Running  # beside this file, not installed
from test_streams import table

QUERY = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).by("k").on("ts")


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    found = Files(spark, tmp_path / "in", "ts timestamp, k string, v long", "2 seconds")
    for second in (1, 12, 25, 60):
        found.put(table((second, "a", second), (second + 1, "b", 100)))
    return found


@pytest.mark.parametrize("plan", ["packed", "jvm"])
def test_two_selections_of_one_result_both_emit(files: Files, tmp_path: Path, plan: str) -> None:
    results = files.frame().transform(QUERY, plan=plan)
    small, large = results.where("total < 50"), results.where("total > 50")
    running = Running(small.union(large), tmp_path / "checkpoint")
    found = sorted((row["k"], row["total"]) for row in running.catch_up())
    running.stop()
    assert found == [("a", 1), ("a", 12), ("a", 25), ("b", 100), ("b", 100), ("b", 100)]


@pytest.mark.parametrize("plan", ["packed", "jvm"])
def test_two_equal_transforms_can_be_joined(files: Files, tmp_path: Path, plan: str) -> None:
    one, two = (files.frame().transform(QUERY, plan=plan) for _ in range(2))
    twice = two.select("k", "window", (f.col("total") * 2).alias("twice"))
    running = Running(one.join(twice, ["k", "window"]), tmp_path / "checkpoint")
    found = sorted((row["k"], row["total"], row["twice"]) for row in running.catch_up())
    running.stop()
    assert found == [("a", 1, 2), ("a", 12, 24), ("a", 25, 50), *[("b", 100, 200)] * 3]
