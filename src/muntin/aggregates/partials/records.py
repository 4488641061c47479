"""Bases of the partials whose state is a record of columns: one row per slice, or rows of items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import arrays, joining
from muntin.aggregates.base import Ints, Partial

__all__ = ["RaggedPartial", "Record", "RecordPartial", "stacked"]

Column: TypeAlias = npt.NDArray[Any] | pa.Array


class Record:
    """A state of columns of equal length; a subclass is a frozen dataclass of them, with slots.

    An optional first field `offsets` divides the columns into rows: row j consists of the items
    `offsets[j]:offsets[j + 1]`.
    """

    __slots__ = ()

    numbers: ClassVar[tuple[str, ...]] = ("time", "seq")
    """The columns that are NumPy arrays of int64; the others are Arrow arrays."""
    optional: ClassVar[tuple[str, ...]] = ()
    """The columns that may be None."""

    def columns(self) -> dict[str, Any]:
        """The columns that are not None."""
        slots: tuple[str, ...] = self.__slots__
        columns = {name: getattr(self, name) for name in slots if name != "offsets"}
        return {name: column for name, column in columns.items() if column is not None}

    @classmethod
    def of(cls, columns: dict[str, Any]) -> Any:
        """The record of these columns."""
        return cls(**(dict.fromkeys(cls.optional) | columns))


class RecordPartial(Partial):
    """State: a record with one entry per row."""

    __slots__ = ()

    record: ClassVar[Any]
    """The class of the state, a `Record`."""

    def concat(self, states: list[Any]) -> Any:
        return self.record(*map(_joined, zip(*map(_fields(self.record), states), strict=True)))

    def cut(self, state: Any, low: int, high: int) -> Any:
        return self.record(*_sliced(_fields(self.record)(state), low, high))

    def size(self, state: Any) -> int:
        return len(state.time)

    def nbytes(self, state: Any) -> int:
        return sum(int(column.nbytes) for column in state.columns().values())

    def to_arrow(self, state: Any) -> dict[str, pa.Array]:
        columns = state.columns().items()
        return {name: c if isinstance(c, pa.Array) else pa.array(c) for name, c in columns}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Any:
        return self.record.of(self._read((name, columns[name]) for name in self.stored(columns)))

    def stored(self, columns: dict[str, pa.Array]) -> list[str]:
        """The names of the columns of a record in a snapshot."""
        names = [name for name in self.record.__slots__ if name != "offsets"]
        return [name for name in names if name not in self.record.optional or name in columns]

    def _read(self, columns: Iterable[tuple[str, pa.Array]]) -> dict[str, Column]:
        numbers = self.record.numbers
        return {name: arrays.read_numbers(c) if name in numbers else c for name, c in columns}


class RaggedPartial(RecordPartial):
    """State: a record whose rows have any number of items."""

    __slots__ = ()

    def concat(self, states: list[Any]) -> Any:
        offsets, *columns = zip(*map(_fields(self.record), states), strict=True)
        return self.record(stacked(list(offsets)), *map(_joined, columns))

    def cut(self, state: Any, low: int, high: int) -> Any:
        offsets = state.offsets[low : high + 1]
        first, last = offsets[0], offsets[-1]
        return self.record(offsets - first, *_sliced(_fields(self.record)(state)[1:], first, last))

    def size(self, state: Any) -> int:
        return len(state.offsets) - 1

    def nbytes(self, state: Any) -> int:
        return int(state.offsets.nbytes) + RecordPartial.nbytes(self, state)

    def weights(self, state: Any) -> Ints | None:
        sizes: Ints = np.diff(state.offsets)
        return sizes

    def to_arrow(self, state: Any) -> dict[str, pa.Array]:
        return {name: arrays.to_lists(state.offsets, column) for name, column in state.columns().items()}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Any:
        names = self.stored(columns)
        offsets, items = arrays.read_lists(columns, *names)
        return self.record.of({"offsets": offsets, **self._read(zip(names, items, strict=True))})


def stacked(offsets: list[Ints]) -> Ints:
    """The offsets of the concatenated rows.

    >>> stacked([np.array([0, 2, 3]), np.array([0, 4])]).tolist()
    [0, 2, 3, 7]
    """
    ends = np.cumsum([0] + [int(o[-1]) for o in offsets])
    shifted = (o[1:] + end for o, end in zip(offsets, ends, strict=False))
    return np.concatenate([np.zeros(1, dtype=np.int64), *shifted])


# A field of a record is a column, a tuple of columns, or None.


@cache
def _fields(record: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Reads all fields of a state in one call: steps of few tuples cut and join often."""
    return attrgetter(*record.__slots__)


def _sliced(fields: tuple[Any, ...], low: int, high: int) -> tuple[Any, ...]:
    return tuple(
        [
            None if field is None else _sliced(field, low, high) if type(field) is tuple else field[low:high]
            for field in fields
        ]
    )


def _joined(fields: Sequence[Any]) -> Any:
    first = fields[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(fields)
    if isinstance(first, tuple):
        return tuple(map(_joined, zip(*fields, strict=True)))
    return None if first is None else joining.concat(fields)
