"""The order in which the rows of several emissions stand in one table of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.slicing.sorting_kernels import group_begins

Column = npt.NDArray[np.int64]

LONG = 64
"""Windows of one query and end that stand together, on average, for them to be moved as ranges."""


@dataclass(frozen=True, slots=True)
class Order:
    """Where the rows of the table stand in the parts.

    Either by `index`, which counts over all parts, or as `ranges`: part, begin and end.
    """

    index: Column | None = None
    ranges: Sequence[tuple[int, int, int]] | None = None

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
        return cls(ranges=list(zip(*(c[order].tolist() for c in (part, begins, upto)), strict=True)))

    def of(self, parts: list[Column]) -> Column:
        """A column of the table."""
        if self is AS_IT_IS:
            return parts[0]
        pieces = self._pieces(parts)
        joined = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return joined if self.index is None else joined[self.index]

    def of_arrays(self, parts: list[pa.Array], kind: pa.DataType) -> pa.Array:
        """As `of`, for arrays of Arrow."""
        if self is AS_IT_IS:
            return parts[0]
        pieces = self._pieces(parts)
        joined = pieces[0] if len(pieces) == 1 else pa.chunked_array(pieces, type=kind).combine_chunks()
        return joined if self.index is None else joined.take(pa.array(self.index))

    def _pieces(self, parts: list[Any]) -> list[Any]:
        return parts if self.ranges is None else [parts[p][begin:end] for p, begin, end in self.ranges]


AS_IT_IS = Order()
"""One part, as it is."""
