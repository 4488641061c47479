"""Window aggregation without slices [scotty §3]: tuple buffer, tuple and aggregate buckets, tuple tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muntin.baselines.technique import NONE, Ints, Technique, window_starts
from muntin.baselines.tuple_tree import TupleTree


class TupleBuffer(Technique):
    """Keep tuples in order; a window that ends adds up its own.

    >>> import numpy as np
    >>> buffer = TupleBuffer([(10, 10)])
    >>> (
    ...     buffer.process(np.array([1, 5, 12]), np.array([1, 2, 4])).total.tolist(),
    ...     buffer.finish().total.tolist(),
    ... )
    ([3], [4])
    """

    def __init__(self, windows: Sequence[tuple[int, int]]) -> None:
        super().__init__(windows)
        self._time, self._value = NONE, NONE

    def _take(self, time: Ints, value: Ints) -> None:
        self._time = np.concatenate([self._time, time])
        self._value = np.concatenate([self._value, value])

    def _totals(self, query: int, starts: Ints) -> Ints:
        from muntin.baselines.technique_kernels import sum_ranges

        begin = np.searchsorted(self._time, starts)
        end = np.searchsorted(self._time, starts + self.windows[query][0])
        self.combines += int(np.sum(end - begin))
        totals: Ints = sum_ranges(self._value, begin, end)
        return totals

    def _evict(self, before: int) -> None:
        gone = int(np.searchsorted(self._time, before))
        self._time, self._value = self._time[gone:], self._value[gone:]


class TupleBuckets(Technique):
    """A bucket for each window, with a copy of its tuples; a window that ends adds them up."""

    def __init__(self, windows: Sequence[tuple[int, int]]) -> None:
        super().__init__(windows)
        self._buckets: list[dict[int, list[Ints]]] = [{} for _ in self.windows]

    def _take(self, time: Ints, value: Ints) -> None:
        for buckets, (length, slide) in zip(self._buckets, self.windows, strict=True):
            starts = window_starts(time, length, slide)
            begin, end = np.searchsorted(time, starts), np.searchsorted(time, starts + length)
            for start, b, e in zip(starts.tolist(), begin.tolist(), end.tolist(), strict=True):
                buckets.setdefault(start, []).append(value[b:e].copy())

    def _totals(self, query: int, starts: Ints) -> Ints:
        buckets = [self._buckets[query].pop(start, []) for start in starts.tolist()]
        self.combines += sum(len(part) for bucket in buckets for part in bucket)
        return np.array([sum(int(part.sum()) for part in bucket) for bucket in buckets], np.int64)


class AggregateBuckets(Technique):
    """A partial for each window; each tuple joins those of all windows that hold it."""

    def __init__(self, windows: Sequence[tuple[int, int]]) -> None:
        super().__init__(windows)
        self._first: list[int] = []
        self._partials = [NONE for _ in self.windows]

    def _take(self, time: Ints, value: Ints) -> None:
        from muntin.baselines.technique_kernels import sum_ranges

        self._first = self._first or list(self._next or [])
        for query, (length, slide) in enumerate(self.windows):
            starts = window_starts(time, length, slide)
            begin, end = np.searchsorted(time, starts), np.searchsorted(time, starts + length)
            self.combines += int(np.sum(end - begin))
            known = (int(time[-1]) - self._first[query]) // slide + 1
            partials = self._partials[query]
            partials = np.append(partials, np.zeros(max(0, known - len(partials)), np.int64))
            partials[(starts - self._first[query]) // slide] += sum_ranges(value, begin, end)
            self._partials[query] = partials

    def _totals(self, query: int, starts: Ints) -> Ints:
        slide = self.windows[query][1]
        ended = (int(starts[-1]) - self._first[query]) // slide + 1
        totals = self._partials[query][ended - len(starts) : ended]
        self._partials[query] = self._partials[query][ended:]
        self._first[query] += ended * slide
        return totals


class AggregateTree(Technique):
    """A tree of partials over the tuples themselves; any window costs logarithmically many combines."""

    def __init__(self, windows: Sequence[tuple[int, int]]) -> None:
        super().__init__(windows)
        self._tree = TupleTree("sum", dtype="int64")

    def _take(self, time: Ints, value: Ints) -> None:
        self._tree.insert_many(time, value)

    def _totals(self, query: int, starts: Ints) -> Ints:
        length = self.windows[query][0]
        totals = [self._tree.query_range(start, start + length) or 0 for start in starts.tolist()]
        self.combines = self._tree.combines
        return np.array(totals, np.int64)

    def _evict(self, before: int) -> None:
        self._tree.evict_before(before)
