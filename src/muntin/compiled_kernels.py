"""The decorator of functions that are compiled when first called and kept on disk."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of a module for the types that it is called with, and keep the result.

    Numba compiles what a function calls into it, but watches the function's own file only. So a function
    is kept under a name that tells what its module is made of, also what it imports: after an upgrade
    nothing of the old code is left inside.
    """
    function.__qualname__ += f"@{_made_of(function.__module__)}"
    return cast(Function, njit(cache=True, nogil=True)(function))


@cache
def _made_of(name: str) -> str:
    """A digest of a module's text, and of the functions and constants it has imported when this is asked."""
    module = sys.modules[name]
    digest = hashlib.sha1(inspect.getsource(module).encode(), usedforsecurity=False)
    for known, value in sorted(vars(module).items()):
        told = None if known.startswith("__") else _told(value)
        if told is not None:
            digest.update(f"{known}={told}\n".encode())
    return digest.hexdigest()[:10]


def _told(value: Any) -> str | None:
    """The value in words that are the same in every process; None if there are none."""
    if isinstance(value, Dispatcher):
        return str(value.py_func.__qualname__)
    if isinstance(value, FunctionType):
        code = value.__code__
        return repr((code.co_code, code.co_names, [_told(constant) for constant in code.co_consts]))
    if isinstance(value, tuple):
        return repr([_told(part) for part in value])
    return repr(value) if isinstance(value, bool | int | float | str | bytes | np.generic) else None
