"""What a user reads when something is wrong with the session, or with a running stream."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError
from muntin.windows.base import Window

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files  # beside this file, not installed
from test_streams import table

QUERY = mt.windows(two=w.count(2)).aggregate(total=a.sum("v")).by("k").on("ts")


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path / "in", "ts timestamp, k string, v long", "2 seconds")


def test_workers_without_muntin_are_noticed_when_the_query_is_built(
    spark: SparkSession, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec env -u PYTHONPATH {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    bounded = spark.createDataFrame(table((1, "a", 1)))
    for frame in (files.frame(), bounded):
        with pytest.raises(QueryError, match=r'os\.environ\["PYSPARK_PYTHON"\] = sys\.executable'):
            frame.transform(QUERY)
    # What runs in the JVM needs no Python.
    ten = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).on("ts")
    assert bounded.transform(ten).columns[0] == "window_name"


def test_another_python_that_has_muntin_is_fine(
    spark: SparkSession, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
    assert files.frame().transform(QUERY).columns[0] == "k"


@pytest.mark.parametrize("window", [w.tumbling("10 seconds"), w.count(2)], ids=["packing", "windows"])
def test_the_message_of_muntin_comes_first_in_what_a_stream_fails_with(
    files: Files, tmp_path: Path, window: Window
) -> None:
    query = mt.windows(it=window).aggregate(total=a.sum("v")).by("k").on("ts")
    files.put(table((None, "a", 1)))
    writer = files.frame().transform(query, plan="packed").writeStream.format("noop")
    running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(StreamingQueryException) as failed:
        running.processAllAvailable()
    told = str(failed.value)
    before, found, _ = told.partition('the column "ts" needs a value in every tuple')
    assert found
    assert "\n" not in before  # in the first line
