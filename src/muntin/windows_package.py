"""One name for two things: the package of window constructors, and the start of a query.

`from muntin import windows as w` gives the package, `mt.windows(...)` starts a query: so the
package itself is callable. This is a module apart from `muntin.dsl` to keep `import muntin` light.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muntin.dsl import Query
    from muntin.windows import Names
    from muntin.windows.base import Window

    class windows(Names, Query):  # noqa: N801  # the name that users write
        """The package as type checkers see it: a class is a namespace, and a call of it makes a query."""

        def __init__(self, *unnamed: object, **named: Window) -> None: ...


class MuntinPackage(ModuleType):
    """The class of the package `muntin`: makes `muntin.windows` callable when that is imported.

    Python puts an imported subpackage into its parent by setting an attribute; whichever import
    comes first, it passes here.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "windows":
            value.__class__ = WindowsPackage
        super().__setattr__(name, value)


class WindowsPackage(ModuleType):
    """The class of the package `muntin.windows`, which makes it callable: `mt.windows(...)`."""

    def __call__(self, *unnamed: object, **named: Window) -> Query:
        """Start a query from named windows; the names appear in the results' column `window_name`."""
        from muntin.dsl import windows

        return windows(*unnamed, **named)
