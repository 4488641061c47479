"""histogram: how many values lie in each of several bins."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import arrays
from muntin.aggregates.accepted_types import NUMBERS, require
from muntin.aggregates.arguments import Rule, must, number, whole_number
from muntin.aggregates.arrays import Floats
from muntin.aggregates.base import ORIGIN, Aggregate, Bound, ColumnLike, Ints, Order, State
from muntin.aggregates.counts import Tally
from muntin.aggregates.joining import list_array
from muntin.aggregates.partials import bin_kernels
from muntin.aggregates.partials.bins import Bins
from muntin.aggregates.partials.runs import SortedRuns, unmerged
from muntin.call_errors import checked_call
from muntin.errors import QueryError, value_text

__all__ = ["EqualBins", "FixedBins", "histogram"]

MOST_BINS = 1_000_000
"""The most bins of a histogram: each takes 24 bytes, so a window takes 24 MB."""

_BIN = pa.struct([("start", pa.float64()), ("end", pa.float64()), ("count", pa.int64())])


_EDGES = Rule(
    "be two numbers or more, each above the one before",
    lambda edges: (
        isinstance(edges, (list, tuple))
        and all(number(edge, int, float) for edge in edges)
        and len(edges) > 1
        and all(a < b for a, b in pairwise(edges))
    ),
)


@dataclass(frozen=True, slots=True)
class FixedBins(Tally):
    """The bins between given edges, made by `histogram`. The partial: a count per bin."""

    column: ColumnLike
    edges: Sequence[float] = field(metadata=must(_EDGES))

    constructor = "histogram"
    kind = "distributive"

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        object.__setattr__(self, "edges", tuple(map(float, self.edges)))

    def identity(self) -> tuple[int, ...]:
        return (0,) * (len(self.edges) - 1)

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[int, ...]:
        counts = list(self.identity())
        if value is not None and self.edges[0] <= value < self.edges[-1]:
            counts[bisect.bisect_right(self.edges, value) - 1] = 1
        return tuple(counts)

    def lower(self, p: tuple[int, ...]) -> list[dict[str, Any]]:
        return _bins(self.edges, p)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        require(self, types, NUMBERS)
        bins = Bins(self.inputs[0], tuple(self.edges))

        def lower(states: tuple[State, ...]) -> pa.Array:
            counts = states[0]
            edges = np.broadcast_to(np.array(self.edges), (len(counts), len(self.edges)))
            return _column(edges, counts, np.ones(len(counts), dtype=np.bool_))

        return Bound(pa.list_(_BIN), (bins,), lower)


@dataclass(frozen=True, slots=True)
class EqualBins(Aggregate):
    """Equally wide bins, made by `histogram`. The partial: all values, sorted."""

    column: ColumnLike
    bins: int = field(metadata=whole_number("how many there are in every window", MOST_BINS))

    constructor = "histogram"
    kind = "holistic"
    empty = ()

    def lift(self, value: Any, at: Order = ORIGIN) -> tuple[float, ...]:
        return () if value is None or not math.isfinite(value) else (float(value),)

    def combine(self, p: tuple[float, ...], q: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(p + q))

    def lower(self, p: tuple[float, ...]) -> list[dict[str, Any]]:
        if not p:
            return []
        low, high = (p[0], p[-1]) if p[0] < p[-1] else (p[0] - 0.5, p[0] + 0.5)
        width = high / self.bins - low / self.bins
        edges = [low + k * width for k in range(self.bins)] + [high]
        places = [max(0, min(bisect.bisect_right(edges, value), self.bins) - 1) for value in p]
        return _bins(edges, [places.count(k) for k in range(self.bins)])

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        type_ = require(self, types, NUMBERS)
        runs = SortedRuns(self.inputs[0], as_float=arrays.is_decimal(type_))

        def lower(states: tuple[State, ...]) -> pa.Array:
            rows = unmerged(states[0]).narrowed()
            state = rows.runs
            values = runs.values(state.keys, type_)
            edges, counts = bin_kernels.equal_bins(
                state.offsets, values, state.upto, rows.rows, rows.lo, rows.hi, self.bins
            )
            return _column(edges, counts, ~np.isnan(edges[:, 0]))

        return Bound(pa.list_(_BIN), (runs,), lower)


@checked_call()
def histogram(
    column: ColumnLike,
    bins: int | None = None,
    edges: Sequence[float] | None = None,
    *,
    filter: ColumnLike | None = None,
) -> FixedBins | EqualBins:
    """How many values lie in each bin, as a list of structs `start`, `end`, `count`.

    NaN lies in no bin.

    Args:
        column: numbers.
        bins: how many; they are equally wide, from the smallest to the largest finite value of each
            window, and the last one holds its end too. That takes all values, which are shared with
            the quantiles of the column. Over no value the list is empty.
        edges: instead of `bins`, the edges, in order: a bin holds `start <= value < end`. Values
            outside are not counted; the outermost edges may be infinite. Over no value counts are 0.
        filter: a condition; tuples for which it is false or null do not count.

    >>> ages = histogram("age", edges=[0, 18, 65])
    >>> for one in ages.lower(ages.combine(ages.lift(17), ages.lift(18))):
    ...     print(one)
    {'start': 0.0, 'end': 18.0, 'count': 1}
    {'start': 18.0, 'end': 65.0, 'count': 1}
    """
    if (bins is None) == (edges is None):
        raise QueryError(
            f"histogram needs bins=10 or edges=[0, 10, 100], one of them: "
            f"got {value_text(bins)} and {value_text(edges)}"
        )
    if edges is not None:
        return FixedBins(column, edges, filter=filter)
    assert bins is not None
    return EqualBins(column, bins, filter=filter)


def _bins(edges: Sequence[float], counts: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"start": start, "end": end, "count": count}
        for start, end, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


def _column(edges: Floats, counts: Ints, there: Any) -> pa.Array:
    """One list of bins for each row of edges and counts; an empty one where not `there`."""
    start, end, count = (part[there].reshape(-1) for part in (edges[:, :-1], edges[:, 1:], counts))
    items = pa.StructArray.from_arrays([pa.array(part) for part in (start, end, count)], fields=list(_BIN))
    offsets = np.concatenate([[0], np.cumsum(there * np.int64(counts.shape[1]))])
    return list_array("histogram", offsets, items, pa.list_(_BIN))
