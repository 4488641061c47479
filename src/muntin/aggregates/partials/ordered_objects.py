"""Partial aggregates of a user's functions that do not commute, folded in event-time order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import Groups, Ints, Partial
from muntin.aggregates.compiling.program import Program
from muntin.aggregates.partials import cells, order_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.cells import Cells
from muntin.aggregates.partials.functions import Functions
from muntin.aggregates.partials.lists import join_rows, ordered_tuples
from muntin.aggregates.partials.objects import Folds, blame, fold_rows, lift_each, reduce_rows, try_each
from muntin.aggregates.partials.records import stacked
from muntin.errors import UserCodeError
from muntin.expressions import Expr

__all__ = ["OrderedFold", "OrderedFolds"]


@dataclass(frozen=True, slots=True)
class Lifted:
    """Row j consists of the lifted tuples `offsets[j]:offsets[j + 1]`, sorted by (time, seq)."""

    offsets: Ints
    time: Ints
    seq: Ints
    items: Cells

    def join(self, rows: Ints | None, lo: Ints, hi: Ints) -> Lifted:
        """The tuples of each range of rows."""
        offsets, index = join_rows(self.offsets, self.time, self.seq, rows, lo, hi)
        return Lifted(offsets, self.time[index], self.seq[index], cells.taken(self.items, index))


@dataclass(frozen=True, slots=True)
class OrderedFolds:
    """The lifted tuples of each row, their fold and their extent.

    A column of `extent` is (time, seq) of the first tuple, then of the last tuple of a row.
    """

    lifted: Lifted
    folds: Folds
    extent: Ints

    @classmethod
    def of(cls, lifted: Lifted, fold: Cells) -> OrderedFolds:
        """Rows of these tuples with these folds."""
        count = np.diff(lifted.offsets)
        extent = np.zeros((4, len(count)), dtype=np.int64)
        there = np.flatnonzero(count)
        for k, place in enumerate((lifted.offsets[:-1], lifted.offsets[1:] - 1)):
            extent[2 * k, there] = lifted.time[place[there]]
            extent[2 * k + 1, there] = lifted.seq[place[there]]
        return cls(lifted, Folds(count, fold), extent)


@dataclass(frozen=True, slots=True)
class OrderedFold(Partial):
    """The fold of all tuples in the order of (time, arrival), for a combine that does not commute.

    The state includes the lifted tuples: a late tuple is inserted among them, and no slice is split for
    it. It also includes the fold of each row: rows that do not overlap in time combine their folds only.
    """

    inputs: tuple[Expr, ...]
    functions: Functions
    ignore_nulls: bool
    program: Program = field(compare=False, repr=False)

    @property
    def fallible(self) -> bool:
        return True

    @property
    def uniform(self) -> bool:
        return False

    def try_lift(self, g: Groups) -> None:
        try_each(self.functions, self.program, g, self.inputs, self.ignore_nulls)

    def lift(self, g: Groups, needs: States) -> OrderedFolds:
        kernels = self.program.kernels(len(g.time))
        offsets, index = ordered_tuples(g, self.inputs if self.ignore_nulls else ())
        items: Cells | None = None
        if kernels is not None and (self.ignore_nulls or g.valid_in_all(self.inputs) is None):
            numbers = kernels.code.form.zeros(len(index))
            if self.program.run(kernels.lift_each, (self.program.values(g), index), (numbers.columns,)):
                items = numbers
        if items is None:
            items = cells.objects(lift_each(self.functions, g, self.inputs, index))
            if len(items):
                self.program.warn(items[0])
        lifted = Lifted(offsets, g.time[index], g.seq[index], items)
        try:
            return OrderedFolds.of(lifted, self._folded(lifted))
        except UserCodeError as error:
            blame(error, g, int(index[offsets[error.row or 0] + (error.part or 0)]))
            raise

    def _folded(self, lifted: Lifted) -> Cells:
        """The fold of the tuples of each row."""
        kernels = self.program.kernels()
        numbers = None if kernels is None else kernels.code.form.numbers(lifted.items)
        if kernels is not None and numbers is not None:
            folds = kernels.code.form.zeros(len(lifted.offsets) - 1)
            if self.program.run(kernels.fold_items, (numbers.columns, lifted.offsets), (folds.columns,)):
                return folds
        return fold_rows(self.functions, cells.objects(lifted.items).tolist(), lifted.offsets)

    def reduce(
        self, state: OrderedFolds, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> OrderedFolds:
        folds = self.window(state, rows, lo, hi, before, after)
        return OrderedFolds.of(state.lifted.join(rows, lo, hi), folds.value)

    def window(
        self, state: OrderedFolds, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> Folds:
        overlapping = np.zeros(len(lo), dtype=np.bool_)
        count = np.zeros(len(lo), dtype=np.int64)
        order_kernels.overlap_rows(state.extent, state.folds.count, rows, lo, hi, count, overlapping)
        until = np.where(overlapping, lo, hi)  # overlapping rows are not combined slice by slice
        fold = reduce_rows(self.functions, self.program, state.folds, rows, lo, until).value
        again = np.flatnonzero(overlapping)
        if len(again):
            fold = cells.replaced(fold, again, self._folded_again(state, rows, lo, hi, again))
        return Folds(count, fold)

    def _folded_again(self, state: OrderedFolds, rows: Ints | None, lo: Ints, hi: Ints, again: Ints) -> Cells:
        """The folds of the ranges `again`, from their tuples."""
        try:
            return self._folded(state.lifted.join(rows, lo[again], hi[again]))
        except UserCodeError as error:
            error.row = int(again[error.row or 0])
            raise

    def concat(self, states: list[OrderedFolds]) -> OrderedFolds:
        lifted = [state.lifted for state in states]
        together = Lifted(
            stacked([tuples.offsets for tuples in lifted]),
            np.concatenate([tuples.time for tuples in lifted]),
            np.concatenate([tuples.seq for tuples in lifted]),
            self.program.joined([(tuples.items, None) for tuples in lifted]),
        )
        folds = self.program.joined([(s.folds.value, s.folds.count > 0) for s in states])
        return OrderedFolds.of(together, folds)

    def take(self, state: OrderedFolds, index: Ints) -> OrderedFolds:
        lifted = state.lifted.join(None, index, index + 1)
        return OrderedFolds.of(lifted, cells.taken(state.folds.value, index))

    def size(self, state: OrderedFolds) -> int:
        return len(state.folds.count)

    def nbytes(self, state: OrderedFolds) -> int:
        lifted = state.lifted
        numbers = (state.folds.count, state.extent, lifted.offsets, lifted.time, lifted.seq)
        objects = cells.nbytes(lifted.items) + cells.nbytes(state.folds.value)
        return sum(column.nbytes for column in numbers) + objects

    def weights(self, state: OrderedFolds) -> Ints:
        return state.folds.count

    def to_arrow(self, state: OrderedFolds) -> dict[str, pa.Array]:
        lifted = state.lifted
        flat = {"time": lifted.time, "seq": lifted.seq, **cells.to_arrow(lifted.items, "items")}
        columns = {name: arrays.to_lists(lifted.offsets, column) for name, column in flat.items()}
        return columns | cells.to_arrow(state.folds.value, "fold", state.folds.count > 0)

    def from_arrow(self, columns: dict[str, pa.Array]) -> OrderedFolds:
        names = [name for name in columns if name.split(".")[0] == "items"]
        offsets, (time, seq, *flat) = arrays.read_lists(columns, "time", "seq", *names)
        items = cells.from_arrow(dict(zip(names, flat, strict=True)), "items")
        lifted = Lifted(offsets, arrays.read_numbers(time), arrays.read_numbers(seq), items)
        return OrderedFolds.of(lifted, cells.from_arrow(columns, "fold"))

    def sound(self, state: OrderedFolds) -> bool:
        lifted = state.lifted
        return arrays.rows_in_order(lifted.offsets, lifted.time, lifted.seq)
