"""`python -m benchmarks start --spark`: what it prints; `tests/spark/test_workers.py` runs it on Spark."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

pytest.importorskip("pyspark")

from benchmarks.loaded_modules import Loaded
from benchmarks.spark_start import SparkStart, show

FOUND = [SparkStart("all windows", 3.5, 1.25, (Loaded(7, (), 0, 150.4), Loaded(8, ("numba",), 3, 301.0)))]


def printed(as_json: bool) -> str:
    console = Console(file=io.StringIO(), width=140)
    show(FOUND, console, as_json)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_prints_a_table() -> None:
    row = next(line for line in printed(as_json=False).splitlines() if "all windows" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "all windows", "3.50", "1.25", "2.25", "3", "numba", "150, 301",
    ]  # fmt: skip


def test_it_prints_json() -> None:
    (row,) = json.loads(printed(as_json=True))
    assert row["workers"][1] == {"process": 8, "heavy": ["numba"], "compiled": 3, "megabytes": 301.0}
