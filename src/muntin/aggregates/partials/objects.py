"""Partial aggregates of a user's functions, folded in the order of arrival."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import Groups, Ints, Partial
from muntin.aggregates.compiling.program import Program
from muntin.aggregates.partials import cells, list_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.cells import Cells, Numbers, Objects
from muntin.aggregates.partials.functions import Functions
from muntin.aggregates.partials.ranges import spread
from muntin.errors import UserCodeError
from muntin.expressions import Expr

__all__ = ["Folded", "Folds", "blame", "fold_rows", "lift_each", "reduce_rows", "try_each"]


_ALWAYS = np.ones(1, dtype=np.bool_)
"""The mask of a batch without nulls: one entry for all tuples."""


@dataclass(frozen=True, slots=True)
class Folds:
    """The number of tuples of each row, and their fold where the row has tuples."""

    count: Ints
    value: Cells


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
        try_each(self.functions, self.program, g, self.inputs, self.ignore_nulls)

    def lift(self, g: Groups, needs: States) -> Folds:
        valid = g.valid_in_all(self.inputs)
        kernels = self.program.kernels(len(g.time))
        if kernels is not None and (valid is None or self.ignore_nulls):
            count, value = np.zeros(g.n, dtype=np.int64), kernels.code.form.zeros(g.n)
            loop, over = (kernels.lift_runs, g.runs()) if g.ordered else (kernels.lift_scatter, (g.ids(),))
            mask = (_ALWAYS, 0) if valid is None else (valid, 1)
            args = (self.program.values(g), *mask, *over)
            if self.program.run(loop, args, (count, value.columns)):
                return Folds(count, value)
        offsets, index = list_kernels.arrange(g.ids(), valid if self.ignore_nulls else None, g.n)
        lifted = lift_each(self.functions, g, self.inputs, index)
        if lifted:
            self.program.warn(lifted[0])
        try:
            return Folds(np.diff(offsets), fold_rows(self.functions, lifted, offsets))
        except UserCodeError as error:
            blame(error, g, int(index[offsets[error.row or 0] + (error.part or 0)]))
            raise

    def reduce(self, state: Folds, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Folds:
        return reduce_rows(self.functions, self.program, state, rows, lo, hi)

    def invert(self, whole: Folds, part: Folds) -> Folds:
        count = whole.count - part.count
        changed = np.flatnonzero((part.count > 0) & (count > 0))
        kernels = self.program.kernels()
        if kernels is not None and kernels.invert_rows is not None:
            one, other = (kernels.code.form.numbers(s.value, s.count > 0) for s in (whole, part))
            if one is not None and other is not None:
                value = Numbers(one.scalar, tuple(column.copy() for column in one.columns))
                args = (one.columns, other.columns, changed)
                if self.program.run(kernels.invert_rows, args, (value.columns,)):
                    return Folds(count, value)
        values = cells.objects(whole.value).copy()
        pairs = zip(*(cells.objects(cells.taken(s.value, changed)) for s in (whole, part)), strict=True)
        values[changed] = cells.objects(self.functions.each("invert", pairs))
        values[count == 0] = None
        return Folds(count, values)

    def concat(self, states: list[Folds]) -> Folds:
        count = np.concatenate([s.count for s in states])
        return Folds(count, self.program.joined([(s.value, s.count > 0) for s in states]))

    def take(self, state: Folds, index: Ints) -> Folds:
        return Folds(state.count[index], cells.taken(state.value, index))

    def size(self, state: Folds) -> int:
        return len(state.count)

    def nbytes(self, state: Folds) -> int:
        return state.count.nbytes + cells.nbytes(state.value)

    def to_arrow(self, state: Folds) -> dict[str, pa.Array]:
        there = state.count > 0
        return {"count": pa.array(state.count), **cells.to_arrow(state.value, "value", there)}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Folds:
        return Folds(arrays.read_numbers(columns["count"]), cells.from_arrow(columns, "value"))

    def sound(self, state: Folds) -> bool:
        return bool((state.count >= 0).all())


def reduce_rows(
    functions: Functions, program: Program, state: Folds, rows: Ints | None, lo: Ints, hi: Ints
) -> Folds:
    """The fold of each range of rows, from left to right."""
    kernels = program.kernels()
    numbers = None if kernels is None else kernels.code.form.numbers(state.value, state.count > 0)
    count = np.zeros(len(lo), dtype=np.int64)
    if kernels is not None and numbers is not None:
        value = kernels.code.form.zeros(len(lo))
        index = np.arange(len(state.count)) if rows is None else rows
        args = (numbers.columns, state.count, index, lo, hi)
        if program.run(kernels.reduce_rows, args, (count, value.columns)):
            return Folds(count, value)
        count[:] = 0
    index, which = spread(rows, lo, hi)
    there = state.count[index] > 0
    index, which = index[there], which[there]
    offsets = np.searchsorted(which, np.arange(len(lo) + 1)).astype(np.int64)
    np.add.at(count, which, state.count[index])
    partials = cells.objects(cells.taken(state.value, index)).tolist()
    return Folds(count, fold_rows(functions, partials, offsets))


def lift_each(functions: Functions, g: Groups, inputs: tuple[Expr, ...], index: Ints) -> list[Any]:
    """The partial aggregates of these tuples."""
    try:
        return functions.each("lift", _arguments(g, inputs, index))
    except UserCodeError as error:
        blame(error, g, int(index[error.part or 0]))
        raise


def try_each(
    functions: Functions, program: Program, g: Groups, inputs: tuple[Expr, ...], ignore_nulls: bool
) -> None:
    """Lift all tuples for the errors alone, in compiled code where the program has some."""
    valid = g.valid_in_all(inputs)
    some = np.flatnonzero(valid) if valid is not None and ignore_nulls else np.arange(len(g.time))
    kernels = program.kernels()
    if kernels is not None and (valid is None or ignore_nulls):
        out = kernels.code.form.zeros(len(some))
        if program.run(kernels.lift_each, (program.values(g), some), (out.columns,)):
            return
    lift_each(functions, g, inputs, some)


def _arguments(g: Groups, inputs: tuple[Expr, ...], index: Ints) -> Iterable[tuple[Any, ...]]:
    """The arguments of `lift` for each of these tuples, as Python values."""
    if not inputs:
        return [()] * len(index)
    taken = pa.array(index)
    return zip(*(g.array(expr).take(taken).to_pylist() for expr in inputs), strict=True)


def blame(error: UserCodeError, g: Groups, i: int) -> None:
    """Note in the error which tuple caused it."""
    error.seq, error.time = int(g.seq[i]), int(g.time[i])


def fold_rows(functions: Functions, partials: list[Any], offsets: Ints) -> Objects:
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
