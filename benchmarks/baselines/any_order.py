"""Window techniques that take late tuples, and sessions: those without slices [scotty §3]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.baselines.technique import Ints, Technique, Totals, first_start


@dataclass(frozen=True, slots=True)
class Session:
    """Its first and its last tuple's time, and what a technique holds for it."""

    first: int
    last: int
    held: Any = None


class AnyOrder(Technique):
    """A technique for tuples that are at most `lag` behind the newest; queries of sessions follow the others.

    The tuples of a batch are brought into order first: that costs less than to look up each tuple's
    place for each window, and lets ranges of tuples be added up.
    """

    def __init__(self, windows: Sequence[tuple[int, int]], gaps: Sequence[int] = (), lag: int = 0) -> None:
        super().__init__(windows)
        self.lag = lag
        self.gaps = list(gaps)
        self._open: list[list[Session]] = [[] for _ in self.gaps]
        self._reach = max([self._reach, *(gap + 1 for gap in self.gaps)])

    def process(self, time: Ints, value: Ints) -> Totals:
        """Take tuples in, none of them before the watermark."""
        if self.lag:
            time, value = in_order(time, value)
            if self._next is not None:  # the first tuple of all may come late
                first = [first_start(int(time[0]), *window) for window in self.windows]
                self._next = [min(starts) for starts in zip(self._next, first, strict=True)]
        return super().process(time, value)

    @abstractmethod
    def _session(self, session: Session) -> int:
        """The sum of a session that ended."""

    def _join(self, one: Any, other: Any) -> Any:
        """What is held for two sessions that have become one."""

    def _take_sessions(self, time: Ints, hold: Callable[[int, int], Any] | None = None) -> None:
        """Find the sessions of tuples in order; `hold` makes what is held for a range of them."""
        from benchmarks.baselines.technique_kernels import pauses

        for query, gap in enumerate(self.gaps):
            cuts = pauses(time, gap).tolist()
            found = self._open[query]
            for b, e in zip([0, *cuts], [*cuts, len(time)], strict=True):
                found.append(Session(int(time[b]), int(time[e - 1]), hold(b, e) if hold else None))
            self._open[query] = self._joined(found, gap)

    def _joined(self, found: list[Session], gap: int) -> list[Session]:
        found.sort(key=lambda session: session.first)
        joined = found[:1]
        for one in found[1:]:
            before = joined[-1]
            if one.first - before.last <= gap:
                held = self._join(before.held, one.held)
                joined[-1] = Session(before.first, max(before.last, one.last), held)
            else:
                joined.append(one)
        return joined

    def _needed(self, watermark: int) -> int:
        firsts = [sessions[0].first for sessions in self._open if sessions]
        return min([super()._needed(watermark), *firsts])

    def _ended(self, watermark: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        yield from super()._ended(watermark)
        for query, gap in enumerate(self.gaps):
            over = [one for one in self._open[query] if one.last + gap < watermark]
            self._open[query] = self._open[query][len(over) :]
            if over:
                number = np.full(len(over), len(self.windows) + query)
                totals = [self._session(one) for one in over]
                yield number, np.array([one.first for one in over]), np.array(totals, np.int64)


def in_order(time: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Tuples by time and arrival: the late ones are sorted and merged with the others.

    >>> times, values = in_order(np.array([1, 5, 3, 5, 1]), np.array([10, 20, 30, 40, 50]))
    >>> times.tolist(), values.tolist()
    ([1, 1, 3, 5, 5], [10, 50, 30, 20, 40])
    """
    from benchmarks.baselines.technique_kernels import merge_tuples, split_late

    punctual, punctual_value, late, late_value = split_late(time, value)
    order = np.argsort(late, kind="stable")
    times, values = np.empty_like(time), np.empty_like(value)
    # A late tuple follows a punctual one of the same time: else that one would be late, too.
    merge_tuples(punctual, punctual_value, late[order], late_value[order], times, values)
    return times, values
