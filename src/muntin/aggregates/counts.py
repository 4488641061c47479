"""count: of tuples, or of the tuples that have a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, Partial
from muntin.aggregates.partials.counts import Rows, Values

__all__ = ["Count"]


@dataclass(frozen=True, slots=True)
class Count(Aggregate):
    """The number of tuples or, with a column, of its values that are not null; 0 over none.

    `count("*")` is `count()`, as in SQL.

    >>> count = Count("speed")
    >>> count.lower(count.combine(count.lift(2.0), count.lift(None)))
    1
    >>> Count().lower(Count().combine(Count().lift(), Count().lift()))
    2
    """

    column: ColumnLike | None = None

    constructor = "count"
    invertible = True
    kind = "distributive"

    def __post_init__(self) -> None:
        if isinstance(self.column, str) and self.column == "*":  # as in SQL: every tuple counts
            object.__setattr__(self, "column", None)
        Aggregate.__post_init__(self)

    def identity(self) -> int:
        return 0

    def lift(self, *values: Any, at: Order = ORIGIN) -> int:
        return 0 if any(value is None for value in values) else 1

    def combine(self, p: int, q: int) -> int:
        return p + q

    def lower(self, p: int) -> int:
        return p

    def invert(self, whole: int, part: int) -> int:
        return whole - part

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        partial: Partial = Values(self.inputs[0]) if self.inputs else Rows()
        return Bound(pa.int64(), (partial,), lambda states: pa.array(states[0]))
