"""Muntin: many window aggregates in one pass over a stream, from shared slices.

>>> import muntin as mt
>>> from muntin import windows as w, aggregates as a
>>> query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("amount")).on("at")
>>> query.run({"at": [1, 5, 12], "amount": [1, 2, 4]}).column("total").to_pylist()
[3, 4]
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from muntin import errors
from muntin.cache_folder import ensure_cache_folder
from muntin.errors import MuntinError
from muntin.windows_package import MuntinPackage

if TYPE_CHECKING:
    from pyarrow.compute import field as col

    from muntin import aggregates
    from muntin.connectors import spark
    from muntin.connectors.embedded import Operator
    from muntin.dsl import Query
    from muntin.query import each_batch, every, on_change, on_close
    from muntin.query_file import load
    from muntin.results import Results, Rows
    from muntin.windows_package import windows

    __version__: str

__all__ = [
    "MuntinError",
    "Operator",
    "Query",
    "Results",
    "Rows",
    "__version__",
    "aggregates",
    "col",
    "each_batch",
    "errors",
    "every",
    "load",
    "on_change",
    "on_close",
    "spark",
    "windows",
]

sys.modules[__name__].__class__ = MuntinPackage
ensure_cache_folder()

_ELSEWHERE = {
    "Operator": ("muntin.connectors.embedded", "Operator"),
    "Query": ("muntin.dsl", "Query"),
    "Results": ("muntin.results", "Results"),
    "Rows": ("muntin.results", "Rows"),
    "aggregates": ("muntin.aggregates", None),
    "col": ("pyarrow.compute", "field"),
    "each_batch": ("muntin.query", "each_batch"),
    "every": ("muntin.query", "every"),
    "load": ("muntin.query_file", "load"),
    "on_change": ("muntin.query", "on_change"),
    "on_close": ("muntin.query", "on_close"),
    "spark": ("muntin.connectors.spark", None),
    "windows": ("muntin.windows", None),
}
"""Names that are imported when they are first used, so that `import muntin` loads neither NumPy nor Arrow."""

if not TYPE_CHECKING:  # which would take any name for one that exists

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("muntin")
        if name not in _ELSEWHERE:
            raise _unknown(name)
        module, attribute = _ELSEWHERE[name]
        imported = import_module(module)
        if attribute is None:  # a package, which importing it has put in its place
            return imported
        globals()[name] = getattr(imported, attribute)
        return globals()[name]


def _unknown(name: str) -> errors.UnknownNameError:
    import muntin.foreign_names as foreign_names  # `from muntin import` would ask for it here again

    foreign_names.refuse_submodule("muntin", name)
    elsewhere = dict(foreign_names.PACKAGE)
    if not name.startswith("_"):  # which Python and notebooks ask for
        for letter, package in (("a", "aggregates"), ("w", "windows")):
            names = import_module(f"muntin.{package}").__all__
            elsewhere |= {f"{letter}.{one}, from muntin.{package}": foreign_names.plain(one) for one in names}
    return foreign_names.unknown("muntin", name, __all__, elsewhere, "mt.")


def __dir__() -> list[str]:
    return sorted(__all__)
