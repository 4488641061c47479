"""every and some: whether a condition holds for all tuples, for any."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Ints, Order
from muntin.aggregates.counts import require_condition
from muntin.aggregates.partials.counts import Trues, Values

__all__ = ["Every", "Some"]

Votes = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Vote(Aggregate):
    """The partial is (values, of these true): unlike a single bool it can be inverted."""

    predicate: ColumnLike

    column_fields: ClassVar[tuple[str, ...]] = ("predicate",)
    predicate_fields: ClassVar[tuple[str, ...]] = ("predicate", "filter")
    invertible = True

    def identity(self) -> Votes:
        return 0, 0

    def lift(self, value: Any, at: Order = ORIGIN) -> Votes:
        return self.identity() if value is None else (1, int(bool(value)))

    def combine(self, p: Votes, q: Votes) -> Votes:
        return p[0] + q[0], p[1] + q[1]

    def lower(self, p: Votes) -> bool | None:
        return bool(self.holds(*p)) if p[0] else None

    def invert(self, whole: Votes, part: Votes) -> Votes:
        return whole[0] - part[0], whole[1] - part[1]

    @abstractmethod
    def holds(self, values: Any, true: Any) -> Any:
        """The result, given how many values there are and how many of them are true."""

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        require_condition(self, types[0])
        (expr,) = self.inputs
        return Bound(pa.bool_(), (Values(expr), Trues(expr)), lambda s: self._lower_columns(*s))

    def _lower_columns(self, values: Ints, true: Ints) -> pa.Array:
        return pa.array(self.holds(values, true), mask=values == 0)


@dataclass(frozen=True, slots=True)
class Every(_Vote):
    """Whether a condition is true for all tuples; nulls are skipped, null over none.

    >>> every = Every("temperature < 100")
    >>> every.lower(every.combine(every.lift(True), every.lift(None)))
    True
    """

    constructor = "every"

    def holds(self, values: Any, true: Any) -> Any:
        return values == true


@dataclass(frozen=True, slots=True)
class Some(_Vote):
    """Whether a condition is true for at least one tuple; nulls are skipped, null over none.

    >>> some = Some("status == 'failed'")
    >>> some.lower(some.combine(some.lift(False), some.lift(True)))
    True
    """

    constructor = "some"

    def holds(self, values: Any, true: Any) -> Any:
        return true > 0
