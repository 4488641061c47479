"""bit_and, bit_or and bit_xor of integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, joined, refuse
from muntin.aggregates.partials.bits import BitFold, Operation
from muntin.aggregates.partials.counts import Values

__all__ = ["BitAnd", "BitOr", "BitXor"]

_SCALAR: dict[Operation, Callable[[int, int], int]] = {
    "and": operator.and_,
    "or": operator.or_,
}


@dataclass(frozen=True, slots=True)
class _Bits(Aggregate):
    column: ColumnLike

    kind = "distributive"
    operation: ClassVar[Operation] = "and"

    def lift(self, value: Any, at: Order = ORIGIN) -> Any:
        return None if value is None else int(value)

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, _SCALAR[self.operation])

    def lower(self, p: Any) -> int | None:
        bits: int | None = p
        return bits

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, arrays.plain_type(types[0])
        if not t.is_integer(type_):
            raise refuse(self, expr, types[0], "integers")
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

    constructor = "bit_and"


@dataclass(frozen=True, slots=True)
class BitOr(_Bits):
    """The bits that any value has; null over none.

    >>> seen = BitOr("flags")
    >>> seen.lower(seen.combine(seen.lift(0b1100), seen.lift(0b0110)))
    14
    """

    constructor = "bit_or"
    operation = "or"


@dataclass(frozen=True, slots=True)
class BitXor(_Bits):
    """The bits that an odd number of values has; null over none.

    >>> parity = BitXor("flags")
    >>> parity.lower(parity.combine(parity.lift(0b1100), parity.lift(0b0110)))
    10
    """

    constructor = "bit_xor"
    operation = "xor"
    invertible = True

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, int] | None:
        """(count, bits): the count distinguishes an inverted 0 from no value."""
        return None if value is None else (1, int(value))

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, lambda p, q: (p[0] + q[0], p[1] ^ q[1]))

    def lower(self, p: tuple[int, int] | None) -> int | None:
        return None if p is None else p[1]

    def invert(self, whole: Any, part: Any) -> Any:
        if part is None:
            return whole
        return (whole[0] - part[0], whole[1] ^ part[1]) if whole[0] > part[0] else None
