"""m4: what a line chart of a column needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State, joined
from muntin.aggregates.choices import First, Last
from muntin.aggregates.extremes import Max, Min, require_order

__all__ = ["M4"]

_FIELDS = ("min", "max", "first", "last")


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

    constructor = "m4"

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[Any, ...] | None:
        return None if value is None else tuple(part.lift(value, at=at) for part in self._parts())

    def combine(self, p: Any, q: Any) -> Any:
        return joined(
            p, q, lambda p, q: tuple(part.combine(*pq) for part, *pq in zip(self._parts(), p, q, strict=True))
        )

    def lower(self, p: tuple[Any, ...] | None) -> dict[str, Any] | None:
        if p is None:
            return None
        return {name: part.lower(x) for name, part, x in zip(_FIELDS, self._parts(), p, strict=True)}

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        require_order(self, 0, types)
        bound = [part.bind(types) for part in self._parts()]
        partials = tuple(dict.fromkeys(partial for b in bound for partial in b.partials))
        type_ = pa.struct([(name, b.type) for name, b in zip(_FIELDS, bound, strict=True)])

        def lower(states: tuple[State, ...]) -> pa.Array:
            by_partial = dict(zip(partials, states, strict=True))
            columns = [b.lower(tuple(by_partial[partial] for partial in b.partials)) for b in bound]
            return pa.StructArray.from_arrays(columns, fields=list(type_), mask=columns[0].is_null())

        return Bound(type_, partials, lower)

    def _parts(self) -> tuple[Aggregate, ...]:
        (column,) = self.inputs
        ends = First(column, ignore_nulls=True), Last(column, ignore_nulls=True)
        return Min(column), Max(column), *ends
