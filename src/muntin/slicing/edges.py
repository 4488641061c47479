"""The fixed edges of all context-free windows, fused into the fewest progressions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, gcd

import numpy as np
import numpy.typing as npt

from muntin.planning.progressions import fuse
from muntin.slicing.batch import distinct
from muntin.slicing.cutting_kernels import next_member, progression_edges
from muntin.slicing.sorting_kernels import INSERTION_SORTED
from muntin.windows.base import ContextFreeWindow

Times = npt.NDArray[np.int64]
NO_TIMES: Times = np.zeros(0, dtype=np.int64)
_PLACES = 32
"""Up to this many places per edge, marking edges in an array of places is faster than sorting them."""
_MOST_PLACES = 2**24
REACH = 2**50
"""About 36 years in microseconds; times and edges stay inside int64 by far."""


@dataclass(frozen=True)
class EdgeSet:
    """Where the slices of the context-free windows begin.

    Both the starts and the ends of windows are edges: out of order, the last slice of a window may
    still change after the next one began [scotty §5.3]. An edge that has become useless folds
    away later, so for a stream in order only window starts remain.
    """

    offsets: Times
    periods: Times
    others: tuple[ContextFreeWindow, ...]
    points: Times

    @classmethod
    def of(cls, windows: Iterable[ContextFreeWindow], points: Iterable[int] = ()) -> EdgeSet:
        """The edges of these windows, and single ones besides."""
        every = list(windows)
        fused = fuse(p for window in every for p in window.progressions())
        others = dict.fromkeys(window for window in every if not window.progressions())
        return cls(
            np.array([o for o, _ in fused], dtype=np.int64),
            np.array([p for _, p in fused], dtype=np.int64),
            tuple(others),
            np.array(sorted(set(points)), dtype=np.int64),
        )

    @cached_property
    def per_unit(self) -> float:
        """Edges per unit of time that the fused progressions make (coinciding ones counted each)."""
        return float(np.sum(1.0 / self.periods)) if len(self.periods) else 0.0

    @cached_property
    def longest(self) -> int:
        """The longest time from one edge of a progression to the next."""
        return int(self.periods.max())

    @cached_property
    def unit(self) -> int:
        """Edges of progressions lie a multiple of it apart."""
        return gcd(*self.periods.tolist(), *(self.offsets - self.offsets[0]).tolist())

    def around(self, low: int, high: int, times: Times, first: Times, last: Times) -> Times:
        """Sorted edges that separate times in [low, high], with one beyond on each side.

        `times` are those of tuples, used where there would be far more edges than tuples. The edges beyond
        separate existing slices, from `first` to `last`, from new tuples.
        """
        if not self.others and not len(self.points):
            return self._periodic(low, high, times)
        oldest, newest = (int(first.min()), int(last.max())) if len(first) else (low, high)
        edge_arrays = [self._periodic(low, high, times)]
        for window in self.others:
            edge_arrays += [
                _last_edge(window, low, oldest),
                *_edges_among(window, low, high, times),
                _next_edge(window, high, newest),
            ]
        if len(self.points):
            edge_arrays.append(self.points)
        present = [p for p in edge_arrays if len(p)]
        if not present:
            return NO_TIMES
        return distinct(np.concatenate(present)) if len(present) > 1 else present[0]

    def after(self, time: int) -> int:
        """The first edge after this time, or an earlier time where none lies within reach."""
        nearest = time + REACH
        if len(self.periods):
            nearest = next_member(self.offsets, self.periods, time, nearest)
        for window in self.others:
            ahead = _next_edge(window, time, nearest)
            nearest = int(ahead[0]) if len(ahead) else nearest
        return nearest

    def _periodic(self, low: int, high: int, times: Times) -> Times:
        if not len(self.periods):
            return NO_TIMES
        expected = (high - low) * self.per_unit + 2 * len(self.periods)
        if expected > 8 * len(times) + 100_000:
            # A few tuples far apart: only the edges next to tuples can matter.
            below = times[:, None] - (times[:, None] - self.offsets) % self.periods
            return distinct(np.concatenate([below.ravel(), (below + self.periods).ravel()]))
        # A place for each unit of time instead of a sort, unless most of them would stay empty.
        places = (high - low + 2 * self.longest) // self.unit + 2
        marked = expected > INSERTION_SORTED and places < min(_PLACES * expected, _MOST_PLACES)
        marks = np.zeros(places if marked else 0, dtype=np.bool_)
        edges = np.empty(ceil(expected) + 2 * len(self.periods) + 1, dtype=np.int64)
        count = progression_edges(self.offsets, self.periods, self.unit, low, high, marks, edges)
        if count > 0 or len(self.periods) == 1:
            return edges[: abs(count)]
        # NumPy's sort is several times faster than one that Numba compiles.
        return distinct(edges[:-count])


def _edges_among(window: ContextFreeWindow, low: int, high: int, times: Times) -> list[Times]:
    """Edges in [low, high]; where they would be far more than tuples, those in and next to groups of them."""
    if not _many(window, low, high, 8 * len(times) + 4096):
        return [window.edges(low, high)]
    ordered = np.unique(times)
    gaps = np.diff(ordered.view(np.uint64))  # the largest is one too much for int64
    cut = np.flatnonzero(gaps > (high - low) // 1024)
    if not len(cut):  # spread evenly: then all edges, or those next to each tuple if they are too many
        if not _many(window, low, high, 256 * len(times)):
            return [window.edges(low, high)]
        cut = np.flatnonzero(gaps > (high - low) // (2 * len(ordered)))
    ends, begins = ordered[cut].tolist(), ordered[cut + 1].tolist()
    edge_arrays = []
    for first, last in zip([low, *begins], [*ends, high], strict=True):
        edge_arrays += _edges_among(window, first, last, ordered[(ordered >= first) & (ordered <= last)])
    for end, begin in zip(ends, begins, strict=True):
        edge_arrays += [_next_edge(window, end, begin), _last_edge(window, begin, end)]
    return edge_arrays


def _many(window: ContextFreeWindow, low: int, high: int, limit: int) -> bool:
    """Whether there seem to be more edges than that; looks at a small part of them, or at the period."""
    if window.period is not None:
        return (high - low) // window.period > limit
    reach = 1
    while high - low > limit:
        count = len(window.edges(low, min(high, low + reach)))
        if count > 64 or reach > high - low:
            return count * (high - low) > limit * reach
        reach *= 64
    return False


def _last_edge(window: ContextFreeWindow, until: int, oldest: int) -> Times:
    """The last edge in [oldest, until], if there is one; found in steps that grow, however old that is."""
    reach = _first_reach(window)
    while True:
        edges = window.edges(max(oldest, until - reach), until) if oldest <= until else NO_TIMES
        if len(edges) or until - reach <= oldest:
            return edges[-1:]
        reach *= 8


def _next_edge(window: ContextFreeWindow, after: int, newest: int) -> Times:
    """The first edge in (after, newest], if there is one."""
    reach = _first_reach(window)
    while True:
        edges = window.edges(after + 1, min(newest, after + reach)) if newest > after else NO_TIMES
        if len(edges) or after + reach >= newest:
            return edges[:1]
        reach *= 8


def _first_reach(window: ContextFreeWindow) -> int:
    """How far to look for an edge first; a civil unit may be a little longer than its period."""
    return 1 if window.period is None else 2 * window.period


def crossed(window: ContextFreeWindow, first: Times, last: Times) -> npt.NDArray[np.bool_]:
    """Which of the slices from `first` to `last` an edge of the window would cut."""
    fixed = window.progressions()
    if fixed:
        cut = np.zeros(len(first), dtype=np.bool_)
        for offset, period in fixed:
            cut |= (first - offset) // period != (last - offset) // period
        return cut
    times = np.concatenate([first, last])
    edges = np.unique(np.concatenate(_edges_among(window, int(times.min()), int(times.max()), times)))
    sides = (np.searchsorted(edges, times, side="right") for times in (first, last))
    return np.not_equal(*sides)
