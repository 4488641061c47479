"""The decorator of kernels: functions compiled at their first call, with the machine code cached on disk."""

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
    """Compile a function for the types of its arguments, and cache the machine code.

    The machine code of a function contains that of the functions it calls, but Numba's cache checks the
    function's own file only. So the cache key includes a digest of the module and of its imports: after an
    upgrade no old code is loaded.
    """
    function.__qualname__ += f"@{_digest(function.__module__)}"
    return cast(Function, njit(cache=True, nogil=True)(function))


@cache
def _digest(name: str) -> str:
    """A digest of a module's source, and of the functions and constants that it has imported so far."""
    module = sys.modules[name]
    digest = hashlib.sha1(inspect.getsource(module).encode(), usedforsecurity=False)
    for variable, value in sorted(vars(module).items()):
        text = None if variable.startswith("__") else _stable_text(value)
        if text is not None:
            digest.update(f"{variable}={text}\n".encode())
    return digest.hexdigest()[:10]


def _stable_text(value: Any) -> str | None:
    """A text of the value that is the same in every process; None if it has none."""
    if isinstance(value, Dispatcher):
        return str(value.py_func.__qualname__)
    if isinstance(value, FunctionType):
        code = value.__code__
        return repr((code.co_code, code.co_names, [_stable_text(constant) for constant in code.co_consts]))
    if isinstance(value, tuple):
        return repr([_stable_text(part) for part in value])
    return repr(value) if isinstance(value, bool | int | float | str | bytes | np.generic) else None
