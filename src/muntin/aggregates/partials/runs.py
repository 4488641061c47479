"""All values of a slice, sorted and run-length encoded: the partial of the exact quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import code_kernels, rank_kernels, run_kernels, tally_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.ranges import spread
from muntin.aggregates.partials.records import RaggedPartial, Record
from muntin.expressions import Expr

__all__ = ["Runs", "SortedRuns", "UnmergedRuns", "unmerged"]

_MOST = 2**53
"""The largest number of values in one row."""
_SMALL = 32
"""Rows of at most this number of keys are sorted in compiled code: for them, a call into NumPy costs more
than its vectorised sort saves."""


@dataclass(frozen=True, slots=True)
class Runs(Record):
    """Row j holds the distinct keys `offsets[j]:offsets[j + 1]` in order."""

    offsets: Ints
    keys: Ints
    upto: Ints
    """The number of values of the row that are at most as large as the key (cumulative counts)."""

    numbers = ("keys", "upto")

    def codes(self) -> tuple[Ints, int]:
        """Numbers from 0 that are equal where keys are equal, and the number of distinct keys."""
        return code_kernels.number_equal(self.keys)


@dataclass(frozen=True, slots=True)
class UnmergedRuns:
    """Row j consists of the rows `rows[lo[j]:hi[j]]` of `runs`, which are not merged."""

    runs: Runs
    rows: Ints | None
    lo: Ints
    hi: Ints

    def distinct(self) -> Ints:
        """The number of distinct keys of each row."""
        small = self.narrowed()
        runs = small.runs
        return tally_kernels.count_codes(runs.offsets, *runs.codes(), small.rows, small.lo, small.hi)

    def most_frequent(self) -> tuple[Ints, Bools]:
        """The most frequent key of each row (the smallest of several), and whether the row has a key."""
        small = self.narrowed()
        runs = small.runs
        codes, size = runs.codes()
        place = tally_kernels.most_frequent_codes(
            runs.offsets, codes, runs.keys, runs.upto, size, small.rows, small.lo, small.hi
        )
        there = place >= 0
        keys = np.zeros(len(place), dtype=np.int64)
        keys[there] = runs.keys[place[there]]
        return keys, there

    def narrowed(self) -> UnmergedRuns:
        """The same rows over a copy of the slices they read: windows may need few slices of a large table."""
        index, _ = spread(self.rows, self.lo, self.hi)
        sizes = np.diff(self.runs.offsets)
        if sizes[index].sum() >= len(self.runs.keys):
            return self
        ends = np.cumsum(np.maximum(self.hi - self.lo, 0))
        starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]]) if len(ends) else ends
        return UnmergedRuns(UnmergedRuns(self.runs, None, index, index + 1).merged(), None, starts, ends)

    def merged(self) -> Runs:
        """The runs of each row, merged."""
        runs = self.runs
        return Runs(*run_kernels.merge_rows(runs.offsets, runs.keys, runs.upto, self.rows, self.lo, self.hi))


@dataclass(frozen=True, slots=True)
class SortedRuns(RaggedPartial):
    """The distinct order keys of all values that are not null, with their counts.

    Slices are sorted once and merged when they combine [scotty §5.4.1]. The slices of a window are not
    merged: a few binary searches in each sorted slice locate the rank of a quantile.
    With `as_float`, values are converted to floats first (decimals, as in Spark's percentile).
    """

    expr: Expr
    as_float: bool = False

    record = Runs

    def lift(self, g: Groups, needs: States) -> Runs:
        keys = arrays.order_keys(pa.array(g.floats(self.expr))) if self.as_float else g.keys(self.expr)
        valid = g.valid(self.expr)
        if g.offsets is not None and valid is None:
            offsets = g.offsets - g.offsets[0]
            keys = keys[g.offsets[0] : g.offsets[-1]]
        else:
            offsets, keys = run_kernels.by_group(keys, g.ids(), valid, g.n)
        low, high = np.empty((2, g.n), dtype=np.int64)
        if run_kernels.is_dense(offsets, keys, low, high):
            return Runs(*run_kernels.count_dense(offsets, keys, low, high))
        keys = keys if keys.flags.writeable else keys.copy()
        run_kernels.sort_small(offsets, keys, _SMALL)
        for j in np.flatnonzero(np.diff(offsets) > _SMALL).tolist():
            keys[offsets[j] : offsets[j + 1]].sort()
        return Runs(*run_kernels.compress(offsets, keys))

    def reduce(self, state: Runs, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Runs:
        return UnmergedRuns(state, rows, lo, hi).merged()

    def window(
        self, state: Runs, rows: Rows, lo: Ints, hi: Ints, before: States, after: States
    ) -> UnmergedRuns:
        return UnmergedRuns(state, rows, lo, hi)

    def quantiles(
        self, state: Runs | UnmergedRuns, qs: tuple[float, ...], type_: pa.DataType
    ) -> tuple[Floats, Bools]:
        """The quantiles `qs` of each row by linear interpolation, and whether the row has a value."""
        rows = unmerged(state)
        runs = rows.runs
        below, above, between, sizes = rank_kernels.neighbours(
            runs.offsets, runs.keys, runs.upto, rows.rows, rows.lo, rows.hi, np.array(qs, np.float64)
        )
        low, high = self.values(below, type_), self.values(above, type_)
        with np.errstate(invalid="ignore"):
            mixed = (1.0 - between) * low + between * high
        # Interpolation between two equal infinities would give NaN.
        return np.where(below == above, low, mixed), sizes > 0

    def values(self, keys: Ints, type_: pa.DataType) -> Floats:
        """The values of these keys, as floats."""
        plain = pa.float64() if self.as_float else type_
        return arrays.floats(arrays.from_keys(keys.reshape(-1), None, plain)).reshape(keys.shape)

    def take(self, state: Runs, index: Ints) -> Runs:
        return UnmergedRuns(state, None, index, index + 1).merged()

    @property
    def ordered(self) -> bool:
        return False

    def sound(self, state: Runs) -> bool:
        ordered = (arrays.rows_in_order(state.offsets, c) for c in (state.keys, state.upto))
        return all(ordered) and bool(((state.upto > 0) & (state.upto <= _MOST)).all())


def unmerged(state: Runs | UnmergedRuns) -> UnmergedRuns:
    """Both states of `SortedRuns`, that of slices and that of windows, as the second one."""
    if isinstance(state, UnmergedRuns):
        return state
    place = np.arange(len(state.offsets), dtype=np.int64)
    return UnmergedRuns(state, None, place[:-1], place[1:])
