"""What `import muntin` gives, and what it costs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

import muntin as mt
from muntin import dsl, windows_package
from muntin import windows as w


def test_public_names() -> None:
    for name in mt.__all__:
        assert getattr(mt, name) is not None
    assert mt.col is pc.field
    assert dir(mt) == sorted(mt.__all__)
    with pytest.raises(AttributeError, match=r'Did you mean "windows"\?'):
        mt.window  # noqa: B018  # the access is the test


def test_windows_is_a_package_and_starts_queries() -> None:
    assert inspect.ismodule(w)
    assert mt.windows is w
    assert isinstance(w.tumbling(10), w.base.Window)
    assert isinstance(mt.windows(ten=w.tumbling(10)), mt.Query)


def test_type_checkers_see_every_constructor() -> None:
    seen = inspect.getsource(windows_package.WindowsPackage)
    constructors = [name for name in w.__all__ if name.islower()]
    for name in (*constructors, "ContextFree", "ForwardContextFree", "ForwardContextAware"):
        assert f" {name} = " in seen


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
