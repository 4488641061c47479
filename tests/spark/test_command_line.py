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


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["run", *arguments, "--engine", "spark", "--format", "csv"])
    assert done.exit_code == code, done.output + repr(done.exception)
    return done.stderr if code else done.stdout


def test_tabs_and_types(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text(MINUTES)
    (tmp_path / "x.tsv").write_text("ts\tamount\n2024-01-31T12:00:00\t1\n2024-01-31T12:00:30\t2\n")
    shown = run(f"{tmp_path}/q.toml", f"{tmp_path}/x.tsv", "--type", "amount=string")
    assert shown.splitlines()[1].split(",")[3] == '"2"'


def test_mistakes_are_one_message(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text(MINUTES)
    (tmp_path / "x.csv").write_text("ts,amount\n2024-01-31T12:00:00,1\nsoon,2\n")
    told = run(f"{tmp_path}/q.toml", f"{tmp_path}/x.csv", code=2)
    assert told.startswith("error: [CAST_INVALID_INPUT] The value 'soon' of the type")
    assert told.count("\n") == 1
    (tmp_path / "q.toml").write_text(MINUTES.replace('"ts"', '"ts"\nbad = "skip"'))
    assert len(run(f"{tmp_path}/q.toml", f"{tmp_path}/x.csv").splitlines()) == 2
    (tmp_path / "x.jsonl").write_text(
        '{"ts": "2024-01-31T12:00:00", "amount": 1}\n{"watermark": "2024-02-01"}\n'
    )
    told = run(f"{tmp_path}/q.toml", f"{tmp_path}/x.jsonl", code=2)
    assert "Spark reads no lines with a watermark alone" in told


MINUTES = """
[stream]
time = "ts"
[windows.minute]
type = "tumbling"
length = "1 minute"
[aggregates.most]
function = "max"
column = "amount"
"""
