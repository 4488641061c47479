"""Python workers load what they run: no compiler, and nothing of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.spark_start import QUERIES, measure_spark_start
from muntin.shipped_library import FOLDER, MANIFEST
from muntin.shipping.library import obstacle

needs_library = pytest.mark.skipif(
    not (FOLDER / MANIFEST).exists(), reason=f"there is no library of compiled kernels: {obstacle()}"
)


MEGABYTES = {"tumbling and sliding": 210, "all windows": 270, "numeric aggregates": 210}
"""Bounds the resident memory of a worker after a stream: measured were 180, 213 and 186 MB.

With Numba it would be 300 or more. Sixteen windows at once give 13,000 rows a step.
"""


@needs_library
@pytest.mark.parametrize("name", QUERIES)
def test_a_new_worker_loads_no_compiler_and_no_command_line(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    found = measure_spark_start(spark, name, tmp_path)
    assert found.workers
    assert [(one.heavy, one.compiled) for one in found.workers] == [((), 0)] * len(found.workers)
    assert max(one.megabytes for one in found.workers) < MEGABYTES[name]
