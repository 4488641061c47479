"""Python workers load what they run: no compiler, and nothing of the command line."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.spark_start import QUERIES, measure_spark_start
from muntin.shipped_library import FOLDER, MANIFEST
from muntin.shipping.library import obstacle

needs_library = pytest.mark.skipif(
    not (FOLDER / MANIFEST).exists(), reason=f"there is no library of compiled kernels: {obstacle()}"
)


MEGABYTES = {"tumbling and sliding": 195, "all windows": 270, "numeric aggregates": 210}
"""Bounds the resident memory of a worker after a stream: measured were 166 MB for the first, and 213
and 186 for the others when workers still imported the file systems of clouds (7 MB).

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


@needs_library
def test_modules_of_a_worker_are_exempt_from_garbage_collection(spark: SparkSession, tmp_path: Path) -> None:
    measure_spark_start(spark, "tumbling and sliding", tmp_path)
    tasks = spark.sparkContext.parallelize(range(16), 8)
    # A lambda is pickled by its value: workers cannot import this module.
    looks = tasks.map(
        lambda _: (gc.get_freeze_count(), len(gc.get_objects()), "muntin.slicing.step" in sys.modules)
    )
    found = [look[:2] for look in looks.collect() if look[2]]
    assert min(exempt for exempt, _ in found) > 50_000
    assert max(others for _, others in found) < 20_000
