"""Numba's compilers of kernels; imported, and Numba with it, when something has to be compiled."""

from __future__ import annotations

from typing import Any

from numba import njit as njit
from numba import types
from numba.core import event
from numba.extending import typeof_impl

from muntin.compiling_kernels import announce_compiling
from muntin.shipped_library import shipped_library

ENTRIES: list[Any] = []
"""The compilers of all functions that Python calls, in the order in which they were made."""


def entry(function: Any) -> Any:
    """Compile a function that Python calls, and cache the machine code on disk."""
    made = njit(cache=True, nogil=True)(function)
    ENTRIES.append(made)
    return made


def inner(function: Any) -> Any:
    """Compile a function into those that call it.

    That takes half the time of `entry`, which also makes the ways in from Python and C.
    """
    without: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(nogil=True, **without)(function)


def uncached(function: Any) -> Any:
    """Compile a function that Python calls, in every process again."""
    return njit(nogil=True)(function)


class _Listener(event.Listener):
    """Passes on what Numba says about its compilations."""

    def on_start(self, event: Any) -> None:
        announce_compiling().on_start(event)

    def on_end(self, event: Any) -> None:
        announce_compiling().on_end(event)


def _type_of_kernel(kernel: Any, context: Any) -> Any:
    """A kernel of the library that another function calls has the type of Numba's compiler of it."""
    return types.Dispatcher(kernel.dispatcher)


event.register("numba:compile", _Listener())
if (library := shipped_library()) is not None:
    _registered: Any = typeof_impl.register(library.Kernel)
    _registered(_type_of_kernel)
