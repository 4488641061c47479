"""Bases of the partials whose state is a record of columns: one row per slice, or rows of items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import arrays, joining
from muntin.aggregates.base import Ints, Partial

__all__ = ["RaggedPartial", "Record", "RecordPartial", "stacked"]

Column: TypeAlias = npt.NDArray[Any] | pa.Array


class Record:
    """A state of columns of equal length; a subclass is a frozen dataclass of them.

    A field `offsets`, where there is one, divides the columns into rows: row j holds the items
    `offsets[j]:offsets[j + 1]`.
    """

    __slots__ = ()

    numbers: ClassVar[tuple[str, ...]] = ("time", "seq")
    """The columns of int64 in NumPy arrays; the others are Arrow's."""
    optional: ClassVar[tuple[str, ...]] = ()
    """The columns that may be None."""

    @classmethod
    def names(cls) -> list[str]:
        """All columns."""
        return [field.name for field in fields(cls) if field.name != "offsets"]  # type: ignore[arg-type]

    def columns(self) -> dict[str, Column]:
        """The columns that are not None."""
        found = {name: getattr(self, name) for name in self.names()}
        return {name: column for name, column in found.items() if column is not None}

    @classmethod
    def of(cls, columns: dict[str, Column], **offsets: Ints) -> Any:
        """The record of these columns."""
        return cls(**(dict.fromkeys(cls.optional) | columns | offsets))


class RecordPartial(Partial):
    """State: a record with one entry per row."""

    __slots__ = ()

    record: ClassVar[type[Record]]

    def concat(self, states: list[Any]) -> Any:
        return self.record.of(_mapped(states, _joined))

    def cut(self, state: Any, low: int, high: int) -> Any:
        return self.record.of(_mapped([state], lambda columns: columns[0][low:high]))

    def size(self, state: Any) -> int:
        return len(getattr(state, self.record.numbers[0]))

    def nbytes(self, state: Any) -> int:
        return sum(int(column.nbytes) for column in state.columns().values())

    def to_arrow(self, state: Any) -> dict[str, pa.Array]:
        columns = state.columns().items()
        return {name: c if isinstance(c, pa.Array) else pa.array(c) for name, c in columns}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Any:
        return self.record.of(self._read((name, columns[name]) for name in self.stored(columns)))

    def stored(self, columns: dict[str, pa.Array]) -> list[str]:
        """The names of the columns of a record in a snapshot."""
        return [name for name in self.record.names() if name not in self.record.optional or name in columns]

    def _read(self, columns: Iterable[tuple[str, pa.Array]]) -> dict[str, Column]:
        numbers = self.record.numbers
        return {name: arrays.read_numbers(c) if name in numbers else c for name, c in columns}


class RaggedPartial(RecordPartial):
    """State: a record whose rows hold any number of items."""

    __slots__ = ()

    def concat(self, states: list[Any]) -> Any:
        return self.record.of(_mapped(states, _joined), offsets=stacked([s.offsets for s in states]))

    def cut(self, state: Any, low: int, high: int) -> Any:
        offsets = state.offsets[low : high + 1]
        items = slice(offsets[0], offsets[-1])
        return self.record.of(
            _mapped([state], lambda columns: columns[0][items]), offsets=offsets - offsets[0]
        )

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
        return self.record.of(self._read(zip(names, items, strict=True)), offsets=offsets)


def stacked(offsets: list[Ints]) -> Ints:
    """The offsets of rows one after the other.

    >>> stacked([np.array([0, 2, 3]), np.array([0, 4])]).tolist()
    [0, 2, 3, 7]
    """
    ends = np.cumsum([0] + [int(o[-1]) for o in offsets])
    parts = [np.zeros(1, dtype=np.int64)]
    parts += [o[1:] + end for o, end in zip(offsets, ends, strict=False)]
    return np.concatenate(parts)


def _mapped(states: list[Any], function: Callable[[list[Any]], Column]) -> dict[str, Column]:
    """A function of the columns of one name, for each; for columns that are the same object, once."""
    parts = [state.columns() for state in states]
    done: dict[tuple[int, ...], Column] = {}
    found: dict[str, Column] = {}
    for name in parts[0]:
        columns = [part[name] for part in parts]
        key = tuple(map(id, columns))
        if key not in done:
            done[key] = function(columns)
        found[name] = done[key]
    return found


def _joined(columns: list[Any]) -> Column:
    return np.concatenate(columns) if isinstance(columns[0], np.ndarray) else joining.concat(columns)
