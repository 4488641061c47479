"""Muntin: many window aggregates in one pass over a stream, from shared slices.

>>> import muntin as mt
>>> from muntin import windows as w, aggregates as a
>>> query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("amount")).on("at")
>>> query.run({"at": [1, 5, 12], "amount": [1, 2, 4]}).column("total").to_pylist()
[3, 4]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import muntin.windows as _windows_package
from muntin import aggregates, errors
from muntin.dsl import Query, WindowsPackage
from muntin.errors import MuntinError
from muntin.query import each_batch, every, on_close
from muntin.query_file import load

if TYPE_CHECKING:
    from pyarrow.compute import field as col

    from muntin.connectors.embedded import Operator

    __version__: str
    windows: WindowsPackage

__all__ = [
    "MuntinError",
    "Operator",
    "Query",
    "__version__",
    "aggregates",
    "col",
    "each_batch",
    "errors",
    "every",
    "load",
    "on_close",
    "windows",
]

# `from muntin import windows as w` must give the package, and `mt.windows(...)` start a
# query: one name, so the package itself becomes callable.
_windows_package.__class__ = WindowsPackage


def __getattr__(name: str) -> Any:
    """Names whose import would make `import muntin` slow."""
    if name == "col":
        from pyarrow.compute import field

        return field
    if name == "Operator":
        from muntin.connectors.embedded import Operator

        return Operator
    if name == "__version__":
        from importlib.metadata import version

        return version("muntin")
    raise AttributeError(f"module 'muntin' has no attribute {name!r}{errors.nearest(name, __all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
