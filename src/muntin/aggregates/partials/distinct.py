"""The distinct values of a slice, of any type and of several columns at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import distinct_kernels, order_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.codes import codes
from muntin.aggregates.partials.lists import Places, join_rows, ordered_tuples
from muntin.aggregates.partials.records import RaggedPartial, Record
from muntin.expressions import Expr

__all__ = ["Distinct", "DistinctContents", "DistinctItems"]


@dataclass(frozen=True, slots=True)
class DistinctItems(Record):
    """Row j consists of the items `offsets[j]:offsets[j + 1]`, all distinct.

    They are sorted by the (time, seq) of their first tuples.
    """

    offsets: Ints
    time: Ints
    seq: Ints
    counts: Ints
    """The number of tuples with these values."""
    values: tuple[pa.Array, ...]
    """One array for each column."""

    numbers = ("time", "seq", "counts")

    def columns(self) -> dict[str, Any]:
        values = {str(k): column for k, column in enumerate(self.values)}
        return {"time": self.time, "seq": self.seq, "counts": self.counts, **values}

    @classmethod
    def of(cls, columns: dict[str, Any]) -> DistinctItems:
        offsets, time, seq, counts, *values = columns.values()
        return cls(offsets, time, seq, counts, tuple(values))


@dataclass(frozen=True, slots=True)
class DistinctContents:
    """The distinct items of windows. No other rows are joined to them, so they have no (time, seq)."""

    offsets: Ints
    counts: Ints
    values: tuple[pa.Array, ...]


@dataclass(frozen=True, slots=True)
class Distinct(RaggedPartial):
    """Each combination of values without nulls, with its first (time, arrival) and its count.

    Single columns of 64-bit numbers have a smaller partial, `SortedRuns`. This one supports strings,
    several columns, and the order of first occurrence.
    """

    exprs: tuple[Expr, ...]

    record = DistinctItems

    def lift(self, g: Groups, needs: States) -> DistinctItems:
        offsets, index = ordered_tuples(g, self.exprs)
        columns = tuple(g.array(expr) for expr in self.exprs)
        ones = np.ones(len(g.time), dtype=np.int64)
        return _without_repetition(DistinctItems(offsets, g.time, g.seq, ones, columns), offsets, index, None)

    def reduce(
        self, state: DistinctItems, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> DistinctItems:
        repeating = hi - lo > 1  # a single row has distinct items, and most ranges are single rows
        if not repeating.any():
            return _at(state, Places.joined(state.offsets, state.time, state.seq, rows, lo, hi))
        offsets, index = join_rows(state.offsets, state.time, state.seq, rows, lo, hi)
        return _without_repetition(state, offsets, index, repeating)

    def window(
        self, state: DistinctItems, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> DistinctContents:
        ordered, joined, *_ = order_kernels.spans(state.offsets, state.time, state.seq, rows, lo, hi)
        if not ordered or joined[-1] < len(state.time):
            items = self.reduce(state, rows, lo, hi, before, after)
            return DistinctContents(items.offsets, items.counts, items.values)
        # Windows share slices: each item is hashed once.
        starts, index, counts = distinct_kernels.first_in_ranges(
            state.offsets, *codes(state.values), state.counts, rows, lo, hi
        )
        place = pa.array(index)
        return DistinctContents(starts, counts, tuple(column.take(place) for column in state.values))

    def take(self, state: DistinctItems, index: Ints) -> DistinctItems:
        return self.reduce(state, None, index, index + 1, (), ())

    def stored(self, columns: dict[str, pa.Array]) -> list[str]:
        return [*DistinctItems.numbers, *map(str, range(len(self.exprs)))]

    def sound(self, state: DistinctItems) -> bool:
        return arrays.rows_in_order(state.offsets, state.time, state.seq) and bool((state.counts > 0).all())


def _without_repetition(
    items: DistinctItems, offsets: Ints, index: Ints, repeating: Bools | None
) -> DistinctItems:
    """The first of equal items of each row `index[offsets[j]:offsets[j + 1]]`, with their counts summed.

    Only rows marked in `repeating` can have equal items; without a mask, all rows can.
    """
    chosen = slice(None) if repeating is None else np.repeat(repeating, np.diff(offsets))
    place = pa.array(index[chosen])
    code = np.zeros(len(index), dtype=np.int64)
    code[chosen], size = codes(tuple(column.take(place) for column in items.values))
    starts, first, counts = distinct_kernels.first_of_each(
        offsets, code, size, items.counts[index], repeating
    )
    return replace(_at(items, Places(starts, index[first])), counts=counts)


def _at(items: DistinctItems, places: Places) -> DistinctItems:
    """Rows of the items at these places."""
    return DistinctItems(
        places.offsets,
        places.numbers(items.time),
        places.numbers(items.seq),
        places.numbers(items.counts),
        tuple(places.values(column) for column in items.values),
    )
