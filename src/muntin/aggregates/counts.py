"""count and count_if: of tuples, of values, of tuples that satisfy a condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, Partial, refuse
from muntin.aggregates.partials.counts import Rows, Trues, Values

__all__ = ["Count", "CountIf", "require_condition"]


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


@dataclass(frozen=True, slots=True)
class CountIf(Aggregate):
    """The number of tuples for which a condition is true, neither false nor null; 0 over none.

    >>> cheap = CountIf("price < 10")
    >>> cheap.lower(cheap.combine(cheap.lift(True), cheap.lift(None)))
    1
    """

    predicate: ColumnLike

    constructor = "count_if"
    column_fields: ClassVar[tuple[str, ...]] = ("predicate",)
    predicate_fields: ClassVar[tuple[str, ...]] = ("predicate", "filter")
    invertible = True
    kind = "distributive"

    def identity(self) -> int:
        return 0

    def lift(self, value: Any, at: Order = ORIGIN) -> int:
        return 1 if value else 0

    def combine(self, p: int, q: int) -> int:
        return p + q

    def lower(self, p: int) -> int:
        return p

    def invert(self, whole: int, part: int) -> int:
        return whole - part

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        require_condition(self, types[0])
        return Bound(pa.int64(), (Trues(self.inputs[0]),), lambda states: pa.array(states[0]))


def require_condition(aggregate: Aggregate, type_: pa.DataType) -> None:
    """A DataError if the input is not a condition. A column of nothing but nulls is never true."""
    if not (t.is_boolean(type_) or t.is_null(type_)):
        raise refuse(aggregate, aggregate.inputs[0], type_, "a condition")
