"""Compiled functions that are imported when one of them is first called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["LazyKernels"]


class LazyKernels:
    """The functions of a module that imports Numba, as attributes.

    To write a query and to explain it must not import Numba. To import a function where it is called
    would do, but costs as much as many of these functions take, each time.

    >>> kernels = LazyKernels("muntin.timeline.extent_kernels")
    >>> import numpy as np
    >>> kernels.extent(np.array([3, 1, 2]))
    (1, 3, False)
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:  # called for what is not an attribute yet
        if name.startswith("__"):  # some tool looks at the object itself
            raise AttributeError(name)
        found = getattr(import_module(self._module), name)
        setattr(self, name, found)
        return found
