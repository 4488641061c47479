"""The order in which the rows of several emissions stand in one table of results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.memory import end_to_end, fresh, rows_at
from muntin.slicing.sorting_kernels import group_begins, move_ranges, repeat_each

Column = npt.NDArray[np.int64]

LONG = 64
"""Windows of one query and end that stand together, on average, for them to be moved as ranges."""


class Order(ABC):
    """Where rows of the table stand in the parts that it is put together from: all rows, or a range."""

    @abstractmethod
    def cut(self, begin: int, end: int) -> Order:
        """The rows of the table from one to another."""

    @abstractmethod
    def of(self, parts: list[Column]) -> Column:
        """A column of the table."""

    @abstractmethod
    def of_arrays(self, parts: list[pa.Array], kind: pa.DataType) -> pa.Array:
        """As `of`, for arrays of Arrow."""

    def of_alike(self, parts: list[Column]) -> Column:
        """As `of`, for numbers that do not differ among windows of one query with the same edges."""
        return self.of(parts)

    def runs_of(self, parts: list[Column]) -> tuple[Column, Column] | None:
        """As `of_alike`, but each number once, and how often it is repeated; None where that is not known."""
        return None


@dataclass(frozen=True, slots=True)
class AsItIs(Order):
    """The rows of the only part; without an end all of them."""

    begin: int = 0
    end: int | None = None

    def cut(self, begin: int, end: int) -> Order:
        return AsItIs(begin, end)

    def of(self, parts: list[Column]) -> Column:
        return parts[0] if self.end is None else parts[0][self.begin : self.end]

    def of_arrays(self, parts: list[pa.Array], kind: pa.DataType) -> pa.Array:
        return parts[0] if self.end is None else parts[0].slice(self.begin, self.end - self.begin)


@dataclass(frozen=True, slots=True)
class ByIndex(Order):
    """The row for each row of the table, counted over all parts."""

    index: Column

    def cut(self, begin: int, end: int) -> Order:
        return ByIndex(self.index[begin:end])

    def of(self, parts: list[Column]) -> Column:
        return rows_at(parts[0] if len(parts) == 1 else end_to_end(parts), self.index)

    def of_arrays(self, parts: list[pa.Array], kind: pa.DataType) -> pa.Array:
        joined = parts[0] if len(parts) == 1 else pa.chunked_array(parts, type=kind).combine_chunks()
        return joined.take(pa.array(self.index))


class Runs(NamedTuple):
    """Where windows of one query with the same edges begin in a part, and which these are."""

    begin: Column
    size: Column
    end: Column
    start: Column
    query: Column

    @classmethod
    def of(cls, end: Column, start: Column, query: Column) -> Runs | None:
        """Of windows that are sorted as results are; None where too few stand together."""
        begins = np.empty(len(end) // LONG + 2, dtype=np.int64)
        count = group_begins(end, start, query, begins)
        if count < 0:
            return None
        at = begins[:count]
        return cls(at, begins[1 : count + 1] - at, end[at], start[at], query[at])


@dataclass(frozen=True, slots=True)
class InTurn(Order):
    """Ranges of windows of one query with the same edges, one after the other, in turn from all parts.

    To copy ranges takes a fraction of the time of an index.
    """

    part: Column
    """The number of the part that a range is taken from."""
    begin: Column
    size: Column
    place: Column
    """Where it goes; a range ends where the next one begins."""

    @classmethod
    def of_sorted(cls, parts: Sequence[Runs]) -> InTurn:
        """Of parts of which each has larger keys than those before."""
        part = np.repeat(np.arange(len(parts)), [len(runs.begin) for runs in parts])
        begin, size, end, start, query = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((part, query, start, end))
        size = size[order]
        return cls(part[order], begin[order], size, np.cumsum(size) - size)

    def cut(self, begin: int, end: int) -> Order:
        first = int(np.searchsorted(self.place + self.size, begin, side="right"))
        some = slice(first, int(np.searchsorted(self.place, end)))
        place, size = self.place[some], self.size[some]
        before, upto = np.maximum(begin - place, 0), np.minimum(size, end - place)
        return InTurn(self.part[some], self.begin[some] + before, upto - before, place + before - begin)

    def of(self, parts: list[Column]) -> Column:
        # Without the interpreter: threads do it side by side.
        out = fresh(int(self.size.sum()))
        for number, part in enumerate(parts):
            own = np.flatnonzero(self.part == number)
            move_ranges(part, self.begin[own], self.size[own], self.place[own], out)
        return out

    def of_arrays(self, parts: list[pa.Array], kind: pa.DataType) -> pa.Array:
        if all(_is_plain(part) for part in parts):
            moved = self.of([np.frombuffer(p.buffers()[1], np.int64, len(p), 8 * p.offset) for p in parts])
            return pa.Array.from_buffers(kind, len(moved), [None, pa.py_buffer(moved)])
        ranges = zip(*(column.tolist() for column in (self.part, self.begin, self.size)), strict=True)
        pieces = [parts[number].slice(begin, size) for number, begin, size in ranges]
        return pa.chunked_array(pieces, type=kind).combine_chunks()

    def of_alike(self, parts: list[Column]) -> Column:
        alike, sizes = self.runs_of(parts)
        out = fresh(int(sizes.sum()))
        repeat_each(alike, sizes, out)
        return out

    def runs_of(self, parts: list[Column]) -> tuple[Column, Column]:
        alike = np.empty(len(self.part), dtype=np.int64)
        for number, part in enumerate(parts):
            own = self.part == number
            alike[own] = part[self.begin[own]]
        return alike, self.size


def _is_plain(array: pa.Array) -> bool:
    """Whether an array is nothing but numbers of 64 bits."""
    plain = pa.types.is_primitive(array.type) and array.type.bit_width == 64
    return bool(plain and not array.null_count and len(array))


AS_IT_IS = AsItIs()
"""One part, as it is."""
