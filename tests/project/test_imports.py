"""What `import muntin` costs, and where the heavy packages may be imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "muntin"
MODULES = sorted(PACKAGE.rglob("*.py"))

LIMIT = 0.3
LOADED = "import muntin, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
# CPU time: what other processes take from a busy machine is not Muntin's.
ELAPSED = "import time; t = time.process_time(); import muntin; print(time.process_time() - t)"


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_muntin_loads_no_heavy_package() -> None:
    loaded = python(LOADED).split()
    assert "muntin" in loaded
    assert {"numba", "pyspark", "pandas", "polars", "duckdb", "matplotlib"}.isdisjoint(loaded)


def test_importing_muntin_takes_less_than_a_third_of_a_second() -> None:
    # The best of a few: the first one may write bytecode.
    assert min(float(python(ELAPSED)) for _ in range(5)) < LIMIT


def imported(module: Path) -> Iterator[str]:
    """The top-level packages that a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_numba_is_imported_only_by_modules_of_kernels() -> None:
    others = [module for module in MODULES if not module.stem.endswith("kernels")]
    assert [str(module.relative_to(PACKAGE)) for module in others if "numba" in imported(module)] == []


def test_pyspark_is_imported_only_under_connectors_spark() -> None:
    spark = PACKAGE / "connectors" / "spark"
    others = [module for module in MODULES if spark not in module.parents]
    assert [str(module.relative_to(PACKAGE)) for module in others if "pyspark" in imported(module)] == []
