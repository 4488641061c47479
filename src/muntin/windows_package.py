"""One name for two things: the package of window constructors, and the start of a query.

`from muntin import windows as w` gives the package, `mt.windows(...)` starts a query: so the
package itself is callable. This is a module apart from `muntin.dsl` to keep `import muntin` light.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import muntin.windows as w
    from muntin.dsl import Query
    from muntin.windows.base import Window

__all__ = ["MuntinPackage", "WindowsPackage"]


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
        """Start a query from named windows; the names appear in the results' column `query`."""
        from muntin.dsl import windows

        return windows(*unnamed, **named)

    if TYPE_CHECKING:  # what a type checker sees in `from muntin import windows as w`
        boundary = staticmethod(w.boundary)
        calendar = staticmethod(w.calendar)
        count = staticmethod(w.count)
        cumulate = staticmethod(w.cumulate)
        delta = staticmethod(w.delta)
        discretize = staticmethod(w.discretize)
        fixed_band = staticmethod(w.fixed_band)
        landmark = staticmethod(w.landmark)
        last = staticmethod(w.last)
        punctuation = staticmethod(w.punctuation)
        session = staticmethod(w.session)
        slide_by_tuple = staticmethod(w.slide_by_tuple)
        sliding = staticmethod(w.sliding)
        threshold = staticmethod(w.threshold)
        trigger = staticmethod(w.trigger)
        tumbling = staticmethod(w.tumbling)
        until = staticmethod(w.until)
        ContextFree = w.ContextFree
        ForwardContextAware = w.ForwardContextAware
        ForwardContextFree = w.ForwardContextFree
