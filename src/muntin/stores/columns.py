"""Partial aggregates in memory: one array per column of the partial, or one list of objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

type_names = ("float64", "int64")
Accessors = tuple[Callable[[Any, int], Any], Callable[[Any, int, Any], None]]


def get_object(cells: Any, i: int) -> Any:
    """Partial ``i`` of a list."""
    return cells[i]


def put_object(cells: Any, i: int, p: Any) -> None:
    """Write partial ``i`` of a list."""
    cells[i] = p


# Unsigned positions: Numba then omits the test for positions that count from the end.


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


def filled(types: tuple[str, ...], p: Any, n: int) -> Any:
    """``n`` rows of the partial ``p``: an array for one column, a tuple of arrays for more."""
    if len(types) == 1:
        return np.full(n, p, types[0])
    return tuple(np.full(n, part, name) for name, part in zip(types, p, strict=True))


def arrays(cells: Any) -> tuple[Any, ...]:
    """The columns of ``cells``, one or several."""
    return cells if isinstance(cells, tuple) else (cells,)


def copy_rows(old: Any, new: Any, sources: npt.NDArray[np.int64], targets: npt.NDArray[np.int64]) -> None:
    """Copy rows from some columns, or a list of objects, to others."""
    for source, target in zip(arrays(old), arrays(new), strict=True):
        if isinstance(source, list):
            for i, j in zip(sources.tolist(), targets.tolist(), strict=True):
                target[j] = source[i]
        else:
            target[targets] = source[sources]
