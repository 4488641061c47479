"""The fixed edges of all context-free queries, fused into as few progressions as possible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
import numpy.typing as npt

from muntin.planning.progressions import fuse, progressions
from muntin.windows.base import ContextFreeWindow

Times = npt.NDArray[np.int64]
NO_TIMES: Times = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class EdgeSet:
    """Where the slices of the context-free queries begin.

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
        fused = fuse(p for window in every for p in progressions(window))
        others = dict.fromkeys(window for window in every if not progressions(window))
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

    def around(self, low: int, high: int, times: Times, oldest: int, newest: int) -> Times:
        """Sorted edges that separate times in [low, high], with one beyond on each side.

        `times` are the tuples' own, used where edges would be far more than tuples. Slices of
        existing rows in [oldest, newest] are told apart from new tuples by the edges beyond.
        """
        parts = [self._periodic(low, high, times)]
        for window in self.others:
            inside = window.edges(low, high)
            before = window.edges(min(oldest, low), low)[-1:]
            behind = window.edges(high, max(newest, high))
            parts += [before, inside, behind[behind > high][:1]]
        if len(self.points):
            parts.append(self.points)
        present = [p for p in parts if len(p)]
        if not present:
            return NO_TIMES
        return np.unique(np.concatenate(present)) if len(present) > 1 else present[0]

    def _periodic(self, low: int, high: int, times: Times) -> Times:
        if not len(self.periods):
            return NO_TIMES
        floor = low - (low - self.offsets) % self.periods
        beyond = high - (high - self.offsets) % self.periods + self.periods
        expected = (high - low) * self.per_unit + 2 * len(self.periods)
        if expected > 8 * len(times) + 100_000:
            # A few tuples far apart: only the edges next to tuples can matter.
            below = times[:, None] - (times[:, None] - self.offsets) % self.periods
            return np.unique(np.concatenate([below.ravel(), (below + self.periods).ravel()]))
        from muntin.slicing.cutting_kernels import progression_edges

        out = np.empty(ceil(expected) + 2 * len(self.periods), dtype=np.int64)
        count = progression_edges(self.offsets, self.periods, low, high, out)
        if len(self.periods) == 1:
            return np.concatenate([floor[floor < low], out[:count], beyond])
        return np.unique(np.concatenate([floor, out[:count], beyond]))
