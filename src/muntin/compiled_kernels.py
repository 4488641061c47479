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

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function for the types of its arguments, and cache the machine code.

    The machine code of a function contains that of the functions it calls, but Numba's cache checks the
    function's own file only. So the cache key includes a digest of the module and of its imports: after an
    upgrade no old code is loaded.
    """
    return compiled_around(function, ())


def compiled_around(function: Function, parts: Sequence[Any]) -> Function:
    """The same for a copy of a function whose globals hold these functions and constants."""
    names = [_digest_of(function.__module__)]
    for part in parts:
        names.append(_digest_of(part.__module__) if isinstance(part, FunctionType) else "")
        names.append(str(_stable_text(part)))
    function.__qualname__ += f"@{_digest(*names)}"
    return cast(Function, njit(cache=True, nogil=True)(function))


def inner(function: Function) -> Function:
    """Compile a function into those that call it; Python cannot call it, and the cache has no entry for it.

    That takes half the time of `compiled`, which also makes the ways in from Python and C.
    """
    function.__qualname__ += f"@{_digest_of(function.__module__)}"
    without: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, njit(nogil=True, **without)(function))


@cache
def _digest_of(name: str) -> str:
    """A digest of a module's text, and of the functions and constants it has imported when this is asked."""
    module = sys.modules[name]
    values = (
        (known, _stable_text(value)) for known, value in sorted(vars(module).items()) if known[:2] != "__"
    )
    return _digest(
        inspect.getsource(module), *(f"{known}={text}" for known, text in values if text is not None)
    )


def _digest(*texts: str) -> str:
    return hashlib.sha1("\n".join(texts).encode(), usedforsecurity=False).hexdigest()[:10]


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
