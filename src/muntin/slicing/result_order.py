"""The order in which the rows of several emissions stand in one table of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.sorting_kernels import group_begins, move_ranges

Column = npt.NDArray[np.int64]

LONG = 64
"""Windows of one query and end that stand together, on average, for them to be moved as ranges."""


@dataclass(frozen=True, slots=True)
class Order:
    """Where the rows of the table stand in the parts; without anything, in the only one, as they are.

    Otherwise by `index`, which counts over all parts, or as ranges of each part: where they begin and
    end, and where they go.
    """

    index: Column | None = None
    ranges: Sequence[tuple[Column, Column, Column]] | None = None

    @classmethod
    def in_turn(cls, parts: list[tuple[Column, Column, Column]]) -> Order | None:
        """Of sorted parts, given by end, start and query, of which each has larger keys than those before.

        Then the windows of one query and end stand together in each part, and parts take turns. To copy
        ranges takes a fraction of the time of an index. None where there would be too many of them.
        """
        found = []
        for number, (end, start, query) in enumerate(parts):
            begins = np.empty(len(end) // LONG + 2, dtype=np.int64)
            count = group_begins(end, start, query, begins)
            if count < 0:
                return None
            at, upto = begins[:count], begins[1 : count + 1]
            found.append((end[at], start[at], query[at], np.full(count, number), at, upto))
        end, start, query, part, begins, upto = (np.concatenate(c) for c in zip(*found, strict=True))
        order = np.lexsort((part, query, start, end))
        part, begins, upto = part[order], begins[order], upto[order]
        places = np.cumsum(upto - begins) - (upto - begins)
        own = [np.flatnonzero(part == number) for number in range(len(parts))]
        return cls(ranges=[(begins[mine], upto[mine], places[mine]) for mine in own])

    def of(self, parts: list[Column]) -> Column:
        """A column of the table."""
        if self.index is not None:
            return (parts[0] if len(parts) == 1 else np.concatenate(parts))[self.index]
        return parts[0] if self.ranges is None else self._moved(parts)

    def of_arrays(self, parts: list[pa.Array], kind: pa.DataType) -> pa.Array:
        """As `of`, for arrays of Arrow."""
        if self.index is not None:
            joined = parts[0] if len(parts) == 1 else pa.chunked_array(parts, type=kind).combine_chunks()
            return joined.take(pa.array(self.index))
        if self.ranges is None:
            return parts[0]
        if all(_is_plain(part) for part in parts):
            words = [np.frombuffer(p.buffers()[1], np.int64, len(p), 8 * p.offset) for p in parts]
            moved = self._moved(words)
            return pa.Array.from_buffers(kind, len(moved), [None, pa.py_buffer(moved)])
        pieces = [
            (place, part.slice(begin, end - begin))
            for part, ranges in zip(parts, self.ranges, strict=True)
            for begin, end, place in zip(*(column.tolist() for column in ranges), strict=True)
        ]
        pieces.sort(key=itemgetter(0))
        return pa.chunked_array([piece for _, piece in pieces], type=kind).combine_chunks()

    def _moved(self, parts: list[Column]) -> Column:
        """The ranges of all parts in one column, without the interpreter: threads do it side by side."""
        assert self.ranges is not None
        out = np.empty(sum(map(len, parts)), dtype=np.int64)
        for part, ranges in zip(parts, self.ranges, strict=True):
            move_ranges(part, *ranges, out)
        return out


def _is_plain(array: pa.Array) -> bool:
    """Whether an array is nothing but numbers of 64 bits."""
    plain = pa.types.is_primitive(array.type) and array.type.bit_width == 64
    return bool(plain and not array.null_count and len(array))


AS_IT_IS = Order()
"""One part, as it is."""
