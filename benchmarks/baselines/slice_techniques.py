"""Window aggregation with slices, for streams in order: Panes, Pairs, Cutty [scotty §3, cutty §3]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import gcd

import numpy as np

from benchmarks.baselines.range_sums import SliceSums
from benchmarks.baselines.technique import NONE, Ints, Technique


class _Slices(Technique):
    """Every query has slices of its own and adds them up when a window ends."""

    def __init__(self, windows: Sequence[tuple[int, int]]) -> None:
        super().__init__(windows)
        self._starts = [NONE for _ in self.windows]
        self._partials = [NONE for _ in self.windows]

    @abstractmethod
    def _edges(self, query: int, low: int, high: int) -> Ints:
        """Where slices begin, from the last edge at or before `low` up to `high`."""

    def _take(self, time: Ints, value: Ints) -> None:
        for query in range(len(self.windows)):
            starts, partials = cut(self._edges(query, int(time[0]), int(time[-1])), time, value)
            self.combines += len(time)
            known = self._starts[query]
            if len(known) and known[-1] == starts[0]:  # the open slice goes on
                self._partials[query][-1] += partials[0]
                starts, partials = starts[1:], partials[1:]
            self._starts[query] = np.concatenate([known, starts])
            self._partials[query] = np.concatenate([self._partials[query], partials])

    def _totals(self, query: int, starts: Ints) -> Ints:
        from benchmarks.baselines.technique_kernels import sum_ranges

        length, slide = self.windows[query]
        begin = np.searchsorted(self._starts[query], starts)
        end = np.searchsorted(self._starts[query], starts + length)
        self.combines += int(np.sum(end - begin))
        totals: Ints = sum_ranges(self._partials[query], begin, end)
        gone = int(np.searchsorted(self._starts[query], int(starts[-1]) + slide))
        self._starts[query] = self._starts[query][gone:]
        self._partials[query] = self._partials[query][gone:]
        return totals


class Panes(_Slices):
    """Slices as long as the greatest common divisor of length and slide.

    >>> import numpy as np
    >>> panes = Panes([(10, 4)])
    >>> panes.process(np.array([1, 5, 12]), np.array([1, 2, 4])).total.tolist(), panes.finish().total.tolist()
    ([1, 3, 3], [6, 4, 4])
    """

    def _edges(self, query: int, low: int, high: int) -> Ints:
        pane = gcd(*self.windows[query])
        return np.arange(low // pane * pane, high + 1, pane, dtype=np.int64)


class Pairs(_Slices):
    """Two slices for each slide, cut where windows start and where they end."""

    def _edges(self, query: int, low: int, high: int) -> Ints:
        length, slide = self.windows[query]
        starts = np.arange(low // slide * slide, high + 1, slide, dtype=np.int64)
        rest = length % slide
        if not rest:
            return starts
        edges = np.sort(np.concatenate([starts - slide + rest, starts, starts + rest]))
        return edges[np.searchsorted(edges, low, side="right") - 1 :]


class Cutty(Technique):
    """Slices shared by all windows, cut only where windows start, under a tree.

    Windows must end where others of their query start, so that a batch can be cut at once.
    """

    def __init__(self, windows: Sequence[tuple[int, int]]) -> None:
        super().__init__(windows)
        for length, slide in self.windows:
            if length % slide:
                raise ValueError(f"length must be a multiple of slide here: got {length} and {slide}")
        self._tree = SliceSums()
        self._cut = 0

    def _take(self, time: Ints, value: Ints) -> None:
        low, high = int(time[0]), int(time[-1])
        slides = {slide for _, slide in self.windows}
        edges = [np.arange(low // slide * slide, high + 1, slide, dtype=np.int64) for slide in slides]
        starts = np.unique(np.concatenate(edges))
        starts = starts[np.searchsorted(starts, low, side="right") - 1 :]
        # FlatFAT combines entries of one time, so the open slice goes on by itself.
        self._tree.insert_many(*cut(starts, time, value))
        self._cut += len(time)

    def _totals(self, query: int, starts: Ints) -> Ints:
        totals = self._tree.sums(starts, starts + self.windows[query][0])
        self.combines = self._cut + self._tree.combines
        return totals

    def _evict(self, before: int) -> None:
        self._tree.evict_before(before)


def cut(edges: Ints, time: Ints, value: Ints) -> tuple[Ints, Ints]:
    """The slices that hold tuples: their starts and sums. The first edge is not after the first tuple."""
    bounds = np.searchsorted(time, edges)
    ends = np.append(bounds[1:], len(time))
    full = ends > bounds
    return edges[full], np.add.reduceat(value, bounds[full])
