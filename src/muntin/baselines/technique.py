"""What the window techniques of the papers have in common: which windows are due, and what came out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

NONE: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Totals:
    """Windows that ended: the number of their query, their starts and the sums of their tuples."""

    query: Ints
    start: Ints
    total: Ints


class Technique(ABC):
    """Sums over tumbling and sliding windows of a stream in order, as (length, slide) each.

    A window ends when a tuple at or after its end has come, or when the stream is finished.
    """

    def __init__(self, windows: Sequence[tuple[int, int]]) -> None:
        self.windows = list(windows)
        self.combines = 0
        self._next: list[int] | None = None
        self._newest = 0

    def process(self, time: Ints, value: Ints) -> Totals:
        """Take tuples in, later than all before or at the same time as the last."""
        if self._next is None:
            first = int(time[0])
            self._next = [(first - length) // slide * slide + slide for length, slide in self.windows]
        self._newest = int(time[-1])
        self._take(time, value)
        return self._emit(self._newest)

    def finish(self) -> Totals:
        """End all windows."""
        return self._emit(self._newest + max(length for length, _ in self.windows))

    @abstractmethod
    def _take(self, time: Ints, value: Ints) -> None:
        """Keep what the windows that hold these tuples will need."""

    @abstractmethod
    def _totals(self, query: int, starts: Ints) -> Ints:
        """The sums of windows of a query; each is asked for once, in order."""

    def _evict(self, before: int) -> None:  # noqa: B027  # not all keep anything by time
        """No window that has not ended holds a tuple before this time."""

    def _emit(self, until: int) -> Totals:
        parts: list[tuple[Ints, Ints, Ints]] = []
        upcoming = self._next or []
        for query, (length, slide) in enumerate(self.windows[: len(upcoming)]):
            last = min(until - length, self._newest)
            starts = np.arange(upcoming[query], last + 1, slide, dtype=np.int64)
            if len(starts):
                upcoming[query] = int(starts[-1]) + slide
                parts.append((np.full(len(starts), query), starts, self._totals(query, starts)))
        if not parts:
            return Totals(NONE, NONE, NONE)
        self._evict(min(upcoming))
        return Totals(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def window_starts(time: Ints, length: int, slide: int) -> Ints:
    """The starts of the windows that overlap with tuples in order."""
    first = (int(time[0]) - length) // slide * slide + slide
    return np.arange(first, int(time[-1]) + 1, slide, dtype=np.int64)
