"""Partial aggregates of a user's functions, folded in the order of arrival."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import Groups, Ints, Partial
from muntin.aggregates.compiling.program import Program
from muntin.aggregates.partials import cells, list_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.cells import Folds, Objects
from muntin.aggregates.partials.functions import Functions
from muntin.aggregates.partials.ranges import spread
from muntin.errors import UserCodeError
from muntin.expressions import Expr

__all__ = ["Folded", "blame"]


@dataclass(frozen=True, slots=True)
class Folded(Partial):
    """The fold of all tuples in the order of arrival: for a commutative combine, or a stream in order.

    With `ignore_nulls`, tuples with a null are skipped. The program decides whether compiled code runs.
    Where compiled code raises, the interpreter repeats the call, and its result or exception counts.
    """

    inputs: tuple[Expr, ...]
    functions: Functions
    ignore_nulls: bool
    program: Program = field(compare=False, repr=False)

    @property
    def uniform(self) -> bool:
        return False

    @property
    def invertible(self) -> bool:
        return self.functions.invert is not None and not self.functions.absorbing

    @property
    def fallible(self) -> bool:
        return True

    def try_lift(self, g: Groups) -> None:
        valid = g.valid_in_all(self.inputs) if self.ignore_nulls else None
        self.lift_each(g, np.arange(len(g.time)) if valid is None else np.flatnonzero(valid))

    def lift(self, g: Groups, needs: States) -> Any:
        valid = g.valid_in_all(self.inputs)
        kernels = self.program.kernels(len(g.time))
        if kernels is not None and (valid is None or self.ignore_nulls):
            # An array in any case: each variant of a user's loops is compiled while the user waits.
            counted = np.ones(len(g.time), dtype=np.bool_) if valid is None else valid
            loop, over = (kernels.lift_runs, g.runs()) if g.ordered else (kernels.lift_scattered, (g.ids(),))
            folds = self.program.fold(loop, (self.program.values(g), counted, *over, g.n), g.n)
            if folds is not None:
                return folds
        offsets, index = list_kernels.arrange(g.ids(), valid if self.ignore_nulls else None, g.n)
        lifted = self._lift_interpreted(g, index)
        if lifted:
            self.program.warn(lifted[0])
        with blame(g, index, offsets):
            return Folds(np.diff(offsets), _fold_each(self.functions, lifted, offsets))

    def lift_each(self, g: Groups, index: Ints, tuples: int = 0) -> Folds:
        """The partial aggregates of these tuples; the program counts `tuples` as further ones."""
        kernels = self.program.kernels(tuples)
        if kernels is not None and (self.ignore_nulls or g.valid_in_all(self.inputs) is None):
            lifted = self.program.fold(kernels.lift_each, (self.program.values(g), index), len(index))
            if lifted is not None:
                return lifted
        return Folds(np.ones(len(index), dtype=np.int64), cells.objects(self._lift_interpreted(g, index)))

    def _lift_interpreted(self, g: Groups, index: Ints) -> list[Any]:
        with blame(g, index):
            if not self.inputs:
                return self.functions.each("lift", [()] * len(index))
            columns = (g.array(expr).take(pa.array(index)).to_pylist() for expr in self.inputs)
            return self.functions.each("lift", zip(*columns, strict=True))

    def reduce(self, state: Any, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Any:
        # An array of rows in any case, as in `lift`.
        return self.fold_rows(state, np.arange(len(state.count)) if rows is None else rows, lo, hi)

    def fold_rows(self, state: Folds, rows: Rows, lo: Ints, hi: Ints) -> Folds:
        """The fold of each range of rows, from left to right."""
        kernels = self.program.kernels()
        columns = None if kernels is None else self.program.columns(state)
        if kernels is not None and columns is not None:
            folds = self.program.fold(kernels.reduce_rows, (columns, rows, lo, hi), len(lo))
            if folds is not None:
                return folds
        index, which = spread(rows, lo, hi)
        there = state.count[index] > 0
        index, which = index[there], which[there]
        offsets = np.searchsorted(which, np.arange(len(lo) + 1)).astype(np.int64)
        count = np.zeros(len(lo), dtype=np.int64)
        np.add.at(count, which, state.count[index])
        partials = cells.objects(cells.taken(state.value, index)).tolist()
        return Folds(count, _fold_each(self.functions, partials, offsets))

    def invert(self, whole: Folds, part: Folds) -> Folds:
        count = whole.count - part.count
        kernels = self.program.kernels()
        if kernels is not None:
            one, other = self.program.columns(whole), self.program.columns(part)
            if one is not None and other is not None:
                args = one, other, np.flatnonzero(count)
                folds = self.program.fold(kernels.invert_rows, args, len(count))
                if folds is not None:
                    return folds
        changed = np.flatnonzero((part.count > 0) & (count > 0))
        values = cells.objects(whole.value).copy()
        pairs = zip(*(cells.objects(cells.taken(s.value, changed)) for s in (whole, part)), strict=True)
        try:
            values[changed] = cells.objects(self.functions.each("invert", pairs))
        except UserCodeError as error:
            error.row = int(changed[error.part or 0])
            raise
        values[count == 0] = None
        return Folds(count, values)

    def concat(self, states: list[Any]) -> Any:
        return Folds(np.concatenate([s.count for s in states]), self.program.joined(states))

    def take(self, state: Any, index: Ints) -> Any:
        return Folds(state.count[index], cells.taken(state.value, index))

    def size(self, state: Any) -> int:
        return len(state.count)

    def nbytes(self, state: Any) -> int:
        return int(state.count.nbytes) + cells.nbytes(state.value)

    def to_arrow(self, state: Any) -> dict[str, pa.Array]:
        there = state.count > 0
        return {"count": pa.array(state.count), **cells.to_arrow(state.value, "value", there)}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Any:
        return Folds(arrays.read_numbers(columns["count"]), cells.from_arrow(columns, "value"))

    def sound(self, state: Any) -> bool:
        return bool((state.count >= 0).all())


@contextmanager
def blame(g: Groups, index: Ints, offsets: Ints | None = None) -> Iterator[None]:
    """Note in an error which tuple caused it: one of `index`, counted from its row if there are `offsets`."""
    try:
        yield
    except UserCodeError as error:
        first = 0 if offsets is None else offsets[error.row or 0]
        i = int(index[first + (error.part or 0)])
        error.seq, error.time = int(g.seq[i]), int(g.time[i])
        raise


def _fold_each(functions: Functions, partials: list[Any], offsets: Ints) -> Objects:
    """The folds of `partials[offsets[j]:offsets[j + 1]]`; None for an empty range."""
    value = cells.objects([None] * (len(offsets) - 1))
    bounds = offsets.tolist()
    for j in np.flatnonzero(np.diff(offsets)).tolist():
        try:
            value[j] = functions.fold(partials[bounds[j] : bounds[j + 1]])
        except UserCodeError as error:
            error.row = j
            raise
    return value
