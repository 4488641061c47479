"""One source per algorithm: the same functions compiled for numbers and interpreted for objects.

A ``*_kernels`` module has plain Python functions over indexable columns. They refer to the functions of a
monoid as module globals (``combine``, ``lift``, ``get``, ``put``, ``ONE``). `specialise` copies these
functions with the globals of one monoid: interpreted over lists, or compiled by Numba over NumPy arrays
(the code generation of the Reactive Aggregator, paper 5.3).
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from muntin.stores import columns

if TYPE_CHECKING:
    from muntin.stores.monoids import Monoid

_FORMAT = "6"  # belongs to the cache key of compiled kernels: raise it when this module changes their meaning
_namespaces: dict[tuple[object, ...], types.SimpleNamespace] = {}


def specialise(
    modules: Sequence[types.ModuleType],
    monoid: Monoid,
    *,
    compiled: bool,
    constants: Mapping[str, Any] = MappingProxyType({}),
) -> types.SimpleNamespace:
    """The functions of the kernel modules for one monoid, as attributes of a namespace.

    ``constants`` replace the modules' constants of these names (the arity of a tree).
    Numba caches the compiled kernels of named monoids on disk, so only the first process compiles.
    """
    key = (*(module.__name__ for module in modules), monoid, compiled, *sorted(constants.items()))
    namespace = _namespaces.get(key)
    if namespace is None:
        bindings = {**_bindings(monoid, compiled), **constants}
        suffix = f"@{monoid.name}.{_fingerprint(monoid, modules, constants)}" if compiled else ""
        namespace = _namespaces[key] = _copy(modules, bindings, suffix, compiled, cache=monoid.named)
    return namespace


def _bindings(monoid: Monoid, compiled: bool) -> dict[str, Any]:
    if not compiled:
        return {
            "get": columns.get_one,
            "put": columns.put_one,
            "ONE": monoid.python.identity,
            "combine": monoid.python.combine,
            "invert": monoid.python.invert,
            "lift": monoid.python.lift,
        }
    from muntin.stores.jit_kernels import jit

    get, put = columns.ACCESSORS[len(monoid.columns) - 1]
    functions = {"get": get, "put": put, "combine": monoid.combine, "lift": monoid.lift}
    if monoid.invert is not None:
        functions["invert"] = monoid.invert
    return {
        "ONE": monoid.identity,
        **{name: jit(function, hot=True) for name, function in functions.items()},
    }


def _copy(
    modules: Sequence[types.ModuleType],
    bindings: dict[str, Any],
    suffix: str,
    compiled: bool,
    cache: bool,
) -> types.SimpleNamespace:
    namespace: dict[str, Any] = {}
    for module in modules:
        namespace |= vars(module)  # a later module's function takes the place of an earlier one's
    namespace |= bindings
    functions = {
        name: value
        for name, value in namespace.items()
        if isinstance(value, types.FunctionType) and value.__module__ in {m.__name__ for m in modules}
    }
    for name, function in functions.items():
        namespace[name] = types.FunctionType(function.__code__, namespace, name, function.__defaults__)
    if compiled:
        hot = {name for module in modules for name in getattr(module, "HOT", ())}
        return _compile(namespace, list(functions), hot, suffix, cache)
    return types.SimpleNamespace(**{name: namespace[name] for name in (*functions, "combine")})


def _compile(
    namespace: dict[str, Any], names: list[str], hot: set[str], suffix: str, cache: bool
) -> types.SimpleNamespace:
    """Kernels that call each other, and an entry from Python for each; all compiled when first called."""
    from muntin.stores.jit_kernels import jit, jit_entry
    from muntin.stores.pointer_kernels import bare

    for name in names:
        namespace[name] = jit(namespace[name], hot=name in hot)
    entries: dict[str, Any] = {}
    for name in (*names, "combine"):
        entry = types.FunctionType(_enter.__code__, {"kernel": namespace[name], "bare": bare}, name)
        entry.__module__ = _enter.__module__
        # Numba's cache identifies a function by file, line and qualified name, not by its globals:
        # the suffix distinguishes the kernels of different monoids.
        entry.__qualname__ = name + suffix
        entries[name] = jit_entry(entry, cache=cache)
    return types.SimpleNamespace(**entries)


def _enter(*arguments: Any) -> Any:
    """Bound to one kernel by `_compile`."""
    return kernel(*bare(arguments))  # type: ignore[name-defined]  # noqa: F821  # globals of the copies


def _fingerprint(monoid: Monoid, modules: Sequence[types.ModuleType], constants: Mapping[str, Any]) -> str:
    """A digest of the bytecode of the monoid and of all kernels.

    Numba checks only the file of the function that it loads, not those of the functions it calls.
    """
    digest = hashlib.sha1(_FORMAT.encode(), usedforsecurity=False)
    functions = [monoid.lift, monoid.combine, monoid.invert]
    for module in modules:
        for name, value in sorted(vars(module).items()):
            if isinstance(value, int):
                digest.update(f"{name}={value}".encode())
            elif isinstance(value, types.FunctionType):
                functions.append(value)
    for function in functions:
        if function is not None:
            code = function.__code__
            digest.update(code.co_code + repr((code.co_consts, code.co_names)).encode())
    digest.update(repr((monoid.columns, monoid.identity, sorted(constants.items()))).encode())
    return digest.hexdigest()[:10]
