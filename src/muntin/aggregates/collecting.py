"""collect: all values, as a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State
from muntin.aggregates.partials.lists import Collected
from muntin.errors import DataError

__all__ = ["Collect"]


@dataclass(frozen=True, slots=True)
class Collect(Aggregate):
    """The values that are not null, in event-time order; the empty list over none.

    >>> collect = Collect("item")
    >>> collect.lower(collect.combine(collect.lift("tea", at=(9, 0)), collect.lift("cup", at=(8, 1))))
    ['cup', 'tea']
    """

    column: ColumnLike

    constructor = "collect"
    kind = "holistic"

    def identity(self) -> tuple[Any, ...]:
        return ()

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Any, ...]:
        return () if value is None else ((at, value),)

    def combine(self, p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted(p + q, key=lambda item: item[0]))

    def lower(self, p: tuple[Any, ...]) -> list[Any]:
        return [value for _, value in p]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        type_ = pa.list_(arrays.plain_type(types[0]))
        return Bound(type_, (Collected(self.inputs[0]),), lambda states: _lists(states, type_))


def _lists(states: tuple[State, ...], type_: pa.DataType) -> pa.Array:
    items = states[0]
    if len(items.values) >= 2**31:
        raise DataError(
            f"collect found {len(items.values)} values at once; a list array holds less than 2**31"
        )
    offsets = pa.array(items.offsets.astype(np.int32))
    return pa.ListArray.from_arrays(offsets, items.values, type=type_)
