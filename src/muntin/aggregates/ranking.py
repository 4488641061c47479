"""nth and top_k: a few tuples of the window, in a defined order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import ORDERED, require
from muntin.aggregates.arguments import whole_number
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State
from muntin.aggregates.extremes import rank
from muntin.aggregates.joining import list_array
from muntin.aggregates.partials.best import Best

__all__ = ["Nth", "TopK"]


@dataclass(frozen=True, slots=True)
class Nth(Aggregate):
    """The value of the n-th newest tuple in event-time order; `n=1` is the last one.

    Null if there are fewer. A null is a value, unless `ignore_nulls` is set. The partial holds n
    tuples: the papers' ith-youngest.

    >>> second = Nth("price", 2)
    >>> second.lower(second.combine(second.lift(7, at=(20, 0)), second.lift(5, at=(10, 1))))
    5
    """

    column: ColumnLike
    n: int = field(metadata=whole_number("1 for the newest tuple"))
    ignore_nulls: bool = False

    empty = ()

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Any, ...]:
        return () if value is None and self.ignore_nulls else ((at, value),)

    def combine(self, p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted(p + q, key=lambda item: item[0], reverse=True)[: self.n])

    def lower(self, p: tuple[Any, ...]) -> Any:
        return p[self.n - 1][1] if len(p) == self.n else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        def lower(states: tuple[State, ...]) -> pa.Array:
            (items,) = states
            place = items.offsets[:-1] + self.n - 1
            return arrays.take_or_null(items.payload, np.where(place < items.offsets[1:], place, -1))

        newest = Best(self.inputs[0], self.n, skip_nulls=self.ignore_nulls)
        return Bound(arrays.plain_type(types[0]), (newest,), lower)


@dataclass(frozen=True, slots=True)
class TopK(Aggregate):
    """The k largest values as a list, the largest first; with `by`, the values where `by` is largest.

    Equal ones come in event-time order, and all of them count. The list is shorter where there are
    fewer, and empty over none. The partial holds k tuples.

    >>> top = TopK("customer", 2, by="amount")
    >>> both = top.combine(top.lift("ann", 3, at=(1, 0)), top.lift("bob", 5, at=(2, 1)))
    >>> top.lower(top.combine(both, top.lift("eve", 4, at=(3, 2))))
    ['bob', 'eve']
    """

    column: ColumnLike
    k: int = field(metadata=whole_number("the length of the list"))
    by: ColumnLike | None = None

    column_fields: ClassVar[tuple[str, ...]] = ("column", "by")
    empty = ()

    def lift(self, value: Any, *by: Any, at: Order = ORIGIN) -> tuple[Any, ...]:
        key = by[0] if by else value
        return () if key is None else ((key, at, value),)

    def combine(self, p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        in_order = sorted(p + q, key=lambda item: item[1])
        return tuple(sorted(in_order, key=lambda item: rank(item[0]), reverse=True)[: self.k])

    def lower(self, p: tuple[Any, ...]) -> list[Any]:
        return [value for _, _, value in p]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        require(self, types, ORDERED, which=len(types) - 1)
        type_ = pa.list_(arrays.plain_type(types[0]))
        best = Best(self.inputs[0], self.k, by=self.inputs[-1])
        return Bound(type_, (best,), lambda s: list_array("top_k", s[0].offsets, s[0].payload, type_))
