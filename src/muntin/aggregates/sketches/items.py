"""What goes into a sketch: the distinct values of each slice, or its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import Accepted, is_text
from muntin.aggregates.arrays import Floats
from muntin.aggregates.base import Groups, Ints
from muntin.aggregates.partials import distinct_kernels, list_kernels
from muntin.aggregates.partials.codes import codes
from muntin.expressions import Expr

__all__ = [
    "HASHED",
    "Items",
    "distinct_items",
    "from_stored",
    "hash_integers",
    "hashed",
    "is_hashed",
    "numbers",
    "stored",
]

_TOP = np.int64(-(2**63))
_DAY = 86_400_000
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Items:
    """The items `offsets[j]:offsets[j + 1]` are those of group j."""

    offsets: Ints
    values: Any
    """A list of Python values, or an array of floats."""
    counts: list[int]
    """How often each occurs; empty for an array of floats."""


def is_hashed(type_: pa.DataType, whole: bool = False) -> bool:
    """Whether values of this type can be hashed; `whole` leaves out floats and decimals."""
    if t.is_floating(type_) or arrays.is_decimal(type_):
        return not whole
    return arrays.has_keys(type_) or is_text(type_)


HASHED = Accepted("numbers, times or strings", is_hashed)


def hashed(array: pa.Array) -> list[Any]:
    """The values as the integers, floats or strings that are hashed; there must be no nulls.

    Floats are doubles. Strings are hashed as UTF-8, and decimals as they are written. For all else
    see `hash_integers`.

    >>> import datetime as dt
    >>> hashed(pa.array([dt.date(1970, 1, 2)])), hashed(pa.array([True])), hashed(pa.array([7], pa.int8()))
    ([1], [1], [7])
    """
    if t.is_floating(array.type):
        return list(arrays.floats(array).tolist())
    if is_text(array.type):
        return list(array.to_pylist())
    if arrays.is_decimal(array.type):
        return list(array.cast(pa.string()).to_pylist())
    return list(hash_integers(array).tolist())


def hash_integers(array: pa.Array) -> Ints:
    """Integers, booleans and times as the 64-bit integers that are hashed; anything where null.

    Equal values have equal hashes: integers of any width, times of any unit. Dates count days, other times
    microseconds since the epoch, as in Spark and in Python; those between two microseconds count
    nanoseconds.

    >>> [hash_integers(pa.array([3000], pa.timestamp(unit))).tolist() for unit in ("ms", "us", "ns")]
    [[3000000], [3000], [3]]
    """
    numbers = _stored(array)
    if t.is_date64(array.type):
        return numbers // _DAY
    if t.is_temporal(array.type) and not t.is_date32(array.type):
        if array.type.unit == "ns":
            return np.where(numbers % 1000 == 0, numbers // 1000, numbers)
        return numbers * _MICROSECONDS[array.type.unit]
    return numbers


def stored(array: pa.Array) -> list[Any]:
    """Whole numbers, times or strings as integers or strings; there must be no nulls."""
    if is_text(array.type):
        return list(array.to_pylist())
    return list(_stored(array).tolist())


def from_stored(values: list[Any], type_: pa.DataType) -> pa.Array:
    """The values of which `stored` made these."""
    if is_text(type_):
        return pa.array(values, type_)
    numbers = np.array(values, dtype=np.int64)
    return arrays.from_keys(numbers ^ _TOP if t.is_uint64(type_) else numbers, None, type_)


def _stored(array: pa.Array) -> Ints:
    # Unsigned ones as the same 64 bits, as C++ does; Java has no other integers.
    return arrays.order_keys(array) ^ _TOP if t.is_uint64(array.type) else arrays.integers(array)


def distinct_items(g: Groups, expr: Expr, as_items: Callable[[pa.Array], list[Any]] = hashed) -> Items:
    """The distinct values of each group with their counts: one call for each instead of one per tuple."""
    offsets, index = list_kernels.arrange(g.ids(), g.valid(expr), g.n)
    values = g.array(expr).take(pa.array(index))
    ones = np.ones(len(index), dtype=np.int64)
    starts, places, counts = distinct_kernels.first_of_each(offsets, *codes((values,)), ones, None)
    return Items(starts, as_items(values.take(pa.array(places))), counts.tolist())


def numbers(g: Groups, expr: Expr) -> Items:
    """The numbers of each group as floats."""
    offsets, index = list_kernels.arrange(g.ids(), g.valid(expr), g.n)
    values: Floats = g.floats(expr)[index]
    return Items(offsets, values, [])
