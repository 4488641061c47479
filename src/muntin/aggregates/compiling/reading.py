"""Copies of a user's functions with frozen globals, closures and attributes, and detection of changes."""

from __future__ import annotations

import builtins
import dis
import functools
import math
from collections.abc import Callable, Hashable, Iterator
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any

from muntin.aggregates.compiling.symbols import NATURAL, REPLACED, RefusedError

__all__ = ["Reading"]

_REFUSED = {
    "IS_OP": "the operator is",
    "PUSH_EXC_INFO": "try, or with,",
    "IMPORT_NAME": "an import inside of a function",
    "LOAD_BUILD_CLASS": "a class inside of a function",
    "STORE_GLOBAL": "a change of a global variable",
    "DELETE_GLOBAL": "a change of a global variable",
    "STORE_ATTR": "a change of an attribute",
    "DELETE_ATTR": "a change of an attribute",
    **dict.fromkeys(("MATCH_CLASS", "MATCH_MAPPING", "MATCH_SEQUENCE", "MATCH_KEYS"), "match"),
}
"""Instructions that can distinguish a symbol from a number, or that change more than local variables."""


class Reading:
    """The values that a function, and the functions it calls, read in addition to their arguments."""

    def __init__(self) -> None:
        self._reads: dict[Hashable, tuple[Callable[[], Any], Any]] = {}

    def unchanged(self) -> bool:
        """Whether all values equal the frozen ones."""
        try:
            return all(_same(read(), value) for read, value in self._reads.values())
        except (NameError, AttributeError, ValueError):  # a variable without a value
            return False

    def callable(self, function: Any, inside: tuple[CodeType, ...] = ()) -> Callable[..., Any]:
        """A function to call with symbols; `inside` are the functions that call it."""
        if isinstance(function, MethodType):
            return self._copy(function.__func__, inside, function.__self__)
        if isinstance(function, FunctionType):
            return self._copy(function, inside)
        supported: Callable[..., Any] | None = _supported(function)
        if supported is None:
            raise RefusedError(
                f"{getattr(function, '__qualname__', function)} is not a function that can be compiled"
            )
        return supported

    def _copy(self, function: Any, inside: tuple[CodeType, ...], owner: Any = None) -> Callable[..., Any]:
        code = function.__code__
        if code in inside:
            raise RefusedError("a function that calls itself is not compiled")
        if function.__defaults__ or function.__kwdefaults__:
            raise RefusedError(f"{function.__qualname__} has arguments with defaults")
        inner = (*inside, code)
        self._reads[id(function), "its code"] = (lambda: function.__code__), code
        freeze = functools.partial(self._frozen, inside=inner)
        world: dict[str, Any] = {"__builtins__": {}}
        for name in _names(code):
            world[name] = freeze(name, (id(function), name), functools.partial(_global, function, name))
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        contents = (freeze(name, (id(cell), ""), functools.partial(_content, cell)) for name, cell in cells)
        closure = tuple(map(CellType, contents))
        copy = FunctionType(code, world, function.__name__, None, closure)
        return copy if owner is None else MethodType(copy, self._owner(owner, inner))

    def _owner(self, owner: Any, inside: tuple[CodeType, ...]) -> Any:
        """A stand-in for a method's object that freezes each attribute when the method reads it."""

        class Owner:
            def __getattr__(_, name: str) -> Any:  # noqa: N805
                return self._frozen(f"self.{name}", (id(owner), name), lambda: getattr(owner, name), inside)

        return Owner()

    def _frozen(self, name: str, key: Hashable, read: Callable[[], Any], inside: tuple[CodeType, ...]) -> Any:
        """The frozen form of a value that a function reads."""
        try:
            value = read()
        except (ValueError, AttributeError, NameError):
            raise RefusedError(f"it uses {name}, which has no value") from None
        self._reads[key] = read, value
        if _is_plain(value) or (isinstance(value, type) and issubclass(value, Exception)):
            return value
        if value is math:
            return _Math()
        if isinstance(getattr(value, "py_func", value), FunctionType | MethodType):
            return self.callable(getattr(value, "py_func", value), inside)
        supported = _supported(value)
        if supported is None:
            raise RefusedError(f"it uses {name}, a {type(value).__name__}, which is not compiled")
        return supported


class _Math:
    """The module `math`, for symbols."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(math, name, None)
        supported = value if isinstance(value, float) else _supported(value)
        if supported is None:
            raise RefusedError(f"it uses math.{name}, which is not compiled")
        return supported


def _supported(value: Any) -> Any:
    """The form of a built-in function that accepts symbols; None if there is none."""
    if not isinstance(value, type | BuiltinFunctionType):
        return None
    return REPLACED.get(value, value if value in NATURAL else None)


def _names(code: CodeType) -> Iterator[str]:
    """The global names that a function reads."""
    for instruction in dis.get_instructions(code):
        name, argument = instruction.opname, instruction.argval
        if name in _REFUSED:
            raise RefusedError(f"{_REFUSED[name]} is not compiled")
        if name == "STORE_DEREF" and argument in code.co_freevars:
            raise RefusedError("a change of a variable of the function around it is not compiled")
        if name in ("LOAD_ATTR", "LOAD_METHOD") and str(argument).startswith("__"):
            raise RefusedError(f"the attribute {argument} is not compiled")
        if name == "LOAD_GLOBAL":
            yield argument
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _global(function: FunctionType, name: str) -> Any:
    names = function.__globals__
    return names[name] if name in names else getattr(builtins, name)


def _content(cell: CellType) -> Any:
    return cell.cell_contents


def _is_plain(value: Any) -> bool:
    """Whether it is a number, a text, None, or a tuple of such values."""
    return type(value) in (bool, int, float, str, type(None)) or (
        type(value) is tuple and all(map(_is_plain, value))
    )


def _same(now: Any, then: Any) -> bool:
    """Whether both are one object or equal plain values; `repr` distinguishes 0.0 and -0.0, 1 and True."""
    if now is then or (isinstance(now, MethodType) and now == then):
        return True
    return _is_plain(now) and _is_plain(then) and repr(now) == repr(then)
