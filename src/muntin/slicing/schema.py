"""Tables of state: rows of named columns, each with a role.

A role says what the numbers of a column are. So whatever holds for all columns of a role (bounds of a
snapshot, new numbers of keys) is written once, in a loop over columns, and a new column of state is
declared in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.encoding import encode
from muntin.expressions import Expr

__all__ = ["Change", "Role", "Schema", "Table", "extended", "no_rows"]

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
    CONTEXT = auto()
    """The context of a window: a record of numbers, or a Python value."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, and how its rows are ordered and divided."""

    columns: Mapping[str, Role]
    order: tuple[str, ...] = ()
    """The columns that the rows are sorted by."""
    optional: tuple[str, ...] = ()
    """Columns that the table may lack."""
    per_window: Mapping[str, Role] = field(default_factory=dict)
    """Fields with a column for each window that has one, by the name of the window."""
    time: str | None = None
    """The column of time by which a large table is stored in parts."""
    blank: Mapping[str, int] = field(default_factory=dict)
    """The numbers of a key without tuples, in a table whose row i belongs to key i."""


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

    def of_windows(self) -> Iterator[tuple[str, str, Column]]:
        """The columns of single windows: the field, the name of the window, and the column."""
        for one in self.SCHEMA.per_window:
            yield from ((one, window, column) for window, column in getattr(self, one).items())

    def __len__(self) -> int:
        return next(
            len(column) for name in self.SCHEMA.columns if (column := getattr(self, name)) is not None
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all columns; of Python values, their length as text."""
        every = [*self.columns.values(), *(column for _, _, column in self.of_windows())]
        values = [column for column in every if column.dtype == object]
        return sum(int(column.nbytes) for column in every) + sum(len(repr(v)) for c in values for v in c)

    def changed_columns(self, change: Callable[[str, str, Column], Column]) -> Self:
        """A table with other columns: `change` gets the field, the window or "", and the old column."""
        columns: dict[str, Any] = {name: change(name, "", column) for name, column in self.columns.items()}
        columns |= {one: {} for one in self.SCHEMA.per_window}
        for one, window, column in self.of_windows():
            columns[one][window] = change(one, window, column)
        return replace(self, **columns)  # type: ignore[type-var]  # a dataclass

    def copy(self) -> Self:
        """A copy whose arrays may be written to."""
        return self.changed_columns(lambda one, window, column: column.copy())

    def take(self, rows: Rows) -> Self:
        """The rows at these positions, or where the mask is true."""
        return self.changed_columns(lambda one, window, column: column[rows])

    def join(self, other: Self) -> Self:
        """These rows, and behind them those of the other table."""
        if not len(self):
            return other
        if not len(other):
            return self
        behind = {(name, ""): column for name, column in other.columns.items()}
        behind |= {(one, window): column for one, window, column in other.of_windows()}
        return self.changed_columns(lambda one, window, column: np.concatenate([column, behind[one, window]]))

    def grown(self, keys: int) -> Self:
        """With blank rows for new keys, in a table with a row per key."""
        if len(self) >= keys or "key" in self.columns:
            return self
        blank = self.SCHEMA.blank
        return self.changed_columns(
            lambda one, _, column: extended(column, keys, blank[one]) if one in blank else column
        )

    def renumbered(self, ids: npt.NDArray[np.int64]) -> Self:
        """The same rows with the new numbers of their keys; the rows of keys without one, -1, are dropped."""
        if "key" not in self.columns:
            return self.take(np.flatnonzero(ids[: len(self)] >= 0))
        key: npt.NDArray[np.int64] = self.columns["key"]
        left = self.take(ids[key] >= 0)
        return replace(left, key=ids[left.columns["key"]])  # type: ignore[type-var]  # a dataclass

    def of_keys(self, begin: int, end: int) -> Self:
        """The rows of the keys from `begin` to `end`, which are numbered from 0."""
        if "key" not in self.columns:
            return self.changed_columns(lambda one, window, column: column[begin:end])
        key: npt.NDArray[np.int64] = self.columns["key"]
        left = self.take((key >= begin) & (key < end))
        return replace(left, key=left.columns["key"] - begin)  # type: ignore[type-var]  # a dataclass

    def among_all(self, begin: int, end: int) -> Self:
        """The rows that `of_keys` gave, with the numbers of their keys among all."""
        if "key" not in self.columns:
            return self.grown(end - begin)
        return replace(self, key=self.columns["key"] + begin)  # type: ignore[type-var]  # a dataclass

    def with_inputs(self, types: Mapping[Expr, pa.DataType]) -> Self:
        """The table where windows and aggregates read columns of these types."""
        return self

    def held_keys(self, final: int) -> npt.NDArray[np.int64]:
        """The keys that must not be forgotten because of these rows; `final` is the final time."""
        return self.columns.get("key", no_rows())

    def attached(self) -> dict[str, pa.Array]:
        """Columns of single windows, and of other kinds than numbers, as Arrow arrays."""
        roles = self.SCHEMA.per_window
        return {
            f"{one}/{window}": _contexts(column) if roles[one] is Role.CONTEXT else pa.array(column)
            for one, window, column in self.of_windows()
        }

    def to_arrow(self) -> pa.Table:
        """All columns as an Arrow table."""
        numbers = {name: pa.array(column) for name, column in self.columns.items()}
        return pa.table(numbers | self.attached())


_T = TypeVar("_T", bound=Table)


class Change(Protocol):
    """A function from a table to another one of the same class."""

    def __call__(self, table: _T, /) -> _T: ...


def extended(column: Column, size: int, value: int) -> Column:
    """The column with this value in new rows."""
    new = size - len(column)
    return np.concatenate([column, np.full(new, value, dtype=np.int64)]) if new > 0 else column


def _contexts(column: Column) -> pa.Array:
    if column.dtype == object:
        return pa.array([encode(context) for context in column], pa.string())
    raw = pa.py_buffer(np.ascontiguousarray(column).tobytes())
    return pa.Array.from_buffers(pa.binary(column.dtype.itemsize), len(column), [None, raw])


def no_rows() -> npt.NDArray[np.int64]:
    """A column without rows, which must not be written to."""
    return np.zeros(0, dtype=np.int64)
