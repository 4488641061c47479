"""collect_set, count_distinct and mode: the distinct values of a window, their number, the most frequent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import COMPARABLE, ORDERED, require
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Order, State
from muntin.aggregates.collecting import Collection
from muntin.aggregates.counts import Count
from muntin.aggregates.extremes import rank
from muntin.aggregates.joining import list_array
from muntin.aggregates.partials import distinct_kernels
from muntin.aggregates.partials.distinct import Distinct
from muntin.aggregates.partials.extrema import extreme_per_group
from muntin.aggregates.partials.runs import SortedRuns, unmerged
from muntin.call_errors import checked_call
from muntin.expressions import Expr, as_expr

__all__ = ["CollectSet", "CountDistinct", "Mode", "count_distinct"]

Counts: TypeAlias = dict[Any, tuple[int, Any]]
"""By the rank of a value: how often it occurs, and the value."""


@dataclass(frozen=True, slots=True)
class CollectSet(Collection):
    """The distinct values that are not null, by their first occurrence in event-time order.

    The empty list over none.

    >>> pages = CollectSet("page")
    >>> both = pages.combine(pages.lift("cart", at=(9, 0)), pages.lift("home", at=(8, 1)))
    >>> pages.lower(pages.combine(both, pages.lift("cart", at=(7, 2))))
    ['cart', 'home']
    """

    invertible, invert = False, Aggregate.invert

    def combine(self, p: tuple[Any, ...], q: tuple[Any, ...]) -> tuple[Any, ...]:
        first: dict[Any, Any] = {}
        for item in sorted(p + q, key=lambda item: item[0]):
            first.setdefault(rank(item[1]), item)
        return tuple(first.values())

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        type_ = pa.list_(require(self, types, COMPARABLE))

        def lower(states: tuple[State, ...]) -> pa.Array:
            return list_array("collect_set", states[0].offsets, states[0].values[0], type_)

        return Bound(type_, (Distinct(self.inputs),), lower)


@dataclass(frozen=True, slots=True)
class CountDistinct(Aggregate):
    """The number of distinct combinations of values; made by `count_distinct`."""

    column: tuple[Expr, ...]

    kind = "holistic"
    column_fields: ClassVar[tuple[str, ...]] = ()
    column_list = "column"
    empty = frozenset()

    def lift(self, *values: Any, at: Order = ORIGIN) -> frozenset[Any]:
        return frozenset() if None in values else frozenset([tuple(map(rank, values))])

    def combine(self, p: frozenset[Any], q: frozenset[Any]) -> frozenset[Any]:
        return p | q

    def lower(self, p: frozenset[Any]) -> int:
        return len(p)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        plain = [require(self, types, COMPARABLE, which) for which in range(len(types))]
        if len(types) == 1 and arrays.has_keys(plain[0]):
            runs = SortedRuns(self.inputs[0])  # shared with the quantiles of the column
            return Bound(pa.int64(), (runs,), lambda s: pa.array(unmerged(s[0]).distinct()))
        return Bound(pa.int64(), (Distinct(self.inputs),), lambda s: pa.array(np.diff(s[0].offsets)))

    def parameters(self) -> dict[str, object]:
        single = len(self.column) == 1  # given like the column of `count`
        return Count(*self.column, filter=self.filter).parameters() if single else Aggregate.parameters(self)


@checked_call()
def count_distinct(
    column: ColumnLike | Sequence[ColumnLike], *columns: ColumnLike, filter: ColumnLike | None = None
) -> CountDistinct:
    """The number of distinct values or, with several columns, of distinct combinations; 0 over none.

    Exact. A tuple with a null in one of the columns does not count, as in SQL.

    >>> count = count_distinct("customer", "shop")
    >>> both = count.combine(count.lift("ann", 1), count.lift("ann", 2))
    >>> count.lower(count.combine(both, count.lift("ann", 2)))
    2
    """
    first = column if isinstance(column, (list, tuple)) else (column,)
    return CountDistinct(tuple(as_expr(one) for one in (*first, *columns)), filter=filter)


@dataclass(frozen=True, slots=True)
class Mode(Aggregate):
    """The value that occurs most often, of several the smallest; null over none.

    >>> mode = Mode("size")
    >>> both = mode.combine(mode.lift("M"), mode.lift("S"))
    >>> mode.lower(both), mode.lower(mode.combine(both, mode.lift("S")))
    ('M', 'S')
    """

    column: ColumnLike

    kind = "holistic"
    empty: ClassVar[Counts] = {}

    def lift(self, value: Any, at: Order = ORIGIN) -> Counts:
        return {} if value is None else {rank(value): (1, value)}

    def combine(self, p: Counts, q: Counts) -> Counts:
        counts = dict(p)
        for key, (count, value) in q.items():
            counts[key] = (counts.get(key, (0, None))[0] + count, value)
        return counts

    def lower(self, p: Counts) -> Any:
        if not p:
            return None
        most = max(count for count, _ in p.values())
        return p[min(key for key, (count, _) in p.items() if count == most)][1]

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        (expr,), type_ = self.inputs, require(self, types, ORDERED)
        if not arrays.has_keys(type_):
            return Bound(type_, (Distinct(self.inputs),), _mode_of_items)
        runs = SortedRuns(expr)
        return Bound(type_, (runs,), lambda s: arrays.from_keys(*unmerged(s[0]).most_frequent(), type_))


def _mode_of_items(states: tuple[State, ...]) -> pa.Array:
    (items,) = states
    sizes = np.diff(items.offsets)
    place = distinct_kernels.most_frequent(items.offsets, items.counts)
    row = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    most = items.counts == items.counts[place[row]]
    return extreme_per_group(items.values[0], np.where(most, row, -1), len(sizes), largest=False)
