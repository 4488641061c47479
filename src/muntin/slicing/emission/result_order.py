"""The order of the rows of several emissions in one table of results."""

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
"""The least length of runs of windows with the same number and edges, on average, for moving runs."""


class Order(ABC):
    """Maps rows of the table, all of them or a range, to rows of its sources."""

    @abstractmethod
    def cut(self, begin: int, end: int) -> Order:
        """The rows of the table from one to another."""

    @abstractmethod
    def of(self, sources: list[Column]) -> Column:
        """A column of the table."""

    @abstractmethod
    def of_arrays(self, sources: list[pa.Array], kind: pa.DataType) -> pa.Array:
        """As `of`, for arrays of Arrow."""

    def of_edges(self, sources: list[Column]) -> Column:
        """As `of`, for numbers that are equal for all windows with the same number and edges."""
        return self.of(sources)

    def edge_runs(self, sources: list[Column]) -> tuple[Column, Column] | None:
        """As `of_edges`, run-length encoded: numbers and their repetitions; None if runs are not known."""
        return None


@dataclass(frozen=True, slots=True)
class AsItIs(Order):
    """The rows of the only source from `begin` to `end`; without an end all of them."""

    begin: int = 0
    end: int | None = None

    def cut(self, begin: int, end: int) -> Order:
        return AsItIs(begin, end)

    def of(self, sources: list[Column]) -> Column:
        return sources[0] if self.end is None else sources[0][self.begin : self.end]

    def of_arrays(self, sources: list[pa.Array], kind: pa.DataType) -> pa.Array:
        return sources[0] if self.end is None else sources[0].slice(self.begin, self.end - self.begin)


@dataclass(frozen=True, slots=True)
class ByIndex(Order):
    """The source row for each row of the table, numbered over all sources."""

    index: Column

    def cut(self, begin: int, end: int) -> Order:
        return ByIndex(self.index[begin:end])

    def of(self, sources: list[Column]) -> Column:
        return rows_at(sources[0] if len(sources) == 1 else end_to_end(sources), self.index)

    def of_arrays(self, sources: list[pa.Array], kind: pa.DataType) -> pa.Array:
        joined = sources[0] if len(sources) == 1 else pa.chunked_array(sources, type=kind).combine_chunks()
        return joined.take(pa.array(self.index))


class Runs(NamedTuple):
    """Runs of windows with the same number and edges in a source."""

    begin: Column
    size: Column
    end: Column
    start: Column
    number: Column

    @classmethod
    def of(cls, end: Column, start: Column, number: Column) -> Runs | None:
        """The runs of windows in the order of results; None where runs are short."""
        begins = np.empty(len(end) // LONG + 2, dtype=np.int64)
        count = group_begins(end, start, number, begins)
        if count < 0:
            return None
        at = begins[:count]
        return cls(at, begins[1 : count + 1] - at, end[at], start[at], number[at])


@dataclass(frozen=True, slots=True)
class InTurn(Order):
    """Runs of windows with the same number and edges, taken from all sources in turn.

    Copying ranges takes a fraction of the time of an index.
    """

    source: Column
    """The number of the source of each range."""
    begin: Column
    size: Column
    place: Column
    """The first row in the table of each range; ranges are contiguous."""

    @classmethod
    def of_sorted(cls, sources: Sequence[Runs]) -> InTurn:
        """The order of sources of which each has larger keys than those before."""
        source = np.repeat(np.arange(len(sources)), [len(runs.begin) for runs in sources])
        begin, size, end, start, number = (np.concatenate(columns) for columns in zip(*sources, strict=True))
        order = np.lexsort((source, number, start, end))
        size = size[order]
        return cls(source[order], begin[order], size, np.cumsum(size) - size)

    def cut(self, begin: int, end: int) -> Order:
        first = int(np.searchsorted(self.place + self.size, begin, side="right"))
        chosen = slice(first, int(np.searchsorted(self.place, end)))
        place, size = self.place[chosen], self.size[chosen]
        before, upto = np.maximum(begin - place, 0), np.minimum(size, end - place)
        return InTurn(self.source[chosen], self.begin[chosen] + before, upto - before, place + before - begin)

    def of(self, sources: list[Column]) -> Column:
        # Compiled, so that threads run in parallel.
        out = fresh(int(self.size.sum()))
        for number, source in enumerate(sources):
            rows = np.flatnonzero(self.source == number)
            move_ranges(source, self.begin[rows], self.size[rows], self.place[rows], out)
        return out

    def of_arrays(self, sources: list[pa.Array], kind: pa.DataType) -> pa.Array:
        if all(_is_plain(source) for source in sources):
            moved = self.of([np.frombuffer(p.buffers()[1], np.int64, len(p), 8 * p.offset) for p in sources])
            return pa.Array.from_buffers(kind, len(moved), [None, pa.py_buffer(moved)])
        ranges = zip(*(column.tolist() for column in (self.source, self.begin, self.size)), strict=True)
        slices = [sources[number].slice(begin, size) for number, begin, size in ranges]
        return pa.chunked_array(slices, type=kind).combine_chunks()

    def of_edges(self, sources: list[Column]) -> Column:
        numbers, sizes = self.edge_runs(sources)
        out = fresh(int(sizes.sum()))
        repeat_each(numbers, sizes, out)
        return out

    def edge_runs(self, sources: list[Column]) -> tuple[Column, Column]:
        numbers = np.empty(len(self.source), dtype=np.int64)
        for number, source in enumerate(sources):
            rows = self.source == number
            numbers[rows] = source[self.begin[rows]]
        return numbers, self.size


def _is_plain(array: pa.Array) -> bool:
    """Whether an array has only 64-bit numbers, without nulls."""
    plain = pa.types.is_primitive(array.type) and array.type.bit_width == 64
    return bool(plain and not array.null_count and len(array))


AS_IT_IS = AsItIs()
"""All rows of one source."""
