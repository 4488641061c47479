"""Exact sums of integers, durations and decimals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.arrays import Bools, Floats
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import limb_kernels
from muntin.aggregates.partials.base import Rows, States
from muntin.aggregates.partials.columns import ScalarPartial
from muntin.aggregates.partials.step_codes import INTEGER_SUM as INTEGER_SUM_CODE
from muntin.aggregates.partials.step_codes import NONE
from muntin.errors import DataError, PlacedError
from muntin.expressions import Expr
from muntin.scalars import INTEGER_SUM, WIDE_SUM, Scalars

__all__ = ["ExactSum", "exact_sum"]

_LIMB = 2.0**32
_INT_LIMBS, _WIDE_LIMBS = 2, 4
_TOP = np.int64(-(2**63))


class SumError(DataError, PlacedError):
    """A sum that exceeds its type."""


@dataclass(frozen=True, slots=True)
class ExactSum(ScalarPartial):
    """The sum of integers, or of the unscaled integers of decimals; intermediate sums never overflow.

    Only results are tested for overflow: whether `2**63 - 1 + 1 - 1` fits must not depend on the order
    in which slices or tree nodes add it. State: limbs of 32 bits, the last one signed. Two limbs have
    95 bits; four, for decimals of more than 18 digits and uint64, have 159.
    """

    expr: Expr
    width: int = _INT_LIMBS

    @property
    def scalars(self) -> Scalars:
        return INTEGER_SUM if self.width == _INT_LIMBS else WIDE_SUM

    @property
    def step_code(self) -> int:
        return INTEGER_SUM_CODE if self.width == _INT_LIMBS else NONE

    @property
    def step_input(self) -> tuple[Expr, Callable[[pa.Array], Ints]]:
        return self.expr, lambda column: arrays.integers(arrays.plain(column))

    @property
    def invertible(self) -> bool:
        return True

    def lift(self, g: Groups, needs: States) -> Ints:
        wide = self.width == _WIDE_LIMBS
        values = arrays.words(g.array(self.expr)) if wide else g.integers(self.expr)
        out = self.lifted(g, values, g.valid(self.expr))
        limb_kernels.carry(out)
        return out

    def reduce(self, state: Ints, rows: Rows, lo: Ints, hi: Ints, before: States, after: States) -> Ints:
        out = self.zeros(len(lo))
        if not limb_kernels.add_limb_rows(state, rows, lo, hi, out):
            raise self._overflow(f"{32 * self.width + 30} bits")
        return out

    def invert(self, whole: Ints, part: Ints) -> Ints:
        out = whole - part
        limb_kernels.carry(out)
        return out

    def running(self, state: Ints) -> Ints:
        out = np.cumsum(state, axis=0)  # limbs of 32 bits: sums of 2**31 rows do not overflow
        limb_kernels.carry(out)
        return out

    def floats(self, state: Ints) -> Floats:
        """The sums as floats."""
        total = state[:, -1].astype(np.float64)
        for k in range(self.width - 2, -1, -1):
            total = total * _LIMB + state[:, k]
        return total

    def means(self, state: Ints, count: Ints) -> Floats:
        """The means; 0 where there is no value."""
        return self.floats(state) / np.maximum(count, 1)

    def split_means(self, state: Ints, count: Ints) -> tuple[Ints, Floats]:
        """The means of integers as the order key of their floor, and the fraction above it."""
        base, rest = np.empty(len(count), dtype=np.int64), np.empty(len(count))
        limb_kernels.split_means(state, count, base, rest)
        return (base ^ _TOP if self.width == _WIDE_LIMBS else base), rest

    def rounded_means(self, state: Ints, count: Ints) -> Ints:
        """The means as integers, rounded half away from zero; 0 where there is no value."""
        pairs = np.zeros((len(state), 2), dtype=np.int64)
        limb_kernels.divide_limb_rows(state, count, 1, pairs)
        return np.ascontiguousarray(pairs[:, 0])

    def integers(self, state: Ints) -> Ints:
        """The sums as int64; a DataError where one does not fit."""
        out = np.empty(len(state), dtype=np.int64)
        wrong = limb_kernels.narrow_limb_rows(state, out)
        if wrong >= 0:
            overflow = self._overflow("64 bits")
            overflow.row = wrong
            raise overflow
        return out

    def decimals(self, state: Ints, valid: Bools, type_: pa.DataType) -> pa.Array:
        """The sums as decimals; a DataError where one has too many digits."""
        return self.quotients(state, valid.astype(np.int64), 1, type_)

    def quotients(self, state: Ints, counts: Ints, factor: int, type_: pa.DataType) -> pa.Array:
        """sum * factor / count as decimals, rounded half up; null where the count is 0."""
        decimals = _divided(state, counts, factor, type_)
        if decimals is None:
            overflow = self._overflow(str(type_))
            rows = range(len(state))
            some = (slice(row, row + 1) for row in rows)
            unfit = (_divided(state[row], counts[row], factor, type_) is None for row in some)
            overflow.row = next((row for row, wrong in zip(rows, unfit, strict=True) if wrong), None)
            raise overflow
        return decimals

    def _overflow(self, room: str) -> SumError:
        error = SumError(f'a sum over "{self.expr}" overflows: it does not fit into {room}')
        error.cure = 'cast the column to a decimal or a float, or choose on_error="skip", which gives null'
        return error


def _divided(state: Ints, counts: Ints, factor: int, type_: pa.DataType) -> pa.Array | None:
    """As `quotients`; None where a quotient has too many digits."""
    pairs = np.zeros((len(state), 2), dtype=np.int64)
    fits = limb_kernels.divide_limb_rows(state, counts, factor, pairs)
    decimals = arrays.from_decimal_words(pairs, counts > 0, type_)
    try:
        decimals.validate(full=True)  # the only function of Arrow that counts the digits
    except pa.ArrowInvalid:
        fits = False
    return decimals if fits else None


def exact_sum(expr: Expr, type_: pa.DataType) -> ExactSum:
    """The exact sum over a column of integers, durations or decimals."""
    narrow = arrays.has_keys(type_) and not t.is_uint64(type_)
    return ExactSum(expr, _INT_LIMBS if narrow else _WIDE_LIMBS)
