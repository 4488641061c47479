"""Runs queries with every call of a kernel made twice, by the library and by Numba, and compares the two.

`python checked_kernels.py STEP...` runs these steps of `muntin warmup` (all without names), and prints the
variants that were compared. It is imported before the kernels are: it takes the place of what makes them.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from typing import Any

import numpy as np

from muntin import compiled_kernels
from muntin.shipped_library import shipped_library

library = shipped_library()
assert library is not None
COMPARED: dict[str, set[str]] = {}
ONE_AT_A_TIME = threading.Lock()


class Checked:
    """A kernel that is called twice, on copies of the same memory."""

    def __init__(self, kernel: Any, name: str) -> None:
        self.kernel = kernel
        self.py_func = kernel.py_func
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        with ONE_AT_A_TIME:  # threads of a query write to parts of one array
            return self._call(arguments)

    def _call(self, arguments: tuple[Any, ...]) -> Any:
        variant = self.kernel.variant(*arguments)
        if variant is None:
            return self.kernel(*arguments)
        COMPARED.setdefault(self.name, set()).add(variant)
        copies = copied(arguments)
        expected = outcome(self.kernel.dispatcher, copies)
        found = outcome(self.kernel, arguments)
        same(found[0], expected[0], f"{self.name} {variant}: result")
        for i, (left, right) in enumerate(zip(arguments, copies, strict=True)):
            same(left, right, f"{self.name} {variant}: argument {i} afterwards")
        if isinstance(found[1], Exception):
            raise found[1]
        return found[1]


def outcome(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """What a call gives, to compare and to return: a result, or an exception."""
    try:
        result = function(*arguments)
    except Exception as error:  # noqa: BLE001  it is raised again
        return (type(error).__name__, str(error)), error
    return result, result


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with all memory copied; arrays that overlap still do, flags and strides are the same."""
    spans = sorted(bounds(array) for array in arrays(arguments))
    joined: list[list[int]] = []
    for low, high in spans:
        if joined and low <= joined[-1][1]:
            joined[-1][1] = max(high, joined[-1][1])
        else:
            joined.append([low, high])
    memory = {}
    for low, high in joined:
        room = np.zeros(high - low + 128, np.uint8)
        begin = -room.ctypes.data % 64 + low % 64
        room[begin : begin + high - low] = np.frombuffer(ctypes.string_at(low, high - low), np.uint8)
        memory[low, high] = room, begin

    def copy(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(copy, value))
        if not isinstance(value, np.ndarray):
            return value
        low, high = next(
            span for span in memory if span[0] <= bounds(value)[0] and bounds(value)[1] <= span[1]
        )
        room, begin = memory[low, high]
        offset = begin + value.ctypes.data - low
        made: Any = np.ndarray(value.shape, value.dtype, room.data, offset, value.strides)
        made.flags.writeable = value.flags.writeable
        return made

    return tuple(map(copy, arguments))


def arrays(values: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    return [
        array
        for value in values
        for array in (arrays(value) if isinstance(value, tuple) else [value])
        if isinstance(array, np.ndarray)
    ]


def bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    low, high = np.lib.array_utils.byte_bounds(array)
    return (low, high) if array.size else (array.ctypes.data, array.ctypes.data)


def same(left: Any, right: Any, what: str) -> None:
    assert type(left) is type(right), f"{what}: {type(left)} and {type(right)}"
    if isinstance(left, tuple):
        assert len(left) == len(right), what
        for one, other in zip(left, right, strict=True):
            same(one, other, what)
    elif isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape), f"{what}: {left} and {right}"
        flags = [(x.flags.c_contiguous, x.flags.writeable, x.flags.aligned) for x in (left, right)]
        assert flags[0] == flags[1], f"{what}: {flags}"
        assert left.tobytes() == right.tobytes(), f"{what}: {left} and {right}"
    else:
        assert repr(left) == repr(right), f"{what}: {left} and {right}"


make = compiled_kernels._kernel


def checked(function: Any, digest: str, role: str, prepare: Any = None) -> Any:
    kernel = make(function, digest, role, prepare)
    return kernel if role == "inner" else Checked(kernel, f"{function.__module__}.{function.__qualname__}")


def main(names: list[str]) -> None:
    compiled_kernels._kernel = checked
    from numba import types
    from numba.extending import typeof_impl

    from muntin.warming import steps

    typeof_impl.register(Checked)(lambda value, context: types.Dispatcher(value.kernel.dispatcher))
    for name, step in steps():
        if not names or name in names:
            step()
    print(json.dumps({name: sorted(variants) for name, variants in COMPARED.items()}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
