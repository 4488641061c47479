"""All values of a slice, sorted and run-length encoded: the partial of the exact quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Floats
from muntin.aggregates.base import Groups, Ints, Partial, State
from muntin.aggregates.partials.lists import stacked
from muntin.expressions import Expr

__all__ = ["Runs", "SortedRuns"]

_SMALL = 32
"""Up to so many keys, a call into NumPy costs more than its vectorised sort saves."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Row j holds the distinct keys `offsets[j]:offsets[j + 1]` in order, and how often each occurs."""

    offsets: Ints
    keys: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class SortedRuns(Partial):
    """The order keys of all values that are not null, merged when slices combine.

    With `as_float` the values are made floats first (decimals, as in Spark's percentile). [scotty §5.4.1]
    """

    expr: Expr
    as_float: bool = False

    def lift(self, g: Groups, needs: tuple[State, ...]) -> Runs:
        from muntin.aggregates.partials.list_kernels import arrange
        from muntin.aggregates.partials.run_kernels import compress, sort_small

        offsets, index = arrange(g.ids(), g.valid(self.expr), g.n)
        if self.as_float:
            keys = arrays.order_keys(pa.array(g.floats(self.expr)))[index]
        else:
            keys = g.keys(self.expr)[index]
        sort_small(offsets, keys, _SMALL)
        for j in np.flatnonzero(np.diff(offsets) > _SMALL):
            keys[offsets[j] : offsets[j + 1]].sort()
        return Runs(*compress(offsets, keys))

    def reduce(
        self,
        state: Runs,
        rows: Ints | None,
        lo: Ints,
        hi: Ints,
        before: tuple[State, ...],
        after: tuple[State, ...],
    ) -> Runs:
        from muntin.aggregates.partials.run_kernels import merge_rows

        return Runs(*merge_rows(state.offsets, state.keys, state.counts, rows, lo, hi))

    def quantiles(self, state: Runs, q: float, type_: pa.DataType) -> pa.Array:
        """The value below which the fraction q lies, between two values by linear interpolation."""
        from muntin.aggregates.partials.run_kernels import neighbours

        below, above, between = neighbours(state.offsets, state.keys, state.counts, q)
        low, high = self._values(below, type_), self._values(above, type_)
        with np.errstate(invalid="ignore"):
            mixed = (1.0 - between) * low + between * high
        # Equal neighbours need no arithmetic, which would turn an infinity into NaN.
        return arrays.from_fixed(
            np.where(below == above, low, mixed), np.diff(state.offsets) > 0, pa.float64()
        )

    def _values(self, keys: Ints, type_: pa.DataType) -> Floats:
        return arrays.floats(arrays.from_keys(keys, None, pa.float64() if self.as_float else type_))

    def concat(self, states: list[Runs]) -> Runs:
        return Runs(
            stacked([s.offsets for s in states]),
            np.concatenate([s.keys for s in states]),
            np.concatenate([s.counts for s in states]),
        )

    def take(self, state: Runs, index: Ints) -> Runs:
        return self.reduce(state, None, index, index + 1, (), ())

    def size(self, state: Runs) -> int:
        return len(state.offsets) - 1

    def nbytes(self, state: Runs) -> int:
        return state.offsets.nbytes + state.keys.nbytes + state.counts.nbytes

    def weights(self, state: Runs) -> Ints:
        return np.diff(state.offsets)

    def to_arrow(self, state: Runs) -> dict[str, pa.Array]:
        parts = {"keys": state.keys, "counts": state.counts}
        return {name: arrays.to_lists(state.offsets, part) for name, part in parts.items()}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Runs:
        keys, counts = (
            np.array(arrays.list_items(columns[name]), dtype=np.int64) for name in ("keys", "counts")
        )
        return Runs(arrays.from_lists(columns["keys"]), keys, counts)
