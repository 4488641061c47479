"""Numeric partial aggregates declared on plain scalars: identity, lift, combine and their companions.

A declaration is all that differs between two partials of fixed width. `aggregates.partials.loop_kernels`
makes the loops over runs, scattered tuples and ranges of rows from it, and the stores compile their
algorithms around the same functions. A partial is one number, or a tuple of `width` numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

__all__ = [
    "ALL_BITS",
    "ANY_BITS",
    "COUNT",
    "EXTREME_COUNT",
    "INTEGER_SUM",
    "LARGEST",
    "LARGEST_INTEGER",
    "LIMB",
    "MASK",
    "ODD_BITS",
    "SMALLEST",
    "SMALLEST_INTEGER",
    "TRUE_COUNT",
    "WIDE_SUM",
    "Function",
    "Scalars",
    "add",
    "add_pairs",
    "same",
    "subtract",
    "subtract_pairs",
]

Function: TypeAlias = Callable[..., Any]

LIMB = 32
MASK = 0xFFFFFFFF
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1


def same(x: Any) -> Any:
    """A function that changes nothing."""
    return x


@dataclass(frozen=True, slots=True, eq=False)
class Scalars:
    """One partial aggregate: functions that both Numba and the interpreter run.

    `lift(*values, *context)` makes the partial of one tuple; the context is the row of other partials that
    this one depends on (the mean for a deviation). `rebase(q, *before, *after)` expresses a partial in the
    context of a range of rows, before `combine`. `lower(p)` gives whether there is a result, and the result;
    only declarations of users' functions have it.
    """

    identity: Any
    lift: Function
    combine: Function
    invert: Function | None = None
    rebase: Function = same
    lower: Function | None = None

    @property
    def width(self) -> int:
        """The number of columns of a partial."""
        return len(self.identity) if isinstance(self.identity, tuple) else 1


def one(x: Any) -> Any:
    """The count of one value."""
    return 1


def add(p: Any, q: Any) -> Any:
    """The sum of two numbers."""
    return p + q


def subtract(p: Any, q: Any) -> Any:
    """The difference of two numbers."""
    return p - q


def add_pairs(p: Any, q: Any) -> Any:
    """The sums of two pairs."""
    return p[0] + q[0], p[1] + q[1]


def subtract_pairs(p: Any, q: Any) -> Any:
    """The differences of two pairs."""
    return p[0] - q[0], p[1] - q[1]


def limbs(x: Any) -> Any:
    """An integer as its low 32 bits and the signed rest.

    The limbs of 2**31 integers can be added without a carry: no sum of integers ever wraps around.
    """
    return x & MASK, x >> LIMB


def wide_limbs(low: Any, high: Any) -> Any:
    """An integer of 128 bits, given as two words, as four limbs."""
    return low & MASK, (low >> LIMB) & MASK, high & MASK, high >> LIMB


def add_wide(p: Any, q: Any) -> Any:
    """The sum of two integers of four limbs."""
    return p[0] + q[0], p[1] + q[1], p[2] + q[2], p[3] + q[3]


def larger(p: Any, q: Any) -> Any:
    """The larger number; NaN is the largest one, as in Spark."""
    return p if p > q or p != p else q


def smaller(p: Any, q: Any) -> Any:
    """The smaller number."""
    return p if p <= q or q != q else q


def _equals(x: Any, extreme: Any) -> Any:
    return 1 if x == extreme else 0


def _if_extreme(q: Any, before: Any, after: Any) -> Any:
    return q if before == after else 0


def _and(p: Any, q: Any) -> Any:
    return p & q


def _or(p: Any, q: Any) -> Any:
    return p | q


def _xor(p: Any, q: Any) -> Any:
    return p ^ q


COUNT = Scalars(0, one, add, subtract)
TRUE_COUNT = replace(COUNT, lift=same)
"""The number of flags that are true."""
INTEGER_SUM = Scalars((0, 0), limbs, add_pairs, subtract_pairs)
WIDE_SUM = Scalars((0, 0, 0, 0), wide_limbs, add_wide)
SMALLEST = Scalars(LARGEST_INTEGER, same, smaller)
LARGEST = Scalars(SMALLEST_INTEGER, same, larger)
EXTREME_COUNT = Scalars(0, _equals, add, rebase=_if_extreme)
"""How often the extreme occurs, which is the context."""
ALL_BITS = Scalars(-1, same, _and)
ANY_BITS = Scalars(0, same, _or)
ODD_BITS = Scalars(0, same, _xor, _xor)
