"""`muntin run --engine spark` gives what the embedded engine gives."""

from __future__ import annotations

import csv
import json
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


TIMES = {
    "integers": ["1706702400", "1706702430", "1706702460"],
    "no zone": ["2024-01-31T12:00:00", "2024-01-31T12:00:30", "2024-01-31T12:01:00"],
    "UTC": ["2024-01-31T12:00:00Z", "2024-01-31T12:00:30Z", "2024-01-31T12:01:00Z"],
    "offset": ["2024-01-31 14:00:00+02:00", "2024-01-31 13:00:30+01:00", "2024-01-31 12:01:00+00:00"],
}


@pytest.mark.parametrize(
    ("times", "form"),
    [("integers", "csv"), ("no zone", "csv"), ("UTC", "csv"), ("no zone", "jsonl"), ("offset", "jsonl")],
)
def test_both_engines_write_the_same(spark: SparkSession, tmp_path: Path, times: str, form: str) -> None:
    (tmp_path / "q.toml").write_text(QUERY)
    texts = TIMES[times]
    if form == "csv":
        rows = "ts,shop,amount\n" + "".join(f"{time},a,{i}\n" for i, time in enumerate(texts))
    else:
        values = [int(text) if times == "integers" else text for text in texts]
        rows = "".join(json.dumps({"ts": v, "shop": "a", "amount": i}) + "\n" for i, v in enumerate(values))
    (tmp_path / f"x.{form}").write_text(rows)
    command = ["run", str(tmp_path / "q.toml"), str(tmp_path / f"x.{form}"), "--format", "csv", "--quiet"]
    command += ["--time-unit", "s"] if times == "integers" else []
    both = [CliRunner().invoke(app, [*command, "--engine", engine]) for engine in ("embedded", "spark")]
    assert [done.exit_code for done in both] == [0, 0], both[1].output
    # Spark has microseconds only; the embedded engine keeps the unit of integers.
    assert both[0].stdout == both[1].stdout.replace(".000000", "" if times == "integers" else ".000000")
    one = list(csv.DictReader(both[0].stdout.splitlines()))
    assert [(row["window_start"][11:16], row["total"]) for row in one] == [("12:00", "1"), ("12:01", "2")]


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
