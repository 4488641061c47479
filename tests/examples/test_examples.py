"""The programs and notebooks of `examples/` run, and show what their files say."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from tools.run_notebooks import NOTEBOOKS, executed, text

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
ON_SPARK = {"on_spark"}
"""These run in tests/spark."""


def promised(program: Path) -> str:
    """The output at the end of a program."""
    lines = program.read_text().partition("\n# Output:\n")[2].splitlines(keepends=True)
    return "".join(line.removeprefix("# ") for line in lines)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.stem not in ON_SPARK], ids=lambda p: p.stem)
def test_a_program_prints_what_stands_at_its_end(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(program), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    assert printed == promised(program)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_shows_what_its_cells_show_now(path: Path) -> None:
    # `python -m tools.run_notebooks` stores the outputs of a run.
    stored = path.read_text()
    notebook = executed(json.loads(stored))
    assert any(cell.get("outputs") for cell in notebook["cells"])
    assert text(notebook) == stored


def test_the_page_of_examples_names_all_of_them() -> None:
    named = re.findall(r"\(([^)]+\.(?:py|ipynb))\)", (ROOT / "examples" / "README.md").read_text())
    assert sorted(named) == sorted(path.name for path in [*PROGRAMS, *NOTEBOOKS])
    assert (len(PROGRAMS), len(NOTEBOOKS)) == (11, 2)
