"""What the window techniques of the papers have in common: which windows are due, and what came out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

NONE: Ints = np.zeros(0, np.int64)

NEVER = -(2**62)


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

    lag = 0
    """How far the watermark follows behind the newest tuple."""

    def __init__(self, windows: Sequence[tuple[int, int]]) -> None:
        self.windows = list(windows)
        self.combines = 0
        self._next: list[int] | None = None
        self._newest = NEVER
        self._reach = max((length for length, _ in self.windows), default=0)

    def process(self, time: Ints, value: Ints) -> Totals:
        """Take tuples in, later than all before or at the same time as the last."""
        if self._next is None:
            self._next = [first_start(int(time[0]), *window) for window in self.windows]
        self._newest = max(self._newest, int(time[-1]))
        self._take(time, value)
        return self._emit(self._newest - self.lag)

    def finish(self) -> Totals:
        """End all windows."""
        return self._emit(self._newest + self._reach)

    @abstractmethod
    def _take(self, time: Ints, value: Ints) -> None:
        """Keep what the windows that hold these tuples will need."""

    @abstractmethod
    def _totals(self, query: int, starts: Ints) -> Ints:
        """The sums of windows of a query; each is asked for once, in order."""

    def _evict(self, before: int) -> None:  # noqa: B027  # not all keep anything by time
        """No window that has not ended holds a tuple before this time."""

    def _needed(self, watermark: int) -> int:
        """The first time that a window holds which has not ended."""
        return min(self._next or [], default=watermark)

    def _emit(self, watermark: int) -> Totals:
        parts = list(self._ended(watermark))
        if not parts:
            return Totals(NONE, NONE, NONE)
        self._evict(self._needed(watermark))
        return Totals(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _ended(self, watermark: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Queries, starts and sums of windows."""
        upcoming = self._next or []
        for query, (length, slide) in enumerate(self.windows[: len(upcoming)]):
            last = min(watermark - length, self._newest)
            starts = np.arange(upcoming[query], last + 1, slide, dtype=np.int64)
            if len(starts):
                upcoming[query] = int(starts[-1]) + slide
                yield np.full(len(starts), query), starts, self._totals(query, starts)


def first_start(time: int, length: int, slide: int) -> int:
    """Where the first window starts that holds this time."""
    return (time - length) // slide * slide + slide


def window_starts(time: Ints, length: int, slide: int) -> Ints:
    """The starts of the windows that overlap with tuples in order."""
    return np.arange(first_start(int(time[0]), length, slide), int(time[-1]) + 1, slide, dtype=np.int64)
