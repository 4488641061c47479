"""Python objects folded in event-time order, for aggregates that do not commute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials.lists import join_rows, ordered_tuples, stacked
from muntin.aggregates.partials.objects import (
    Functions,
    Objects,
    decoded,
    empty,
    encoded,
    filled,
    object_bytes,
    pylists,
)
from muntin.expressions import Expr

__all__ = ["OrderedFold", "OrderedItems"]


@dataclass(frozen=True, slots=True)
class OrderedItems:
    """Row j holds the lifted tuples `offsets[j]:offsets[j + 1]` by (time, seq), and their fold."""

    offsets: Ints
    time: Ints
    seq: Ints
    items: Objects
    fold: Objects


@dataclass(frozen=True, slots=True)
class OrderedFold(Partial):
    """The fold of all tuples in the order of (time, arrival), for a combine that does not commute.

    The lifted tuples stay, so that a late one finds its place and no slice is ever split for it. The
    fold of each row is kept beside them: rows that follow one another combine their folds only.
    """

    inputs: tuple[Expr, ...]
    functions: Functions

    def lift(self, g: Groups, needs: tuple[State, ...]) -> OrderedItems:
        offsets, index = ordered_tuples(g, self.inputs)
        items = filled(self.functions.each("lift", pylists(g, self.inputs, index)))
        fold = empty(g.n)
        for j in np.flatnonzero(np.diff(offsets)).tolist():
            fold[j] = self.functions.fold(items[offsets[j] : offsets[j + 1]])
        return OrderedItems(offsets, g.time[index], g.seq[index], items, fold)

    def reduce(
        self,
        state: OrderedItems,
        rows: Ints | None,
        lo: Ints,
        hi: Ints,
        before: tuple[State, ...],
        after: tuple[State, ...],
    ) -> OrderedItems:
        offsets, index = join_rows(state.offsets, state.time, state.seq, rows, lo, hi)
        items = state.items[index]
        fold = empty(len(lo))
        for j in np.flatnonzero(np.diff(offsets)).tolist():
            row = np.arange(lo[j], hi[j]) if rows is None else rows[lo[j] : hi[j]]
            parts = self._folds_in_order(state, row[state.offsets[row] < state.offsets[row + 1]])
            fold[j] = self.functions.fold(items[offsets[j] : offsets[j + 1]] if parts is None else parts)
        return OrderedItems(offsets, state.time[index], state.seq[index], items, fold)

    def _folds_in_order(self, state: OrderedItems, row: Ints) -> Objects | None:
        """The folds of these rows by their first tuples; None if the rows overlap in time."""
        first, last = state.offsets[row], state.offsets[row + 1] - 1
        order = np.lexsort((state.seq[first], state.time[first]))
        begins, ends = first[order][1:], last[order][:-1]
        later = state.time[begins] > state.time[ends]
        tied = (state.time[begins] == state.time[ends]) & (state.seq[begins] > state.seq[ends])
        return state.fold[row[order]] if bool(np.all(later | tied)) else None

    def concat(self, states: list[OrderedItems]) -> OrderedItems:
        return OrderedItems(
            stacked([s.offsets for s in states]),
            np.concatenate([s.time for s in states]),
            np.concatenate([s.seq for s in states]),
            np.concatenate([s.items for s in states]),
            np.concatenate([s.fold for s in states]),
        )

    def take(self, state: OrderedItems, index: Ints) -> OrderedItems:
        offsets, items = join_rows(state.offsets, state.time, state.seq, None, index, index + 1)
        return OrderedItems(
            offsets, state.time[items], state.seq[items], state.items[items], state.fold[index]
        )

    def size(self, state: OrderedItems) -> int:
        return len(state.fold)

    def nbytes(self, state: OrderedItems) -> int:
        numbers = state.offsets.nbytes + state.time.nbytes + state.seq.nbytes
        return numbers + object_bytes(state.items) + object_bytes(state.fold)

    def weights(self, state: OrderedItems) -> Ints:
        return np.diff(state.offsets)

    def to_arrow(self, state: OrderedItems) -> dict[str, pa.Array]:
        items = encoded(state.items)
        parts = {"time": state.time, "seq": state.seq, "items": items}
        columns = {name: arrays.to_lists(state.offsets, part) for name, part in parts.items()}
        return columns | {"fold": encoded(state.fold, np.diff(state.offsets))}

    def from_arrow(self, columns: dict[str, pa.Array]) -> OrderedItems:
        time, seq = (np.array(arrays.list_items(columns[name]), dtype=np.int64) for name in ("time", "seq"))
        items = decoded(arrays.list_items(columns["items"]))
        return OrderedItems(arrays.from_lists(columns["time"]), time, seq, items, decoded(columns["fold"]))
