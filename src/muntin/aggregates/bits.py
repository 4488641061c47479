"""bit_and, bit_or and bit_xor of integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import INTEGERS, require
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, joined
from muntin.aggregates.partials.bits import BitFold, Operation
from muntin.aggregates.partials.counts import Values

__all__ = ["BitAnd", "BitOr", "BitXor"]

_SCALAR: dict[Operation, Callable[[int, int], int]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


@dataclass(frozen=True, slots=True)
class _Bits(Aggregate):
    """The scalar partial is (count, bits): the count distinguishes an inverted 0 from no value."""

    column: ColumnLike

    kind = "distributive"
    operation: ClassVar[Operation] = "and"

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, int] | None:
        return None if value is None else (1, int(value))

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, lambda p, q: (p[0] + q[0], _SCALAR[self.operation](p[1], q[1])))

    def lower(self, p: tuple[int, int] | None) -> int | None:
        return None if p is None else p[1]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, require(self, types, INTEGERS)
        return Bound(
            type_,
            (Values(expr), BitFold(expr, self.operation)),
            lambda s: arrays.from_fixed(s[1].astype(f"i{type_.bit_width // 8}"), s[0] > 0, type_),
        )


@dataclass(frozen=True, slots=True)
class BitAnd(_Bits):
    """The bits that all values have; null over none.

    >>> common = BitAnd("flags")
    >>> common.lower(common.combine(common.lift(0b1100), common.lift(0b0110)))
    4
    """


@dataclass(frozen=True, slots=True)
class BitOr(_Bits):
    """The bits that any value has; null over none.

    >>> seen = BitOr("flags")
    >>> seen.lower(seen.combine(seen.lift(0b1100), seen.lift(0b0110)))
    14
    """

    operation = "or"


@dataclass(frozen=True, slots=True)
class BitXor(_Bits):
    """The bits that an odd number of values has; null over none.

    >>> parity = BitXor("flags")
    >>> parity.lower(parity.combine(parity.lift(0b1100), parity.lift(0b0110)))
    10
    """

    operation = "xor"
    invertible = True

    def invert(self, whole: Any, part: Any) -> Any:
        if part is None:
            return whole
        return (whole[0] - part[0], whole[1] ^ part[1]) if whole[0] > part[0] else None
