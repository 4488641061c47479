"""Functions that run as machine code: from the library that ships, or compiled by Numba when first called."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from muntin.shipped_library import shipped_library

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A function as machine code for the types of its arguments.

    The machine code of a function contains that of the functions it calls. So its name gets a digest of the
    module and of its imports: after a change no old code is found, neither in the library nor in Numba's
    cache.
    """
    return compiled_around(function, ())


def compiled_around(
    function: Function, functions: Sequence[Any], prepare: Callable[[], None] | None = None
) -> Function:
    """The same for a copy of a function whose globals hold these functions and constants.

    `prepare` adds to its globals what only a compiler needs.
    """
    names = [_digest_of(function.__module__)]
    for part in functions:
        names.append(_digest_of(part.__module__) if isinstance(part, FunctionType) else "")
        names.append(str(_stable_text(part)))
    return _kernel(function, _digest(*names), "entry", prepare)


def inner(function: Function) -> Function:
    """A function that becomes part of those that call it; Python cannot call it."""
    return _kernel(function, _digest_of(function.__module__), "inner")


def _kernel(
    function: Function, digest: str, role: str, prepare: Callable[[], None] | None = None
) -> Function:
    """A function of the library, or one that Numba compiles if there is no library."""
    function.__qualname__ += f"@{digest}"
    library = shipped_library()
    if library is None:
        return cast(Function, _dispatcher(function, role, prepare))
    name = f"{function.__module__}.{function.__qualname__}"
    return cast(Function, library.Kernel(name, function, partial(_dispatcher, function, role, prepare)))


def _dispatcher(function: Any, role: str, prepare: Callable[[], None] | None) -> Any:
    """Numba's compiler of a function."""
    from muntin import dispatcher_kernels  # imports Numba

    if prepare:
        prepare()
    return getattr(dispatcher_kernels, role)(function)


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
    if isinstance(value, FunctionType):
        code = value.__code__
        return repr((code.co_code, code.co_names, [_stable_text(constant) for constant in code.co_consts]))
    if isinstance(value, tuple):
        return repr([_stable_text(part) for part in value])
    if isinstance(value, bool | int | float | str | bytes | np.generic):
        return repr(value)
    function = inspect.getattr_static(value, "py_func", None) and value.py_func  # another kernel
    return str(function.__qualname__) if isinstance(function, FunctionType) else None
