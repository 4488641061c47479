"""Window aggregation without slices [scotty §3]: tuple buffer, tuple and aggregate buckets, tuple tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.baselines.any_order import AnyOrder, Session
from benchmarks.baselines.kept_tuples import KeptTuples
from benchmarks.baselines.range_sums import TupleSums
from benchmarks.baselines.technique import NONE, Ints, first_start, window_starts


class TupleBuffer(AnyOrder):
    """Keep tuples in order; a window that ends adds up its own.

    It alone knows the ranks of tuples, so it has windows of `counts` tuples, too, as the last queries.

    >>> import numpy as np
    >>> buffer = TupleBuffer([(10, 10)])
    >>> (
    ...     buffer.process(np.array([1, 5, 12]), np.array([1, 2, 4])).total.tolist(),
    ...     buffer.finish().total.tolist(),
    ... )
    ([3], [4])
    """

    def __init__(
        self,
        windows: Sequence[tuple[int, int]],
        gaps: Sequence[int] = (),
        lag: int = 0,
        counts: Sequence[int] = (),
    ) -> None:
        super().__init__(windows, gaps, lag)
        self.counts = list(counts)
        self._ranks = [0 for _ in self.counts]
        self._kept = KeptTuples()
        self._reach = max(self._reach, 1)

    def _take(self, time: Ints, value: Ints) -> None:
        self._kept.add(time, value)
        self._take_sessions(time)

    def _totals(self, query: int, starts: Ints) -> Ints:
        time = self._kept.time
        begin = np.searchsorted(time, starts)
        return self._sums(begin, np.searchsorted(time, starts + self.windows[query][0]))

    def _session(self, session: Session) -> int:
        ends = np.searchsorted(self._kept.time, [session.first, session.last + 1])
        return int(self._sums(ends[:1], ends[1:])[0])

    def _sums(self, begin: Ints, end: Ints) -> Ints:
        from benchmarks.baselines.technique_kernels import sum_ranges

        self.combines += int(np.sum(end - begin))
        totals: Ints = sum_ranges(self._kept.value, begin, end)
        return totals

    def _ended(self, watermark: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        yield from super()._ended(watermark)
        # Ranks below the watermark are final.
        final = self._kept.evicted + int(np.searchsorted(self._kept.time, watermark))
        for i, n in enumerate(self.counts):
            starts = np.arange(self._ranks[i], final - n + 1, n)
            if len(starts):
                self._ranks[i] = int(starts[-1]) + n
                query = np.full(len(starts), len(self.windows) + len(self.gaps) + i)
                begin = starts - self._kept.evicted
                yield query, starts, self._sums(begin, begin + n)

    def _needed(self, watermark: int) -> int:
        time = super()._needed(watermark)
        if not self.counts:
            return time
        oldest = min(self._ranks) - self._kept.evicted
        left: list[int] = self._kept.time[oldest : oldest + 1].tolist()
        return min([time, *left])

    def _evict(self, before: int) -> None:
        self._kept.evict(before)


class TupleBuckets(AnyOrder):
    """A bucket for each window, with a copy of its tuples; a window that ends adds them up."""

    def __init__(self, windows: Sequence[tuple[int, int]], gaps: Sequence[int] = (), lag: int = 0) -> None:
        super().__init__(windows, gaps, lag)
        self._buckets: list[dict[int, list[Ints]]] = [{} for _ in self.windows]

    def _take(self, time: Ints, value: Ints) -> None:
        for buckets, (length, slide) in zip(self._buckets, self.windows, strict=True):
            starts = window_starts(time, length, slide)
            begin, end = np.searchsorted(time, starts), np.searchsorted(time, starts + length)
            for start, b, e in zip(starts.tolist(), begin.tolist(), end.tolist(), strict=True):
                buckets.setdefault(start, []).append(value[b:e].copy())
        self._take_sessions(time, lambda b, e: [value[b:e].copy()])

    def _totals(self, query: int, starts: Ints) -> Ints:
        buckets = [self._buckets[query].pop(start, []) for start in starts.tolist()]
        return np.array([self._sum(bucket) for bucket in buckets], np.int64)

    def _session(self, session: Session) -> int:
        return self._sum(session.held)

    def _join(self, one: Any, other: Any) -> Any:
        return one + other

    def _sum(self, bucket: list[Ints]) -> int:
        self.combines += sum(len(part) for part in bucket)
        return sum(int(part.sum()) for part in bucket)


class AggregateBuckets(AnyOrder):
    """A partial for each window; each tuple joins those of all windows that hold it."""

    def __init__(self, windows: Sequence[tuple[int, int]], gaps: Sequence[int] = (), lag: int = 0) -> None:
        super().__init__(windows, gaps, lag)
        self._first: list[int] = []
        self._partials = [NONE for _ in self.windows]

    def _take(self, time: Ints, value: Ints) -> None:
        from benchmarks.baselines.technique_kernels import sum_ranges

        self._first = self._first or list(self._next or [])
        for query, (length, slide) in enumerate(self.windows):
            starts = window_starts(time, length, slide)
            begin, end = np.searchsorted(time, starts), np.searchsorted(time, starts + length)
            self.combines += int(np.sum(end - begin))
            self._make_room(query, first_start(int(time[0]), length, slide), int(time[-1]))
            at = (starts - self._first[query]) // slide
            self._partials[query][at] += sum_ranges(value, begin, end)
        self._take_sessions(time, lambda b, e: int(value[b:e].sum()))
        self.combines += len(self.gaps) * len(time)

    def _make_room(self, query: int, first: int, last: int) -> None:
        """For the windows that start from the one time to the other."""
        slide = self.windows[query][1]
        before = max(0, (self._first[query] - first) // slide)
        self._first[query] -= before * slide
        size = (last - self._first[query]) // slide + 1
        after = max(0, size - before - len(self._partials[query]))
        if before or after:
            parts = [np.zeros(before, np.int64), self._partials[query], np.zeros(after, np.int64)]
            self._partials[query] = np.concatenate(parts)

    def _totals(self, query: int, starts: Ints) -> Ints:
        slide = self.windows[query][1]
        ended = (int(starts[-1]) - self._first[query]) // slide + 1
        totals = self._partials[query][ended - len(starts) : ended]
        self._partials[query] = self._partials[query][ended:]
        self._first[query] += ended * slide
        return totals

    def _session(self, session: Session) -> int:
        return int(session.held)

    def _join(self, one: Any, other: Any) -> Any:
        self.combines += 1
        return one + other


class AggregateTree(AnyOrder):
    """A tree of partials over the tuples themselves; any window costs logarithmically many combines."""

    def __init__(self, windows: Sequence[tuple[int, int]], gaps: Sequence[int] = (), lag: int = 0) -> None:
        super().__init__(windows, gaps, lag)
        self._tree = TupleSums()

    def _take(self, time: Ints, value: Ints) -> None:
        self._tree.insert_many(time, value)
        self._take_sessions(time)

    def _totals(self, query: int, starts: Ints) -> Ints:
        totals = self._tree.sums(starts, starts + self.windows[query][0])
        self.combines = self._tree.combines
        return totals

    def _session(self, session: Session) -> int:
        totals = self._tree.sums(np.array([session.first]), np.array([session.last + 1]))
        self.combines = self._tree.combines
        return int(totals[0])

    def _evict(self, before: int) -> None:
        self._tree.evict_before(before)
