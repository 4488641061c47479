"""Compiled code: where it is kept, what a user hears of it, and `muntin warmup`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import muntin as mt
from benchmarks.core import drive
from benchmarks.workloads import chosen
from muntin import aggregates as a
from muntin import warming
from muntin import windows as w
from muntin.cli import app
from muntin.compiling_kernels import MESSAGE, announce_compiling

PACKAGE = Path(mt.__file__).parent

KERNEL = """
import os, muntin, numpy as np
from muntin import compiling_kernels
compiling_kernels.LONG = {long}
from muntin.slicing.key_kernels import select_keys
index = np.empty(5, dtype=np.int64)
n = select_keys(np.array([0, 1, 1, 2]), 1, 2, index)
print(index[:n].tolist(), select_keys.stats.cache_path, sum(select_keys.stats.cache_hits.values()))
"""


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    return subprocess.Popen(
        [sys.executable, "-B", "-c", code],
        env=kept
        | {"PYTHONPATH": str(PACKAGE.parent), "HOME": "/dev/null/home"}
        | {"MUNTIN_COMPILE": "always"}
        | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[list[str], str]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out.split(), err


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    """A copy of the package beside which nothing can be kept, not even by root: files are in the way."""
    copy = tmp_path / "installed" / "muntin"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "tmp").mkdir()
    return copy


OUTER = """
from muntin.compiled_kernels import compiled
from inner import BASE, inner

@compiled
def outer(x):
    return below(x)

@compiled
def below(x):
    return inner(x) + BASE
"""

INNER = """
from muntin.compiled_kernels import compiled

BASE = {base}

@compiled
def inner(x):
    return x * {factor}
"""

CALL = "import muntin; from outer import outer; print(outer(3), sum(outer.stats.cache_hits.values()))"


def test_what_is_kept_is_left_behind_when_something_it_was_made_from_changes(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)

    def call(base: int, factor: int) -> list[str]:
        (tmp_path / "inner.py").write_text(INNER.format(base=base, factor=factor))
        return ended(start(CALL, PYTHONPATH=f"{PACKAGE.parent}{os.pathsep}{tmp_path}"))[0]

    assert call(0, 10) == ["30", "0"]
    assert call(0, 10) == ["30", "1"]  # by another process, with another seed of hashes
    assert call(0, 20) == ["60", "0"]
    assert call(7, 20) == ["67", "0"]
    assert call(0, 10) == ["30", "1"]  # as it was at first


LOOPS = """
import numpy as np
from muntin import scalars
from muntin.aggregates.partials.loop_kernels import loops
from muntin.aggregates.partials.moment_kernels import MOMENT
state, lo, out = np.arange(4), np.zeros(1, np.int64), np.zeros(1, np.int64)
hits = 0
for declared in (scalars.LARGEST, scalars.SMALLEST, scalars.COUNT):
    reduce = loops(declared).reduce_rows
    reduce(state, None, lo, lo + 4, out)
    print(out[0])
    hits += sum(reduce.stats.cache_hits.values())
moments, one = np.zeros(4), (np.ones(4, np.int64), np.arange(4.0), np.zeros(4), None, None, None)
all_ = (np.full(1, 4), np.full(1, 1.5), np.zeros(1), None, None, None)
reduce, out = loops(MOMENT).reduce_rows, np.zeros(1)
reduce(moments, None, lo, lo + 4, out, *one, *all_)
print(out[0], hits + sum(reduce.stats.cache_hits.values()))
"""


def test_loops_of_a_declaration_are_loaded_by_the_next_process(tmp_path: Path) -> None:
    for hits in ("0", "4"):
        out, _ = ended(start(LOOPS, NUMBA_CACHE_DIR=str(tmp_path)))
        assert out == ["3", "0", "6", "5.0", hits]


def test_without_a_writable_place_a_temporary_folder_serves_several_processes(
    read_only: Path, tmp_path: Path
) -> None:
    places = {"PYTHONPATH": str(read_only.parent), "TMPDIR": str(tmp_path / "tmp")}
    together = [start(KERNEL.format(long=1e9), **places) for _ in range(2)]
    folders = set()
    for out, err in map(ended, together):
        assert out[:2] == ["[1,", "2]"]
        assert not err  # a compilation that is not long is not told
        folders.add(Path(out[2]).parent)
    (folder,) = folders
    assert folder.parent == tmp_path / "tmp"
    assert folder.stat().st_mode & 0o077 == 0
    (*_, hits), _ = ended(start(KERNEL.format(long=1e9), **places))
    assert hits == "1"  # what the others compiled


def test_a_folder_that_others_can_write_to_is_not_trusted(read_only: Path, tmp_path: Path) -> None:
    user = os.getuid()
    known = tmp_path / "tmp" / f"muntin-compiled-{user}"
    known.mkdir()
    known.chmod(0o777)
    places = {"PYTHONPATH": str(read_only.parent), "TMPDIR": str(tmp_path / "tmp")}
    out, _ = ended(start("import muntin, os; print(os.environ['NUMBA_CACHE_DIR'])", **places))
    assert Path(out[0]) != known
    assert Path(out[0]).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_place_that_the_user_names_is_used(name: str, read_only: Path, tmp_path: Path) -> None:
    code = "import muntin, os; print(os.environ.get('NUMBA_CACHE_DIR'))"
    places = {"PYTHONPATH": str(read_only.parent), "TMPDIR": str(tmp_path / "tmp"), name: str(tmp_path)}
    out, _ = ended(start(code, **places))
    assert out == [str(tmp_path) if name == "NUMBA_CACHE_DIR" else "None"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_long_compilation_is_told_once_and_only_where_it_happens(tmp_path: Path) -> None:
    code = KERNEL.format(long=0.0) + "select_keys(np.array([0, 1], dtype=np.int32), 0, 2, index)"
    _, first = ended(start(code, NUMBA_CACHE_DIR=str(tmp_path)))
    assert first == MESSAGE
    _, second = ended(start(code, NUMBA_CACHE_DIR=str(tmp_path)))
    assert second == ""


def test_warmup_leaves_nothing_to_compile() -> None:
    shown = CliRunner().invoke(app, ["warmup"])
    assert shown.exit_code == 0
    assert re.search(r"(\d functions compiled|everything was compiled already); \d+\.\d s", shown.output)
    announcer = announce_compiling()
    before = announcer.compiled
    for workload in chosen(("M", "W", "P")):
        drive(workload, workload.shape.generate(5_000).batches(2_000))
    query = mt.windows(ten=w.tumbling(10)).aggregate(m=a.median("v"), s=a.sum("v"))
    numbers = np.arange(300_000)
    for size in (10, 1000):
        for threaded in (query, mt.windows(ten=w.tumbling(size)).aggregate(s=a.sum("v"), n=a.count())):
            columns = {"t": numbers // 5, "k": numbers % 30, "v": numbers}
            threaded.by("k").on("t").run(columns, threads=2)
            threaded.on("t").run(columns, threads=2)
    table = pa.table({"t": [3, 1], "k": ["x", "y"], "v": np.array([0.5, 2.0])})
    mt.windows(ten=w.tumbling(10)).aggregate(m=a.median("v"), s=a.sum("v")).by("k").on("t").run(table)
    assert announcer.compiled == before


def test_every_step_of_warmup_has_a_name_of_its_own() -> None:
    names = [name for name, _ in warming.steps()]
    assert len(names) == len(set(names))
