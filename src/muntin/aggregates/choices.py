"""first, last, arg_min, arg_max and m4: the values of single tuples of the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import ORDERED, require
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State, joined
from muntin.aggregates.extremes import Max, Min, rank
from muntin.aggregates.partials.selection import Choice

__all__ = ["M4", "ArgMax", "ArgMin", "First", "Last"]


@dataclass(frozen=True, slots=True)
class _End(Aggregate):
    column: ColumnLike
    ignore_nulls: bool = False

    latest = False

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Order, Any] | None:
        return None if value is None and self.ignore_nulls else (at, value)

    def combine(self, p: Any, q: Any) -> Any:
        # On equal places, which one stream never has, the order of the arguments decides.
        return joined(p, q, lambda p, q: q if (q[0] >= p[0] if self.latest else q[0] < p[0]) else p)

    def lower(self, p: tuple[Order, Any] | None) -> Any:
        return None if p is None else p[1]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        choice = Choice(self.inputs[0], latest=self.latest, skip_nulls=self.ignore_nulls)
        return Bound(arrays.plain_type(types[0]), (choice,), lambda s: s[0].payload)


@dataclass(frozen=True, slots=True)
class First(_End):
    """The value of the first tuple in event-time order, whatever the order of arrival.

    A null is a value, unless `ignore_nulls` is set.

    >>> first = First("price")
    >>> first.lower(first.combine(first.lift(7, at=(20, 0)), first.lift(5, at=(10, 1))))
    5
    """


@dataclass(frozen=True, slots=True)
class Last(_End):
    """The value of the last tuple in event-time order, whatever the order of arrival.

    A null is a value, unless `ignore_nulls` is set.

    >>> last = Last("price")
    >>> last.lower(last.combine(last.lift(7, at=(20, 0)), last.lift(5, at=(10, 1))))
    7
    """

    latest = True


@dataclass(frozen=True, slots=True)
class _Arg(Aggregate):
    column: ColumnLike
    by: ColumnLike

    column_fields: ClassVar[tuple[str, ...]] = ("column", "by")
    largest = False

    def lift(self, value: Any, by: Any, at: Order = ORIGIN) -> tuple[Any, Order, Any] | None:
        return None if by is None else (by, at, value)

    def combine(self, p: Any, q: Any) -> Any:
        return joined(p, q, self._choose)

    def _choose(self, p: Any, q: Any) -> Any:
        p_rank, q_rank = rank(p[0]), rank(q[0])
        if p_rank == q_rank:
            return q if q[1] < p[1] else p
        return q if (q_rank > p_rank) == self.largest else p

    def lower(self, p: tuple[Any, Order, Any] | None) -> Any:
        return None if p is None else p[2]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        require(self, types, ORDERED, which=1)
        choice = Choice(self.inputs[0], self.inputs[1], largest=self.largest)
        return Bound(arrays.plain_type(types[0]), (choice,), lambda s: s[0].payload)


@dataclass(frozen=True, slots=True)
class ArgMin(_Arg):
    """The value of the tuple where `by` is smallest; of several, the first in event-time order.

    >>> cheapest = ArgMin("shop", by="price")
    >>> cheapest.lower(cheapest.combine(cheapest.lift("a", 3), cheapest.lift("b", 2)))
    'b'
    """


@dataclass(frozen=True, slots=True)
class ArgMax(_Arg):
    """The value of the tuple where `by` is largest; of several, the first in event-time order.

    >>> top = ArgMax("customer", by="amount")
    >>> top.lower(top.combine(top.lift("ann", 3, at=(9, 0)), top.lift("bob", 3, at=(8, 1))))
    'bob'
    """

    largest = True


_M4_FIELDS = ("min", "max", "first", "last")


@dataclass(frozen=True, slots=True)
class M4(Aggregate):
    """The smallest, largest, first and last value as a struct; null over none. Nulls are skipped.

    Drawn per pixel column, these four give the same line as all values. The four are shared with
    the aggregates of their names.

    >>> m4 = M4("price")
    >>> m4.lower(m4.combine(m4.lift(7, at=(20, 0)), m4.lift(5, at=(10, 1))))
    {'min': 5, 'max': 7, 'first': 5, 'last': 7}
    """

    column: ColumnLike

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Any, ...] | None:
        return None if value is None else tuple(part.lift(value, at=at) for part in self._parts())

    def combine(self, p: Any, q: Any) -> Any:
        return joined(
            p, q, lambda p, q: tuple(part.combine(*pq) for part, *pq in zip(self._parts(), p, q, strict=True))
        )

    def lower(self, p: tuple[Any, ...] | None) -> dict[str, Any] | None:
        if p is None:
            return None
        return {name: part.lower(x) for name, part, x in zip(_M4_FIELDS, self._parts(), p, strict=True)}

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        require(self, types, ORDERED)
        bound = [part.bind(types) for part in self._parts()]
        partials = tuple(dict.fromkeys(partial for b in bound for partial in b.partials))
        type_ = pa.struct([(name, b.type) for name, b in zip(_M4_FIELDS, bound, strict=True)])

        def lower(states: tuple[State, ...]) -> pa.Array:
            by_partial = dict(zip(partials, states, strict=True))
            columns = [b.lower(tuple(by_partial[partial] for partial in b.partials)) for b in bound]
            return pa.StructArray.from_arrays(columns, fields=list(type_), mask=columns[0].is_null())

        return Bound(type_, partials, lower)

    def _parts(self) -> tuple[Aggregate, ...]:
        (column,) = self.inputs
        ends = First(column, ignore_nulls=True), Last(column, ignore_nulls=True)
        return Min(column), Max(column), *ends
