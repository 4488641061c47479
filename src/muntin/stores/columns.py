"""Partial aggregates in memory: one array per column of the partial, or one list of objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

type_names = ("float64", "int64")


def get_one(cells: Any, i: int) -> Any:
    """Partial ``i`` of one column or of a list."""
    return cells[i]


def put_one(cells: Any, i: int, p: Any) -> None:
    """Write partial ``i`` of one column or of a list."""
    cells[i] = p


def _get_two(cells: Any, i: int) -> Any:
    return cells[0][i], cells[1][i]


def _put_two(cells: Any, i: int, p: Any) -> None:
    cells[0][i], cells[1][i] = p


def _get_three(cells: Any, i: int) -> Any:
    return cells[0][i], cells[1][i], cells[2][i]


def _put_three(cells: Any, i: int, p: Any) -> None:
    cells[0][i], cells[1][i], cells[2][i] = p


def _get_four(cells: Any, i: int) -> Any:
    return cells[0][i], cells[1][i], cells[2][i], cells[3][i]


def _put_four(cells: Any, i: int, p: Any) -> None:
    cells[0][i], cells[1][i], cells[2][i], cells[3][i] = p


ACCESSORS = ((get_one, put_one), (_get_two, _put_two), (_get_three, _put_three), (_get_four, _put_four))
"""Reader and writer of a row, by its number of columns (unrolled: Numba types tuples by length)."""


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
