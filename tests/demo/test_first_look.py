"""`muntin demo`: the first ten seconds."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from muntin.demo import first_look, program, twenty_windows
from muntin.demo.twenty_windows import Race, Timing, race


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(first_look, "race", lambda: race(20_000))
    console = Console(record=True, width=100, file=io.StringIO())
    first_look.show(console, tmp_path)
    return console.export_text()


def test_the_demo_shows_query_slices_late_tuple_and_comparison(printed: str) -> None:
    assert "visit=w.session(5)" in printed
    assert "├────────────────" in printed
    for row in (
        ["visit", "11 21", "8", "3", "retract", "1"],
        ["ten", "20 30", "23", "4", "update", "1"],
        ["visit", "11 40", "42", "9", "final", "0"],
    ):
        assert any(
            "  ".join(line.split("  ")).split() == " ".join(row).split() for line in printed.splitlines()
        )
    assert "the totals are equal" in printed


def test_the_program_is_written_and_runs(printed: str, tmp_path: Path) -> None:
    path = tmp_path / first_look.FILE
    assert f"python {first_look.FILE}" in printed
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    rows = done.stdout.splitlines()
    assert len(rows) == 12 + 6
    assert sum("'update'" in row for row in rows) == 3


def test_a_program_that_the_user_has_edited_stays(tmp_path: Path) -> None:
    path = tmp_path / first_look.FILE
    path.write_text("mine")
    assert "here already" in first_look.written("other", tmp_path)
    assert path.read_text() == "mine"


@pytest.mark.skipif(os.name == "nt", reason="a file in place of the folder")
def test_where_nothing_can_be_written_the_source_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert str(program.__file__) in first_look.written("source", tmp_path / "file")


def test_the_race_compares_the_results_of_both() -> None:
    found = race(50_000)  # 25 seconds
    assert found.windows == sum(-(-25 // length) for length in range(1, 21))
    assert found.polars is not None


def test_without_polars_the_demo_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twenty_windows, "find_spec", lambda _: None)
    assert "pip install polars" in first_look.compared(race(20_000))


def test_the_ratios_are_those_of_the_times() -> None:
    words = first_look.compared(Race(1_000_000, 7, Timing(0.01, 0.01), Timing(0.1, 0.2)))
    assert "10 times as fast, 20 times less CPU time" in words
