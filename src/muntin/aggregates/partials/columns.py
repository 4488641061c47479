"""Bases of the partials whose state is one NumPy array: a row of one or a few numbers per slice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools
from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials import loop_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.step_codes import NONE
from muntin.expressions import Expr
from muntin.memory import end_to_end, fresh, rows_at, zeroed
from muntin.scalars import Scalars

__all__ = ["ArrayPartial", "Column", "NumericPartial", "ScalarPartial"]

Column = npt.NDArray[Any]


class ArrayPartial(Partial):
    """State: one array, a NumPy array unless a subclass overrides `concat` and `take`."""

    __slots__ = ()

    def concat(self, states: list[State]) -> State:
        return np.concatenate(states)

    def take(self, state: State, index: Ints) -> State:
        return state[index]

    def cut(self, state: State, low: int, high: int) -> State:
        return state[low:high]

    def size(self, state: State) -> int:
        return len(state)

    def nbytes(self, state: State) -> int:
        return int(state.nbytes)


class NumericPartial(ArrayPartial):
    """State: an array of shape (rows,), or (rows, width) where `width` is not 1."""

    __slots__ = ()

    dtype: ClassVar[Any] = np.int64
    width: int = 1

    @property
    def step_code(self) -> int:
        """The code of the partial in the compiled step, `NONE` where the step does not support it."""
        return NONE

    @property
    def step_input(self) -> tuple[Expr, Callable[[pa.Array], Column] | None] | None:
        """The column that the compiled step reads, and the function that converts it to 64-bit words.

        Without a function, only nulls are tested; None for a partial without an input column.
        """
        return None

    @property
    def ordered(self) -> bool:
        return False

    def concat(self, states: list[Column]) -> Column:
        return end_to_end(states)

    def concat_by_group(self, states: list[Column], groups: int) -> Column:
        rows, rest = sum(map(len, states)), states[0].shape[1:]
        out = fresh((groups, rows // groups, *rest), self.dtype)
        np.concatenate([state.reshape(groups, -1, *rest) for state in states], axis=1, out=out)
        return out.reshape(rows, *rest)

    def take(self, state: Column, index: Ints) -> Column:
        # With several numbers a row, `state[index]` takes ten times as long.
        return rows_at(state, index)

    def to_arrow(self, state: Column) -> dict[str, pa.Array]:
        if self.width == 1:
            return {"0": pa.array(state)}
        return {str(k): pa.array(np.ascontiguousarray(state[:, k])) for k in range(self.width)}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Column:
        read = [arrays.read_numbers(columns[str(k)], self.dtype) for k in range(self.width)]
        return read[0] if self.width == 1 else np.column_stack(read)

    def rows(self, number: int) -> Column:
        """Uninitialised memory for this number of rows."""
        return fresh(number if self.width == 1 else (number, self.width), self.dtype)

    def zeros(self, number: int) -> Column:
        """Rows of zeros, the identity of sums."""
        return zeroed(number if self.width == 1 else (number, self.width), self.dtype)


class ScalarPartial(NumericPartial):
    """A partial declared on scalars: this class lifts and reduces with the loops of its declaration."""

    __slots__ = ()

    @property
    @abstractmethod
    def scalars(self) -> Scalars:
        """The declaration."""

    def empty(self) -> Column:
        return self.rows(0)

    def context(self, needs: States) -> tuple[Any, ...]:
        """The columns of `needs` that the declaration reads, or constants for all rows."""
        return needs

    @property
    def invertible(self) -> bool:
        return self.scalars.invert is not None

    def lifted(
        self, g: Groups, values: Column | tuple[Column, ...], valid: Bools | None, needs: States = ()
    ) -> Column:
        """One row per group, from the columns that `lift` of the declaration reads."""
        out, loops = self.rows(g.n), loop_kernels.loops(self.scalars)
        context = self.context(needs) if needs else ()
        if g.ordered:
            loops.lift_runs(values, valid, *g.runs(), g.n, out, *context)
        else:
            loops.lift_scattered(values, valid, g.ids(), g.n, out, *context)
        return out

    def reduce(self, state: Column, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Column:
        out = self.rows(len(lo))
        contexts = (*self.context(before), *self.context(after)) if before else ()
        loop_kernels.loops(self.scalars).reduce_rows(state, rows, lo, hi, out, *contexts)
        return out

    def invert(self, whole: Column, part: Column) -> State:
        assert self.scalars.invert is not None
        return self.scalars.invert(whole, part)
