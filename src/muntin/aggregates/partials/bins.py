"""Counts of values in bins with given edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import bin_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.columns import NumericPartial
from muntin.expressions import Expr

__all__ = ["Bins"]


@dataclass(frozen=True, slots=True)
class Bins(NumericPartial):
    """How many values lie in each bin `[edges[k], edges[k + 1])`. State: (rows, bins)."""

    expr: Expr
    edges: tuple[float, ...]

    @property
    def invertible(self) -> bool:
        return True

    def lift(self, g: Groups, needs: States) -> Ints:
        out = np.zeros((g.n, len(self.edges) - 1), dtype=np.int64)
        bin_kernels.count_bins(g.floats(self.expr), g.valid(self.expr), g.ids(), np.array(self.edges), out)
        return out

    def reduce(self, state: Ints, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Ints:
        out = np.zeros((len(lo), state.shape[1]), dtype=np.int64)
        bin_kernels.add_bin_rows(state, rows, lo, hi, out)
        return out

    def invert(self, whole: Ints, part: Ints) -> Ints:
        return whole - part

    def to_arrow(self, state: Ints) -> dict[str, pa.Array]:
        return {"counts": pa.FixedSizeListArray.from_arrays(pa.array(state.reshape(-1)), state.shape[1])}

    def from_arrow(self, columns: dict[str, pa.Array]) -> Ints:
        return arrays.read_numbers(columns["counts"].flatten()).reshape(-1, len(self.edges) - 1)
