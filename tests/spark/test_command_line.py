"""`muntin run --engine spark` gives what the embedded engine gives."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from muntin.cli import app

QUERY = """
[stream]
time = "ts"
key = "shop"
[windows.minute]
type = "tumbling"
length = "1 minute"
[aggregates.total]
function = "sum"
column = "amount"
"""


@pytest.mark.parametrize("unit", [None, "s"])
def test_both_engines_agree(spark: SparkSession, tmp_path: Path, unit: str | None) -> None:
    (tmp_path / "q.toml").write_text(QUERY)
    times = ["1706702400", "1706702430", "1706702460"]
    if unit is None:
        times = ["2024-01-31T12:00:00", "2024-01-31T12:00:30", "2024-01-31T12:01:00"]
    rows = "".join(f"{time},a,{i}\n" for i, time in enumerate(times))
    (tmp_path / "x.csv").write_text(f"ts,shop,amount\n{rows}")
    command = ["run", str(tmp_path / "q.toml"), str(tmp_path / "x.csv"), "--format", "csv", "--quiet"]
    command += [] if unit is None else ["--time-unit", unit]
    both = [CliRunner().invoke(app, [*command, "--engine", engine]) for engine in ("embedded", "spark")]
    assert [done.exit_code for done in both] == [0, 0], both[1].output
    one, other = (list(csv.reader(done.stdout.splitlines())) for done in both)
    place = one[0].index("total")
    assert [row[place] for row in one] == [row[place] for row in other] == ["total", "1", "2"]
