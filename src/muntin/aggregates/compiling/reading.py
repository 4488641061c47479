"""What a function of the user's reads beside its arguments.

Compiled code freezes the values of globals, closures and attributes. So two functions are the same
program only if these are the same too, and a compiled one is used only while nothing has changed.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Hashable, Iterator
from typing import Any

__all__ = ["OWNER", "identity", "recursive"]

OWNER = "_muntin_owner"
"""The attribute of a method's copy that holds the object which the method was bound to."""


def identity(function: Any) -> Hashable:
    """Equal for functions that compile to the same: same code, same values read.

    >>> make = lambda k: lambda v: k * v
    >>> identity(make(2)) == identity(make(2)), identity(make(2)) == identity(make(3))
    (True, False)
    """
    return _identity(function, frozenset())


def recursive(function: Any) -> bool:
    """Whether it calls itself: compiled, it could go too deep for the stack, and nothing would stop it.

    >>> def factorial(n):
    ...     return 1 if n < 2 else n * factorial(n - 1)
    >>> recursive(factorial), recursive(lambda v: v)
    (True, False)
    """
    return _holds_itself(identity(function))


def _holds_itself(part: Hashable) -> bool:
    return part is _ITSELF or (isinstance(part, tuple) and any(map(_holds_itself, part)))


def _identity(value: Any, outer: frozenset[int]) -> Hashable:
    """`outer` are the functions around it: one that calls itself must come to an end."""
    value = getattr(value, "py_func", value)
    if isinstance(value, types.MethodType):
        own = [(name, getattr(value.__self__, name, None)) for name in value.__func__.__code__.co_names]
        return _identity(value.__func__, outer), tuple((name, _identity(v, outer)) for name, v in own)
    if not isinstance(value, types.FunctionType):
        return _plain(value)
    if id(value.__code__) in outer:
        return _ITSELF
    inner = outer | {id(value.__code__)}
    read = tuple((name, _identity(found, inner)) for name, found in _read(value))
    return value.__code__, _plain(value.__defaults__), read


def _read(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values of all that it may read; a few more, as attributes have names too."""
    for name in function.__code__.co_names:
        yield name, function.__globals__.get(name, getattr(builtins, name, None))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that has no value yet
            yield name, None


def _plain(value: Any) -> Hashable:
    numbers = value if isinstance(value, tuple) else (value,)
    if all(type(number) in (bool, int, float, str, type(None)) for number in numbers):
        return type(value).__name__, repr(value)  # which tells 0.0 from -0.0, and 1 from True
    return _Same(value)


_ITSELF = object()


class _Same:
    """A value that is equal to nothing but itself; holding it keeps its address from being reused."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
