"""Modules of compiled functions, imported at the first call of one of their functions."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class DeferredImport:
    """The functions of a module as attributes; the first access imports the module.

    Writing and explaining a query must not import Numba (0.1 s where measured). An `import`
    statement inside the calling function would avoid it too, but costs as much per call as many of these
    functions take.

    >>> kernels = DeferredImport("muntin.timeline.extent_kernels")
    >>> import numpy as np
    >>> kernels.extent(np.array([3, 1, 2]))
    (1, 3, False)
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:  # called for names that are not attributes yet
        if name.startswith("__"):  # an introspection protocol, not a kernel
            raise AttributeError(name)
        function = getattr(import_module(self._module), name)
        setattr(self, name, function)
        return function
