"""The column of results from the partial aggregates of a user's functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.arrays import Bools, Ints
from muntin.aggregates.base import State
from muntin.aggregates.compiling.program import Program
from muntin.aggregates.partials import cells
from muntin.aggregates.partials.cells import Cells, Folds, Numbers
from muntin.aggregates.partials.functions import Failed, Functions
from muntin.errors import UserCodeError, value_text

__all__ = ["Lowering"]

_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)
_NUMBERS = {"bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}


@dataclass(frozen=True, slots=True)
class Lowering:
    """The user's `lower` over all rows; null over no tuple.

    Compiled code runs only where it gives the exact type of the results: Arrow converts Python values
    and arrays differently.
    """

    functions: Functions
    program: Program
    type: pa.DataType

    def __call__(self, states: tuple[State, ...]) -> pa.Array:
        state = states[0]
        folds = state if isinstance(state, Folds) else state.folds
        results = self._compiled(folds.count, folds.value)
        return self._interpreted(folds.count, folds.value) if results is None else results

    def _compiled(self, count: Ints, value: Cells) -> pa.Array | None:
        kernels = self.program.kernels()
        if kernels is None or not isinstance(value, Numbers) or value.form != self.program.code.form:
            return None
        if self.functions.lower is None:
            whole = value.scalar and self.type == _NUMBERS[value.form.dtypes[0]]
            return pa.array(value.columns[0], self.type, mask=count == 0) if whole else None
        result = self.program.code.result
        if not result or self.type != _NUMBERS[result]:
            return None
        out: npt.NDArray[Any] = np.zeros(len(count), dtype=result)
        ok: Bools = count > 0
        args = (count, *value.columns), np.flatnonzero(count)
        if not self.program.run(kernels.lower_rows, args, (out, ok)):
            return None
        return pa.array(out, self.type, mask=~ok)

    def _interpreted(self, count: Ints, value: Cells) -> pa.Array:
        there = np.flatnonzero(count)
        values = cells.objects(cells.taken(value, there))
        for j, partial in zip(there.tolist(), values, strict=True):
            if type(partial) is Failed:
                error = UserCodeError(partial.reason)
                error.row = j
                raise error
        if self.functions.lower is not None:
            try:
                values = cells.objects(self.functions.each("lower", [(p,) for p in values]))
            except UserCodeError as error:
                error.row = int(there[error.part or 0])
                raise
        results: list[Any] = [None] * len(count)
        for j, result in zip(there.tolist(), values, strict=True):
            results[j] = result
        try:
            return _column(results, self.type)
        except _UNFIT as error:
            raise self._unfit(results, error) from error

    def _unfit(self, results: list[Any], error: Exception) -> UserCodeError:
        """The error for a result that does not have the type of the column."""
        j = next((j for j, value in enumerate(results) if not _fits(value, self.type)), 0)
        failure = UserCodeError(
            f'user-defined aggregate "{self.functions.name}": a result is no {self.type}: '
            f"{value_text(results[j], 80)} ({error})"
        )
        failure.row = j
        failure.cure = 'say what it is with type=..., or choose on_error="skip", which gives null'
        return failure


def _column(results: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array(list(map(_whole, results)) if t.is_integer(type_) else results, type_)


def _whole(value: Any) -> Any:
    """A bool as an integer, and an error for a fraction; Arrow refuses True and truncates fractions."""
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("it is not whole")
    return int(value) if isinstance(value, bool) else value


def _fits(value: Any, type_: pa.DataType) -> bool:
    try:
        _column([value], type_)
    except _UNFIT:
        return False
    return True
