"""Base of the partials whose state is one NumPy array: a row per slice, one or a few numbers wide."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import Ints, Partial
from muntin.memory import end_to_end, fresh, rows_at, zeroed

__all__ = ["NumericPartial"]


class NumericPartial(Partial):
    """State: an array of shape (rows,), or (rows, width) where `width` is not 1."""

    __slots__ = ()

    dtype: ClassVar[Any] = np.int64
    width: int = 1

    @property
    def ordered(self) -> bool:
        return False

    def concat(self, states: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        return end_to_end(states)

    def beside(self, states: list[npt.NDArray[Any]], groups: int) -> npt.NDArray[Any]:
        rows, rest = sum(map(len, states)), states[0].shape[1:]
        out = fresh((groups, rows // groups, *rest), self.dtype)
        np.concatenate([state.reshape(groups, -1, *rest) for state in states], axis=1, out=out)
        return out.reshape(rows, *rest)

    def take(self, state: npt.NDArray[Any], index: Ints) -> npt.NDArray[Any]:
        # Of states that are several numbers wide, `state[index]` takes ten times as long.
        return rows_at(state, index)

    def cut(self, state: npt.NDArray[Any], low: int, high: int) -> npt.NDArray[Any]:
        return state[low:high]

    def size(self, state: npt.NDArray[Any]) -> int:
        return len(state)

    def nbytes(self, state: npt.NDArray[Any]) -> int:
        return state.nbytes

    def to_arrow(self, state: npt.NDArray[Any]) -> dict[str, pa.Array]:
        if self.width == 1:
            return {"0": pa.array(state)}
        return {str(k): pa.array(np.ascontiguousarray(state[:, k])) for k in range(self.width)}

    def from_arrow(self, columns: dict[str, pa.Array]) -> npt.NDArray[Any]:
        read = [arrays.read_numbers(columns[str(k)], self.dtype) for k in range(self.width)]
        return read[0] if self.width == 1 else np.column_stack(read)

    def zeros(self, rows: int) -> npt.NDArray[Any]:
        """The identity of the sums, for that many rows."""
        return zeroed(rows if self.width == 1 else (rows, self.width), self.dtype)
