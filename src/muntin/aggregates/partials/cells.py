"""A column of a user's partial aggregates: numbers in arrays, or Python objects.

Both represent the same values. Compiled loops read and write numbers; the interpreter reads either and
writes objects. Where both meet and an object does not fit into an array (an integer beyond 64 bits, a
value of another type), the numbers become objects.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.arrays import Bools, Ints, read_numbers
from muntin.aggregates.partials.functions import Failed
from muntin.encoding import decode, encode
from muntin.errors import SnapshotError

__all__ = ["Cells", "Folds", "Form", "Numbers", "Objects", "joined", "objects", "taken"]

Objects: TypeAlias = npt.NDArray[np.object_]

_FAILED = "!"
"""Prefix of the text of a failed partial aggregate; no JSON text begins with it."""
_PYTHON = {"bool": bool, "int64": int, "float64": float}
_ARROW = {"bool": np.bool_, "int64": np.int64, "double": np.float64}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers, or tuples of numbers: one array for each place in the tuple."""

    scalar: bool
    columns: tuple[npt.NDArray[Any], ...]

    @property
    def form(self) -> Form:
        """The types of the numbers."""
        return Form(self.scalar, tuple(column.dtype.name for column in self.columns))

    def tolist(self) -> list[Any]:
        """As Python values."""
        columns = [column.tolist() for column in self.columns]
        return columns[0] if self.scalar else list(zip(*columns, strict=True))


Cells: TypeAlias = Numbers | Objects


@dataclass(frozen=True, slots=True)
class Folds:
    """The number of tuples of each row, and their fold where the row has tuples."""

    count: Ints
    value: Cells


def objects(cells: Cells | Iterable[Any]) -> Objects:
    """The cells as Python objects; a list is one object."""
    if isinstance(cells, np.ndarray):
        return cells
    values = cells.tolist() if isinstance(cells, Numbers) else list(cells)
    return np.fromiter(values, dtype=np.object_, count=len(values))


@dataclass(frozen=True, slots=True)
class Form:
    """The types of a compiled partial aggregate: one number, or a tuple of numbers."""

    scalar: bool
    dtypes: tuple[str, ...]

    def zeros(self, rows: int) -> Numbers:
        """Rows of zeros to write into."""
        return Numbers(self.scalar, tuple(np.zeros(rows, dtype=dtype) for dtype in self.dtypes))

    def numbers(self, folds: Folds) -> Numbers | None:
        """The folds in this form; None where one has another. Those of rows without tuples are arbitrary."""
        cells = folds.value
        if isinstance(cells, Numbers):
            return cells if cells.form == self else None
        numbers = self.zeros(len(cells))
        wanted = [_PYTHON[dtype] for dtype in self.dtypes]
        for i in np.flatnonzero(folds.count).tolist():
            value = (cells[i],) if self.scalar else cells[i]
            if type(value) is not tuple or list(map(type, value)) != wanted:
                return None
            try:
                for column, number in zip(numbers.columns, value, strict=True):
                    column[i] = number
            except OverflowError:
                return None
        return numbers


def taken(cells: Cells, index: Ints) -> Cells:
    """The cells at these places."""
    if isinstance(cells, Numbers):
        return Numbers(cells.scalar, tuple(column[index] for column in cells.columns))
    return cells[index]


def joined(states: list[Cells]) -> Cells:
    """The cells of all states in order: as numbers where all are numbers of one form."""
    numbers = [state for state in states if isinstance(state, Numbers)]
    if len(numbers) < len(states) or len({state.form for state in numbers}) > 1:
        return np.concatenate([objects(state) for state in states])
    columns = zip(*(state.columns for state in numbers), strict=True)
    return Numbers(numbers[0].scalar, tuple(map(np.concatenate, columns)))


def replaced(cells: Cells, index: Ints, by: Cells) -> Cells:
    """The cells with others at these places."""
    whole = joined([cells, by])
    place = np.arange(len(cells.columns[0]) if isinstance(cells, Numbers) else len(cells))
    place[index] = len(place) + np.arange(len(index))
    return taken(whole, place)


# --- for snapshots and statistics ------------------------------------------------------------------


def to_arrow(cells: Cells, name: str, there: Bools | None = None) -> dict[str, pa.Array]:
    """Columns for a snapshot: numbers as numbers, objects as text; null where a row is not `there`."""
    if isinstance(cells, Numbers) and cells.scalar:
        return {f"{name}.": pa.array(cells.columns[0])}
    if isinstance(cells, Numbers):
        return {f"{name}.{k}": pa.array(column) for k, column in enumerate(cells.columns)}
    some = np.ones(len(cells), dtype=np.bool_) if there is None else there
    texts = [_encoded(value) if ok else None for value, ok in zip(cells, some, strict=True)]
    return {name: pa.array(texts, pa.large_string())}


def from_arrow(columns: dict[str, pa.Array], name: str) -> Cells:
    """The cells that `to_arrow` wrote under this name."""
    if name in columns:
        return objects([None if text is None else _decoded(text) for text in columns[name].to_pylist()])
    numeric = [column for key, column in columns.items() if key.startswith(f"{name}.")]
    if not numeric or any(str(column.type) not in _ARROW for column in numeric):
        raise SnapshotError(f'"{name}" of a user-defined aggregate must be text or numbers')
    read = tuple(read_numbers(column, _ARROW[str(column.type)]) for column in numeric)
    return Numbers(f"{name}." in columns, read)


def _encoded(value: Any) -> str:
    return f"{_FAILED}{value.reason}" if type(value) is Failed else encode(value)


def _decoded(text: str) -> Any:
    return Failed(text.removeprefix(_FAILED)) if text.startswith(_FAILED) else decode(text)


def nbytes(cells: Cells) -> int:
    """The memory of the cells; objects with their contents, four levels deep."""
    if isinstance(cells, Numbers):
        return sum(column.nbytes for column in cells.columns)
    return cells.nbytes + sum(_deep_size(value, 4) for value in cells)


def _deep_size(value: Any, depth: int) -> int:
    size = sys.getsizeof(value)
    if depth and isinstance(value, (tuple, list, set, frozenset)):
        size += sum(_deep_size(item, depth - 1) for item in value)
    elif depth and isinstance(value, dict):
        size += sum(_deep_size(k, depth - 1) + _deep_size(v, depth - 1) for k, v in value.items())
    return size
