"""How kernels read and write a partial aggregate: one array per column, or one list of objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

type_names = ("float64", "int64")
Accessors = tuple[Callable[[Any, int], Any], Callable[[Any, int, Any], None]]


def get_object(cells: Any, i: int) -> Any:
    """Partial ``i`` of a list."""
    return cells[i]


def put_object(cells: Any, i: int, p: Any) -> None:
    """Write partial ``i`` of a list."""
    cells[i] = p


# Unsigned positions: Numba then leaves out the test for one that counts from the end.


def _get1(cells: Any, i: int) -> Any:
    return cells[np.uint64(i)]


def _put1(cells: Any, i: int, p: Any) -> None:
    cells[np.uint64(i)] = p


def _get2(cells: Any, i: int) -> Any:
    return cells[0][np.uint64(i)], cells[1][np.uint64(i)]


def _put2(cells: Any, i: int, p: Any) -> None:
    cells[0][np.uint64(i)] = p[0]
    cells[1][np.uint64(i)] = p[1]


def _get3(cells: Any, i: int) -> Any:
    return cells[0][np.uint64(i)], cells[1][np.uint64(i)], cells[2][np.uint64(i)]


def _put3(cells: Any, i: int, p: Any) -> None:
    cells[0][np.uint64(i)] = p[0]
    cells[1][np.uint64(i)] = p[1]
    cells[2][np.uint64(i)] = p[2]


def _get4(cells: Any, i: int) -> Any:
    return cells[0][np.uint64(i)], cells[1][np.uint64(i)], cells[2][np.uint64(i)], cells[3][np.uint64(i)]


def _put4(cells: Any, i: int, p: Any) -> None:
    cells[0][np.uint64(i)] = p[0]
    cells[1][np.uint64(i)] = p[1]
    cells[2][np.uint64(i)] = p[2]
    cells[3][np.uint64(i)] = p[3]


_ACCESSORS: tuple[Accessors, ...] = ((_get1, _put1), (_get2, _put2), (_get3, _put3), (_get4, _put4))
MOST_COLUMNS = len(_ACCESSORS)


def accessors(width: int) -> Accessors:
    """Reader and writer of one row of ``width`` columns (unrolled: Numba types tuples by length)."""
    return _ACCESSORS[width - 1]


def allocate(types: tuple[str, ...], n: int) -> Any:
    """``n`` rows of the given columns: an array for one column, a tuple of arrays for more."""
    if len(types) == 1:
        return np.zeros(n, types[0])
    return tuple(np.zeros(n, name) for name in types)
