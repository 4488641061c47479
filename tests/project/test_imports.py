"""What `import muntin` costs, and where the heavy packages may be imported."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from muntin.windows.base import ContextFreeWindow, Window
from muntin.windows.tuple_driven import TupleDriven

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "muntin"
MODULES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])

FAMILIES = (Window, ContextFreeWindow, TupleDriven)

LOADED = "import muntin, sys; print(*sorted(sys.modules))"


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_muntin_loads_no_heavy_package() -> None:
    # What an import costs is what it loads: with these, 0.3 s are soon gone; without, it takes 0.05 s.
    loaded = python(LOADED).split()
    assert "muntin" in loaded
    heavy = {
        "numba",
        "numpy",
        "pyarrow",
        "pyspark",
        "pandas",
        "polars",
        "duckdb",
        "matplotlib",
        "rich",
        "typer",
    }
    assert heavy.isdisjoint(name.partition(".")[0] for name in loaded)
    assert len([name for name in loaded if name.partition(".")[0] == "muntin"]) <= 5


def imported(module: Path) -> Iterator[str]:
    """The top-level packages that a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_numba_is_imported_only_by_modules_of_kernels() -> None:
    others = [module for module in MODULES if not module.stem.endswith("kernels")]
    assert [str(module.relative_to(ROOT)) for module in others if "numba" in imported(module)] == []


def test_pyspark_is_imported_only_under_connectors_spark() -> None:
    spark = PACKAGE / "connectors" / "spark"
    others = [module for module in MODULES if spark not in module.parents]
    assert [str(module.relative_to(ROOT)) for module in others if "pyspark" in imported(module)] == []


def imported_windows(module: Path) -> Iterator[str]:
    """The window classes that a module imports, but for the families."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("muntin.windows"):
            found = importlib.import_module(node.module or "")
            for name in node.names:
                item = getattr(found, name.name)
                if isinstance(item, type) and issubclass(item, Window) and item not in FAMILIES:
                    yield name.name


def test_engine_and_planning_know_no_window_by_its_class() -> None:
    # A window describes itself by traits; only the translation to Spark's own operators names classes.
    translation = PACKAGE / "connectors" / "spark" / "jvm"
    folders = [PACKAGE / name for name in ("planning", "slicing", "connectors")]
    modules = [m for folder in folders for m in sorted(folder.rglob("*.py")) if translation not in m.parents]
    assert len(modules) > 60
    assert {str(m.relative_to(ROOT)): found for m in modules if (found := list(imported_windows(m)))} == {}
