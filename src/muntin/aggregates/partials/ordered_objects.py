"""Partial aggregates of a user's functions that do not commute, folded in event-time order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import cells, order_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.cells import Cells, Folds
from muntin.aggregates.partials.lists import join_rows, ordered_tuples
from muntin.aggregates.partials.objects import Folded, blame
from muntin.aggregates.partials.records import stacked
from muntin.errors import UserCodeError

__all__ = ["OrderedFold", "OrderedFolds"]


@dataclass(frozen=True, slots=True)
class OrderedFolds:
    """Row j has the lifted tuples `offsets[j]:offsets[j + 1]`, sorted by (time, seq), and their fold."""

    offsets: Ints
    time: Ints
    seq: Ints
    items: Cells
    fold: Cells

    @property
    def folds(self) -> Folds:
        """The rows without their tuples."""
        return Folds(np.diff(self.offsets), self.fold)

    @property
    def tuples(self) -> Folds:
        """The lifted tuples as rows of one tuple each."""
        return Folds(np.ones(len(self.time), dtype=np.int64), self.items)

    def joined(self, rows: Rows, lo: Ints, hi: Ints, fold: Cells) -> OrderedFolds:
        """The tuples of each range of rows, with these folds."""
        offsets, index = join_rows(self.offsets, self.time, self.seq, rows, lo, hi)
        return OrderedFolds(offsets, self.time[index], self.seq[index], cells.taken(self.items, index), fold)


@dataclass(frozen=True, slots=True)
class OrderedFold(Folded):
    """The fold of all tuples in the order of (time, arrival), for a combine that does not commute.

    The state includes the lifted tuples: a late tuple is inserted among them, and no slice is split for
    it. It also includes the fold of each row: rows that do not overlap in time combine their folds only.
    """

    def lift(self, g: Groups, needs: States) -> OrderedFolds:
        offsets, index = ordered_tuples(g, self.inputs if self.ignore_nulls else ())
        lifted = self.lift_each(g, index, len(g.time))
        if isinstance(lifted.value, np.ndarray) and len(index):
            self.program.warn(lifted.value[0])
        with blame(g, index, offsets):
            fold = self.fold_rows(lifted, None, offsets[:-1], offsets[1:]).value
        return OrderedFolds(offsets, g.time[index], g.seq[index], lifted.value, fold)

    def reduce(
        self, state: OrderedFolds, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> OrderedFolds:
        return state.joined(rows, lo, hi, self.window(state, rows, lo, hi, before, after).value)

    def window(
        self, state: OrderedFolds, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> Folds:
        overlapping = order_kernels.overlapping(state.offsets, state.time, state.seq, rows, lo, hi)
        folds: Folds
        if not overlapping.any():
            folds = Folded.reduce(self, state.folds, rows, lo, hi, before, after)
            return folds
        folds = Folded.reduce(self, state.folds, rows, lo, np.where(overlapping, lo, hi), before, after)
        again = np.flatnonzero(overlapping)
        joined = state.joined(rows, lo[again], hi[again], folds.value)
        try:
            refolded = self.fold_rows(joined.tuples, None, joined.offsets[:-1], joined.offsets[1:])
        except UserCodeError as error:
            error.row = int(again[error.row or 0])
            raise
        folds.count[again] = refolded.count
        return Folds(folds.count, cells.replaced(folds.value, again, refolded.value))

    def concat(self, states: list[OrderedFolds]) -> OrderedFolds:
        return OrderedFolds(
            stacked([state.offsets for state in states]),
            np.concatenate([state.time for state in states]),
            np.concatenate([state.seq for state in states]),
            self.program.joined([state.tuples for state in states]),
            self.program.joined([state.folds for state in states]),
        )

    def take(self, state: OrderedFolds, index: Ints) -> OrderedFolds:
        return state.joined(None, index, index + 1, cells.taken(state.fold, index))

    def size(self, state: OrderedFolds) -> int:
        return len(state.offsets) - 1

    def nbytes(self, state: OrderedFolds) -> int:
        numbers = state.offsets.nbytes + state.time.nbytes + state.seq.nbytes
        return numbers + cells.nbytes(state.items) + cells.nbytes(state.fold)

    def weights(self, state: OrderedFolds) -> Ints:
        return np.diff(state.offsets)

    def to_arrow(self, state: OrderedFolds) -> dict[str, pa.Array]:
        flat = {"time": state.time, "seq": state.seq, **cells.to_arrow(state.items, "items")}
        columns = {name: arrays.to_lists(state.offsets, column) for name, column in flat.items()}
        return columns | cells.to_arrow(state.fold, "fold", np.diff(state.offsets) > 0)

    def from_arrow(self, columns: dict[str, pa.Array]) -> OrderedFolds:
        names = [name for name in columns if name.split(".")[0] == "items"]
        offsets, (time, seq, *flat) = arrays.read_lists(columns, "time", "seq", *names)
        items = cells.from_arrow(dict(zip(names, flat, strict=True)), "items")
        numbers = arrays.read_numbers(time), arrays.read_numbers(seq)
        return OrderedFolds(offsets, *numbers, items, cells.from_arrow(columns, "fold"))

    def sound(self, state: Any) -> bool:
        return arrays.rows_in_order(state.offsets, state.time, state.seq)
