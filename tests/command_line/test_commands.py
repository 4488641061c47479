"""The other commands: help, version, explain, replay, doctor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muntin.cli import app
from muntin.command_line import doctor

TRANSCRIPT = """
columns: [t, v]
stream: {time: t}
windows: {ten: {type: tumbling, length: 10}}
aggregates: {n: {function: count}}
transcripts:
  - name: half_open
    steps:
      - input: [[0, 1], [9, 1], [10, 1]]
      - watermark: 10
        expect: [{window: [0, 10], n: 2}]
"""
QUERY = """
[stream]
time = "t"
[windows.ten]
type = "tumbling"
length = 10
[aggregates.n]
function = "count"
"""


def muntin(*arguments: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output + repr(done.exception)
    return done


@pytest.mark.parametrize("command", ["run", "explain", "replay", "doctor", "warmup", "demo", "state"])
def test_help_has_examples(command: str) -> None:
    shown = muntin(command, "--help").stdout
    examples = shown.partition("Examples:\n")[2].splitlines()
    assert examples[0].startswith("    ")
    assert f"muntin {command}" in examples[0]


def test_help_has_the_exit_codes_and_every_command() -> None:
    shown = muntin("--help").stdout
    assert "130  stopped with Ctrl-C" in shown
    for command in ("run", "explain", "replay", "doctor", "warmup", "demo", "state"):
        assert f"\n  {command} " in shown


def test_version() -> None:
    assert muntin("--version").stdout == "muntin 0.1.0\n"


def test_explain(tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text(QUERY)
    shown = muntin("explain", str(tmp_path / "q.toml")).stdout
    assert [line.split()[0] for line in shown.splitlines()[:3]] == ["computes", "keeps", "emits"]
    assert "store?" not in shown
    assert "--verbose" in shown
    assert "store? lazy" in muntin("explain", str(tmp_path / "q.toml"), "--verbose").stdout
    (tmp_path / "q.toml").write_text(QUERY.replace("tumbling", "hopping"))
    assert 'Did you mean "sliding"?' in muntin("explain", str(tmp_path / "q.toml"), code=2).stderr


def test_replay_compares_a_transcript(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(TRANSCRIPT)
    assert muntin("replay", str(path)).stdout.splitlines() == [
        "ok  half_open",
        "1 of 1 transcripts are as expected",
    ]
    path.write_text(TRANSCRIPT.replace("n: 2}", "n: 3}"))
    told = muntin("replay", str(path), code=1).stdout
    assert told.startswith("failed  half_open: as given: ")
    assert told.endswith("0 of 1 transcripts are as expected\n")
    path.write_text("nonsense: [")
    assert muntin("replay", str(path), code=2).stderr.startswith("error: ")


def test_doctor_finds_nothing_wrong_here() -> None:
    shown = muntin("doctor").stdout
    assert f"ok  Python: {sys.version.split()[0]}" in shown
    assert "compiled code: " in shown


def test_doctor_names_the_line_that_mends(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"pandas": "3.0.1", "numba": "0.68.0", "numpy": "2.4.0"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    shown = muntin("doctor", code=1).stdout.splitlines()
    for line, cure in {
        "    wrong  pyarrow: not installed": "pip install --upgrade pyarrow",
        "for Spark  pyspark: not installed": 'pip install "muntin[spark]"',
        "for Spark  pandas: 3.0.1, with which Spark's streams fail": 'pip install "pandas>=2.2,<3"',
        "for Spark  Java: none in JAVA_HOME, /nowhere": (
            "unset JAVA_HOME, or sudo apt-get install default-jre-headless"
        ),
    }.items():
        assert shown[shown.index(line) + 1] == f"           -> {cure}"
