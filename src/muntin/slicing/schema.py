"""Tables of state: rows of named columns, each with a role.

A role says what the numbers of a column are. So whatever holds for all columns of a role (bounds of a
snapshot, new numbers of keys) is written once, in a loop over columns, and a new column of state is
declared in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Role", "Schema", "Table", "no_rows"]

Column = npt.NDArray[Any]
Rows = npt.NDArray[np.int64] | npt.NDArray[np.bool_]


class Role(Enum):
    """The meaning of the numbers in a column."""

    KEY = auto()
    """The number of a key."""
    TIME = auto()
    """The time of a tuple."""
    MOMENT = auto()
    """The time of a tuple, or plus or minus infinity."""
    EDGE = auto()
    """An edge of a window: any 64-bit time."""
    RANK = auto()
    """The rank of a tuple among those of its key; -1 for none."""
    COUNT = auto()
    POSITIVE = auto()
    """A count of at least 1."""
    STAGE = auto()
    """The stage of an emitted window: early, complete or retracted."""
    ANY = auto()
    """Any integer: hashes, order of arrival."""
    VALUE = auto()
    """Integers or floats: edges on a measure."""
    FLAG = auto()


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, and how its rows are ordered and divided."""

    columns: Mapping[str, Role]
    order: tuple[str, ...] = ()
    """The columns that the rows are sorted by."""
    optional: tuple[str, ...] = ()
    """Columns that the table may lack."""
    time: str | None = None
    """The column of time by which a large table is stored in parts."""
    per_key: bool = False
    """Whether row i belongs to key i."""


class Table:
    """Base of tables of state: dataclasses whose fields are the columns of SCHEMA.

    An optional column that is absent is None. Arrays are not written to: a change makes new ones.
    """

    __slots__ = ()

    SCHEMA: ClassVar[Schema]

    @property
    def columns(self) -> dict[str, Column]:
        """The columns that are present, by name."""
        named = {name: getattr(self, name) for name in self.SCHEMA.columns}
        return {name: column for name, column in named.items() if column is not None}

    def __len__(self) -> int:
        return next(
            len(column) for name in self.SCHEMA.columns if (column := getattr(self, name)) is not None
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(int(column.nbytes) for column in self.columns.values())

    def take(self, rows: Rows) -> Self:
        """The rows at these positions, or where the mask is true."""
        return replace(self, **{name: column[rows] for name, column in self.columns.items()})  # type: ignore[type-var]  # a dataclass

    def join(self, other: Self) -> Self:
        """These rows, and behind them those of the other table."""
        if not len(self):
            return other
        if not len(other):
            return self
        behind = other.columns
        joined = {name: np.concatenate([column, behind[name]]) for name, column in self.columns.items()}
        return replace(self, **joined)  # type: ignore[type-var]  # a dataclass

    def renumbered(self, ids: npt.NDArray[np.int64]) -> Self:
        """The same rows with the new numbers of their keys; the rows of keys without one, -1, are dropped."""
        if self.SCHEMA.per_key:
            return self.take(np.flatnonzero(ids[: len(self)] >= 0))
        key: npt.NDArray[np.int64] = self.columns["key"]
        left = self.take(ids[key] >= 0)
        return replace(left, key=ids[left.columns["key"]])  # type: ignore[type-var]  # a dataclass

    def attached(self) -> dict[str, pa.Array]:
        """Columns of other kinds than numbers, as Arrow arrays; none in most tables."""
        return {}

    def to_arrow(self) -> pa.Table:
        """All columns as an Arrow table."""
        numbers = {name: pa.array(column) for name, column in self.columns.items()}
        return pa.table(numbers | self.attached())


def no_rows() -> npt.NDArray[np.int64]:
    """A column without rows, which must not be written to."""
    return np.zeros(0, dtype=np.int64)
