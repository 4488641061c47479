"""`python -m benchmarks micro-batch`: what it prints; `tests/spark/test_bench.py` runs it on Spark."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

pytest.importorskip("pyspark")

from benchmarks.micro_batch import PHASES, MicroBatch, show

FOUND = [MicroBatch("Muntin", dict(zip(PHASES, (212.4, 21, 12, 13, 160), strict=True)), 99.6, 30.2)]


def printed(as_json: bool) -> str:
    console = Console(file=io.StringIO(), width=140)
    show(FOUND, as_json, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_prints_a_table() -> None:
    row = next(line for line in printed(as_json=False).splitlines() if "Muntin" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "Muntin", "212", "21", "12", "13", "160", "100", "30",
    ]  # fmt: skip


def test_it_prints_json() -> None:
    (row,) = json.loads(printed(as_json=True))
    assert row["milliseconds"]["addBatch"] == 160
