"""Compilation of functions at their first call, with the machine code cached on disk."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

__all__ = ["compiled", "compiled_around", "inner"]

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of a module for the types that it is called with, and cache the result.

    Numba compiles what a function calls into it, but watches the function's own file only. So a function
    is cached under a name with a digest of its module and of what the module imports: after an upgrade
    nothing of the old code is loaded.
    """
    return compiled_around(function, ())


def compiled_around(function: Function, parts: Sequence[Any]) -> Function:
    """The same for a copy of a function whose globals hold these functions and constants."""
    names = [_made_of(function.__module__)]
    for part in parts:
        names.append(_made_of(part.__module__) if isinstance(part, FunctionType) else "")
        names.append(str(_told(part)))
    function.__qualname__ += f"@{_digest(*names)}"
    return cast(Function, njit(cache=True, nogil=True)(function))


def inner(function: Function) -> Function:
    """Compile a function into those that call it; Python cannot call it, and the cache has no entry for it.

    That takes half the time of `compiled`, which also makes the ways in from Python and C.
    """
    function.__qualname__ += f"@{_made_of(function.__module__)}"
    without: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, njit(nogil=True, **without)(function))


@cache
def _made_of(name: str) -> str:
    """A digest of a module's text, and of the functions and constants it has imported when this is asked."""
    module = sys.modules[name]
    values = ((known, _told(value)) for known, value in sorted(vars(module).items()) if known[:2] != "__")
    return _digest(
        inspect.getsource(module), *(f"{known}={told}" for known, told in values if told is not None)
    )


def _digest(*texts: str) -> str:
    return hashlib.sha1("\n".join(texts).encode(), usedforsecurity=False).hexdigest()[:10]


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
