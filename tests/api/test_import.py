"""What `import muntin` gives, and what it costs."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import dsl
from muntin import windows as w

ROOT = Path(__file__).parents[2]


def test_public_names() -> None:
    for name in mt.__all__:
        assert getattr(mt, name) is not None
    assert mt.col is pc.field
    assert dir(mt) == sorted(mt.__all__)
    with pytest.raises(AttributeError, match=r'^muntin has no "window"; write mt.windows$'):
        mt.window  # noqa: B018  # the access is the test


def test_windows_is_a_package_and_starts_queries() -> None:
    assert inspect.ismodule(w)
    assert mt.windows is w
    assert isinstance(w.tumbling(10), w.base.Window)
    assert isinstance(mt.windows(ten=w.tumbling(10)), mt.Query)


@pytest.mark.parametrize("package", [mt, w, a], ids=lambda package: str(package.__name__))
def test_completion_offers_public_names(package: Any) -> None:
    assert dir(package) == sorted(package.__all__)


def test_type_checkers_see_every_public_window() -> None:
    source = inspect.getsource(w).partition("class Names:")[2]
    assert re.findall(r"^        (\w+)(?:: TypeAlias)? = ", source, re.MULTILINE) == w.__all__


CHECKED = {
    'w.tumbling("1 minute"); w.sliding(10, every=np.int64(5)); w.session(Decimal("0.5"), measure="km")': None,
    "w.tumblng(10)": 'no attribute "tumblng"',
    "w.tumbling([1, 2])": "incompatible type",
    "w.session(gap=5, emit_partial=True)": 'keyword argument "emit_partial"',
    "w.fixed_band(dt.date(2024, 1, 1), [1])": "incompatible type",
    "mt.windws(x=w.count(3))": 'no attribute "windws"',
    "mt.windows(x=10)": "incompatible type",
    "mt.every([1])": "incompatible type",
    'a.summ("v")': 'no attribute "summ"',
    "class Own(w.ContextFree): ...": None,
    "def rank(record: w.Record) -> int: return record.rank": None,
    'query: mt.Query = mt.windows(x=w.count(3)).aggregate(n=a.count()).by("k").on("t")': None,
    "op = query.operator(); rows: mt.Rows = op.open_windows(); rows = op.slices()[:2]": None,
    "op.opn_windows()": 'no attribute "opn_windows"',
    "op.slices().latest()": 'no attribute "latest"',
    "length: int = op.slices": "Incompatible types in assignment",
    "lines: str = str(query.explain(verbose=True)); query.explain().summary[0][1].upper()": None,
    "query.explain(verbos=True)": 'Unexpected keyword argument "verbos"',
    "results: mt.Results = query.run({})[1:].latest(); number: int = results.num_rows": None,
}


def test_type_checkers_report_mistakes_in_queries(tmp_path: Path) -> None:
    header = "import datetime as dt; from decimal import Decimal; import numpy as np; import muntin as mt; "
    header += "from muntin import aggregates as a, windows as w"
    (tmp_path / "user.py").write_text("\n".join([header, *CHECKED]))
    # With the cache of `make lint`, where there is one: without it this takes ten seconds.
    options = ["--strict", "--config-file", "pyproject.toml", "--cache-dir", ".mypy_cache"]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--follow-imports", "silent", str(tmp_path / "user.py")],
        capture_output=True,
        check=False,  # it reports mistakes
        text=True,
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "src"},
    )
    errors = [line for line in run.stdout.splitlines() if "user.py:" in line and ": error:" in line]
    reported = {int(line.split(":")[1]): line for line in errors}
    for number, (code, expected) in enumerate(CHECKED.items(), start=2):
        assert (expected is None) == (number not in reported), f"{code}: {reported.get(number)}"
        assert expected is None or expected in reported[number]


@pytest.mark.parametrize(
    "first",
    [
        "import muntin",
        "from muntin import windows as w",
        "import muntin.windows",
        "from muntin.windows import tumbling",
        "import muntin.windows.count",
    ],
)
def test_windows_are_callable_whatever_is_imported_first(first: str) -> None:
    code = f"{first}; import muntin as mt; print(mt.windows(c=mt.windows.count(3)))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "mt.windows(c=w.count(n=3))\n"


def test_the_package_is_typed() -> None:
    assert (Path(dsl.__file__).parent / "py.typed").exists()
