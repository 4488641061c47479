"""count, count_if, every and some: tuples, values and conditions, counted."""

from __future__ import annotations

import operator
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.accepted_types import unaccepted
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, Partial
from muntin.aggregates.partials.counts import Rows, Trues, Values
from muntin.aggregates.partials.step_codes import WORD

__all__ = ["Count", "CountIf", "Every", "Some", "Tally"]


@dataclass(frozen=True, slots=True)
class Tally(Aggregate):
    """Base of aggregates whose scalar partial is a tuple of numbers that add up."""

    invertible = True
    empty: ClassVar[tuple[Any, ...]] = (0,)

    def combine(self, p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(operator.add, p, q))

    def invert(self, whole: tuple[Any, ...], part: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(operator.sub, whole, part))


@dataclass(frozen=True, slots=True)
class Count(Tally):
    """The number of tuples or, with a column, of its values that are not null; 0 over none.

    `count("*")` is `count()`, as in SQL.

    >>> count = Count("speed")
    >>> count.lower(count.combine(count.lift(2.0), count.lift(None)))
    1
    >>> Count().lower(Count().combine(Count().lift(), Count().lift()))
    2
    """

    column: ColumnLike | None = None

    kind = "distributive"

    def __post_init__(self) -> None:
        if isinstance(self.column, str) and self.column == "*":  # as in SQL: every tuple counts
            object.__setattr__(self, "column", None)
        Aggregate.__post_init__(self)

    def lift(self, *values: Any, at: Order = ORIGIN) -> tuple[int]:
        return (0 if None in values else 1,)

    def lower(self, p: tuple[int]) -> int:
        return p[0]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        partial: Partial = Values(self.inputs[0]) if self.inputs else Rows()
        return Bound(
            pa.int64(), (partial,), lambda states: pa.array(states[0]), only_overflows=True, value_code=WORD
        )


@dataclass(frozen=True, slots=True)
class _OfCondition(Tally):
    """The scalar partial is (values, of these true): unlike a single bool it can be inverted."""

    predicate: ColumnLike

    column_fields: ClassVar[tuple[str, ...]] = ("predicate",)
    predicate_fields: ClassVar[tuple[str, ...]] = ("predicate", "filter")
    empty = (0, 0)

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, int]:
        return (0, 0) if value is None else (1, int(bool(value)))

    def _condition(self, types: tuple[pa.DataType, ...]) -> tuple[Values, Trues]:
        """The partials of the condition; it may be a column of nothing but nulls, which is never true."""
        (expr,), (type_,) = self.inputs, types
        if not (t.is_boolean(type_) or t.is_null(type_)):
            raise unaccepted(self, "a condition", expr, type_)
        return Values(expr), Trues(expr)


@dataclass(frozen=True, slots=True)
class CountIf(_OfCondition):
    """The number of tuples for which a condition is true, neither false nor null; 0 over none.

    >>> cheap = CountIf("price < 10")
    >>> cheap.lower(cheap.combine(cheap.lift(True), cheap.lift(None)))
    1
    """

    kind = "distributive"

    def lower(self, p: tuple[int, int]) -> int:
        return p[1]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        return Bound(pa.int64(), self._condition(types)[1:], lambda states: pa.array(states[0]))


@dataclass(frozen=True, slots=True)
class _Vote(_OfCondition):
    @staticmethod
    @abstractmethod
    def holds(values: Any, true: Any) -> Any:
        """The result, given the number of values and the number of true ones."""

    def lower(self, p: tuple[int, int]) -> bool | None:
        return bool(self.holds(*p)) if p[0] else None

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        values_and_true = self._condition(types)
        return Bound(pa.bool_(), values_and_true, lambda s: pa.array(self.holds(*s), mask=s[0] == 0))


@dataclass(frozen=True, slots=True)
class Every(_Vote):
    """Whether a condition is true for all tuples; nulls are skipped, null over none.

    >>> every = Every("temperature < 100")
    >>> every.lower(every.combine(every.lift(True), every.lift(None)))
    True
    """

    @staticmethod
    def holds(values: Any, true: Any) -> Any:
        return values == true


@dataclass(frozen=True, slots=True)
class Some(_Vote):
    """Whether a condition is true for at least one tuple; nulls are skipped, null over none.

    >>> some = Some("status == 'failed'")
    >>> some.lower(some.combine(some.lift(False), some.lift(True)))
    True
    """

    @staticmethod
    def holds(values: Any, true: Any) -> Any:
        return true > 0
