"""Large arrays in Arrow's memory, which keeps for a while what was given back.

The C library returns a large array to the system at once, and the system clears each page before it is
used again: that takes three times as long as to fill the array, and threads wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["end_to_end", "fresh", "rows_at", "zeroed"]

FEW = 1 << 14
"""Arrays of fewer rows are NumPy's own: it makes them in less time."""

_Array = TypeVar("_Array", bound=npt.NDArray[Any])


def fresh(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """As `np.empty`.

    >>> fresh((2, 3)).shape, fresh(10**6, np.float64).dtype
    ((2, 3), dtype('float64'))
    """
    rows = prod(shape) if isinstance(shape, tuple) else shape
    if rows < FEW:
        return np.empty(shape, dtype)
    size = np.dtype(dtype).itemsize * rows
    return np.frombuffer(pa.allocate_buffer(size), dtype).reshape(shape)


def zeroed(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """As `np.zeros`.

    >>> int(zeroed(10**6).sum())
    0
    """
    if (prod(shape) if isinstance(shape, tuple) else shape) < FEW:
        return np.zeros(shape, dtype)
    found = fresh(shape, dtype)
    found.fill(0)
    return found


def rows_at(array: _Array, index: npt.NDArray[np.int64]) -> _Array:
    """The rows at these places, each of which there is.

    >>> rows_at(np.array([5, 6, 7]), np.array([2, 0])).tolist()
    [7, 5]
    """
    if len(index) < FEW:
        return array.take(index, axis=0)  # type: ignore[return-value]  # of the same type
    out = fresh((len(index), *array.shape[1:]), array.dtype)
    array.take(index, axis=0, out=out, mode="clip")  # as "raise" takes a copy
    return out  # type: ignore[return-value]  # of the same type


def end_to_end(arrays: Sequence[_Array]) -> _Array:
    """The rows of all, one after the other.

    >>> end_to_end([np.array([1]), np.array([2, 3])]).tolist()
    [1, 2, 3]
    """
    if sum(map(len, arrays)) < FEW:
        return np.concatenate(arrays)  # type: ignore[return-value]  # of the same type
    out = fresh((sum(map(len, arrays)), *arrays[0].shape[1:]), np.result_type(*arrays))
    return np.concatenate(arrays, out=out)  # type: ignore[return-value]  # of the same type
