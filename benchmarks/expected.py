"""What the benchmark `core` must find: the instances of every window and their sum, recomputed with NumPy.

Nothing here uses the engine. The tuples are sorted by key, time and arrival, so a window is a range of
them; its edges are found by binary search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isclose
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.streams import Arrivals, Column
from muntin.dsl import Query
from muntin.results import Results
from muntin.windows.base import Window
from muntin.windows.count import Count
from muntin.windows.periodic import Periodic
from muntin.windows.session import Session

__all__ = ["Expected", "Ranges", "Sums", "expected", "recomputed"]

Sums = dict[str, tuple[float, ...]]
"""For each window: how many instances, and for each aggregate the sum over all of its results."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Windows as ranges of the sorted tuples."""

    begin: Column
    end: Column


@dataclass(frozen=True, slots=True)
class Expected:
    """The sorted values, the instances of each window over them, and what they sum up to."""

    value: Column
    ranges: dict[str, Ranges]
    sums: Sums

    def bounds(self) -> Column:
        """Where the slices begin that all windows are made of."""
        edges = np.concatenate([part for r in self.ranges.values() for part in (r.begin, r.end)])
        edges = np.unique(edges)
        return edges[edges < len(self.value)]

    def check(self, name: str, found: Sums) -> None:
        """An AssertionError if windows are missing or a value is wrong."""
        for query, wanted in self.sums.items():
            got = found.get(query, (0.0,) * len(wanted))
            if not all(isclose(g, w, rel_tol=1e-9) for g, w in zip(got, wanted, strict=True)):
                raise AssertionError(f"{name}: windows and sums of {query} are {got}, not {wanted}")
        if unknown := set(found) - set(self.sums):
            raise AssertionError(f"{name}: there are results of {unknown}")


def expected(query: Query, arrivals: Arrivals) -> Expected:
    """Of a query over a stream."""
    # Times of one key after those of another, with more room between them than any window needs.
    time = arrivals.time - arrivals.time.min()
    reach = max(_reach(window) for _, window in query.windows)
    room = int(time.max()) + 2 * reach + 2
    line = time if arrivals.key is None else time + arrivals.key * room
    order = np.argsort(line, kind="stable")
    line, value = line[order], arrivals.value[order]
    keys = 1 if arrivals.key is None else int(arrivals.key.max()) + 1
    origins = np.arange(keys) * room
    first = int(arrivals.time.min())
    ranges = {name: _ranges(window, line, origins, first, int(time.max())) for name, window in query.windows}
    sums: Sums = {}
    for name, wanted in ranges.items():
        results = [_RESULTS[one.constructor](value, wanted) for _, one in query.aggregates]
        sums[name] = (float(len(wanted.begin)), *results)
    return Expected(value, ranges, sums)


def recomputed(results: Iterable[pa.Table | Results], aggregates: tuple[str, ...]) -> Sums:
    """The same numbers from results."""
    sums: Sums = {}
    for part in results:
        if part.num_rows:
            table = pa.table(part)
            asked = [("window_name", "count"), *((name, "sum") for name in aggregates)]
            grouped = table.group_by("window_name").aggregate(asked)
            columns = [grouped[f"{name}_{how}"].to_pylist() for name, how in asked]
            for name, *numbers in zip(grouped["window_name"].to_pylist(), *columns, strict=True):
                before = sums.get(name, (0.0,) * len(numbers))
                sums[name] = tuple(b + n for b, n in zip(before, numbers, strict=True))
    return sums


def _reach(window: Window) -> int:
    if isinstance(window, Periodic):
        return window.length + window.slide
    return window.gap if isinstance(window, Session) else 0


def _ranges(window: Window, line: Column, origins: Column, first: int, last: int) -> Ranges:
    """The windows that hold a tuple. `first` is the earliest time, `last` the latest one after it."""
    match window:
        case Periodic(length=length, slide=slide):
            earliest = (first - length) // slide * slide + slide
            starts = np.arange(earliest, first + last + 1, slide) - first
            starts = (origins[:, None] + starts).ravel()
            begin, end = np.searchsorted(line, starts), np.searchsorted(line, starts + length)
        case Session(gap=gap):
            begin = np.flatnonzero(np.append(True, np.diff(line) > gap))
            end = np.append(begin[1:], len(line))
        case Count(n=n, every=every) if len(origins) == 1:
            begin = np.arange(0, len(line) - n + 1, every)
            end = begin + n
        case _:
            raise NotImplementedError(window.describe())
    full = end > begin
    return Ranges(begin[full], end[full])


def _total(value: Column, r: Ranges) -> Column:
    running = np.append(0, np.cumsum(value))
    total: Column = running[r.end] - running[r.begin]
    return total


_RESULTS: dict[str, Callable[[Any, Ranges], float]] = {
    "sum": lambda value, r: float(_total(value, r).sum()),
    "mean": lambda value, r: float(np.sum(_total(value, r) / (r.end - r.begin))),
    "median": lambda value, r: float(
        sum(np.median(value[b:e]) for b, e in zip(r.begin.tolist(), r.end.tolist(), strict=True))
    ),
}
"""The sum over the results of an aggregate."""
