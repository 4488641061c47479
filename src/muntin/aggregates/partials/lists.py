"""Rows of any number of items in event-time order, independent of the order of arrival."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays, joining
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import list_kernels, order_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.records import RaggedPartial, Record
from muntin.expressions import Expr

__all__ = ["Collected", "Contents", "Items", "Places", "join_rows", "ordered_tuples"]

_LONG = 256
"""Mean number of items of a span from which on copying span by span is faster than by an index."""


@dataclass(frozen=True, slots=True)
class Items(Record):
    """Row j consists of the items `offsets[j]:offsets[j + 1]`, sorted by (time, seq)."""

    offsets: Ints
    time: Ints
    seq: Ints
    values: pa.Array


@dataclass(frozen=True, slots=True)
class Contents:
    """The values of windows, in order. No other rows are joined to them, so they have no (time, seq)."""

    offsets: Ints
    values: pa.Array


@dataclass(frozen=True, slots=True)
class Collected(RaggedPartial):
    """All values that are not null, each with its (time, arrival)."""

    expr: Expr

    record = Items

    def lift(self, g: Groups, needs: States) -> Items:
        offsets, index = ordered_tuples(g, (self.expr,))
        return _at(Items(offsets, g.time, g.seq, g.array(self.expr)), Places(offsets, index))

    def reduce(self, state: Items, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Items:
        return _at(state, Places.joined(state.offsets, state.time, state.seq, rows, lo, hi))

    def window(self, state: Items, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Contents:
        places = Places.joined(state.offsets, state.time, state.seq, rows, lo, hi)
        return Contents(places.offsets, places.copies(state.values))

    @property
    def invertible(self) -> bool:
        return True

    def invert(self, whole: Items, part: Items) -> Items:
        left = order_kernels.subtract(whole.offsets, whole.time, whole.seq, part.offsets, part.time, part.seq)
        return _at(whole, Places(*left))

    def take(self, state: Items, index: Ints) -> Items:
        return self.reduce(state, None, index, index + 1, (), ())

    def sound(self, state: Items) -> bool:
        return arrays.rows_in_order(state.offsets, state.time, state.seq)


@dataclass(frozen=True, slots=True)
class Places:
    """The places of the items of new rows: at `index`, or, where that is None, in the ranges `spans`."""

    offsets: Ints
    index: Ints | None
    spans: tuple[tuple[int, int], ...] = ()

    @classmethod
    def joined(cls, offsets: Ints, time: Ints, seq: Ints, rows: Ints | None, lo: Ints, hi: Ints) -> Places:
        """The places of the items of each range of rows, in the order of (time, seq)."""
        ordered, starts, begin, end = order_kernels.spans(offsets, time, seq, rows, lo, hi)
        if ordered and len(begin) * _LONG <= starts[-1]:
            return cls(starts, None, tuple(zip(begin.tolist(), end.tolist(), strict=True)))
        return cls(*join_rows(offsets, time, seq, rows, lo, hi))

    def numbers(self, column: Ints) -> Ints:
        """The items of a column at these places; a view where that is most of the column."""
        if self.index is not None:
            return column[self.index]
        spans = [column[begin:end] for begin, end in self.spans]
        return spans[0] if self._most_of(column) else np.concatenate([column[:0], *spans])

    def values(self, column: pa.Array) -> pa.Array:
        """The same for a column of any type."""
        return column[slice(*self.spans[0])] if self._most_of(column) else self.copies(column)

    def copies(self, column: pa.Array) -> pa.Array:
        """As `values`, but always a copy: results may outlive the slices."""
        if self.index is not None:
            return joining.taken(column, self.index)
        return joining.concat([column[:0], *(column[begin:end] for begin, end in self.spans)])

    def _most_of(self, column: Ints | pa.Array) -> bool:
        """Whether a view wastes less memory than it uses."""
        return len(self.spans) == 1 and 2 * (self.spans[0][1] - self.spans[0][0]) >= len(column)


def _at(items: Items, places: Places) -> Items:
    """Rows of the items at these places."""
    return Items(
        places.offsets, places.numbers(items.time), places.numbers(items.seq), places.values(items.values)
    )


def ordered_tuples(g: Groups, exprs: tuple[Expr, ...]) -> tuple[Ints, Ints]:
    """Offsets of the groups, and their tuples without nulls in these columns, by (time, seq)."""
    valid = g.valid_in_all(exprs)
    if g.offsets is not None and valid is None:
        first, last = g.offsets[0], g.offsets[-1]
        return g.offsets - first, np.arange(first, last, dtype=np.int64)
    offsets, index = list_kernels.arrange(g.ids(), valid, g.n)
    if not g.ordered:
        order_kernels.sort_by_order(offsets, index, g.time, g.seq)
    return offsets, index


def join_rows(
    offsets: Ints, time: Ints, seq: Ints, rows: Ints | None, lo: Ints, hi: Ints
) -> tuple[Ints, Ints]:
    """Offsets of the joined rows, and the places of their items in the order of (time, seq)."""
    return order_kernels.join_in_order(offsets, time, seq, rows, lo, hi)
