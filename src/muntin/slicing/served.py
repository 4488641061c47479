"""The windows that an operator serves now, grouped by what slicing must know of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

import numpy as np
import numpy.typing as npt

from muntin.slicing.edges import EdgeSet
from muntin.timeline import INF, LIMIT, NEG_INF
from muntin.windows.base import Context, ContextFreeWindow, Window
from muntin.windows.tuple_driven import TupleDriven


@dataclass(frozen=True, slots=True, eq=False)
class ServedWindow:
    """One named window of a running query.

    A window that is added to a running stream has no instance that begins before `since`, and emits none
    that ended by `after`, the watermark at that moment.
    """

    name: str
    window: Window
    since: int = NEG_INF
    after: int = NEG_INF

    @property
    def emits_empty(self) -> bool:
        """Whether windows without tuples are emitted, too."""
        return self.window.emits_empty

    @property
    def ends_with_key(self) -> bool:
        """Whether its windows end with the life of their key, where silent keys are forgotten.

        Landmarks do not: they hold all tuples since their start.
        """
        return self.window.holds_keys and not self.window.endless


@dataclass(frozen=True, slots=True)
class PeriodicSeries:
    """The periodic windows as columns for compiled code: number, length, slide, offset, since, after.

    The number is the position among all served windows. Longer windows come first, so that instances
    with one end are listed in the order of results: by start, then by number. Two more columns give the
    positions of ends on a common grid: instance k of a window ends `apart * k + place` grid units after
    instance 0 of the first window.
    """

    columns: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: list[tuple[int, int, int, int, int, int]]) -> PeriodicSeries:
        """The series of these windows."""
        rows = sorted(rows, key=lambda row: -row[1])
        ends = [length + offset for _, length, _, offset, _, _ in rows]
        unit = gcd(*(slide for _, _, slide, _, _, _ in rows), *(end - ends[0] for end in ends))
        places = [(row[2] // unit, (end - ends[0]) // unit) for row, end in zip(rows, ends, strict=True)]
        both = [(*row, *place) for row, place in zip(rows, places, strict=True)]
        return cls(np.ascontiguousarray(np.array(both, dtype=np.int64).reshape(-1, 8).T))

    @property
    def length(self) -> npt.NDArray[np.int64]:
        """The length of each window."""
        lengths: npt.NDArray[np.int64] = self.columns[1]
        return lengths

    @property
    def slide(self) -> npt.NDArray[np.int64]:
        """The distance between neighbouring instances."""
        slides: npt.NDArray[np.int64] = self.columns[2]
        return slides

    @property
    def offset(self) -> npt.NDArray[np.int64]:
        """The start of one instance."""
        offsets: npt.NDArray[np.int64] = self.columns[3]
        return offsets


@dataclass(frozen=True)
class ServedWindows:
    """All windows that an operator serves. A change makes a new set, and the state is adapted to it."""

    all: tuple[ServedWindow, ...] = field(default=())
    aggregates_since: tuple[tuple[str, int], ...] = ()
    """Aggregates that were added later, each with the least start of windows that show it; INF for a removed
    one whose column stays."""

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Aggregates that no window shows, whatever windows they are over."""
        return frozenset(name for name, since in self.aggregates_since if since == INF)

    @cached_property
    def context_free(self) -> tuple[ServedWindow, ...]:
        """Context-free windows on time: their edges are known in advance."""
        return tuple(q for q in self.all if isinstance(q.window, ContextFreeWindow))

    @cached_property
    def periodic(self) -> tuple[ServedWindow, ...]:
        """Context-free windows with arithmetic edges, listed together in one compiled pass."""
        return tuple(q for q in self.context_free if q.window.series is not None)

    @cached_property
    def irregular(self) -> tuple[tuple[ServedWindow, ContextFreeWindow], ...]:
        """The other context-free windows: cumulate, calendar, landmark, user-defined."""
        windows = [(q, q.window) for q in self.context_free if q.window.series is None]
        return tuple((q, w) for q, w in windows if isinstance(w, ContextFreeWindow))

    @cached_property
    def series(self) -> PeriodicSeries:
        """The periodic windows as columns."""
        rows = [
            (number, *q.window.series, q.since, max(q.after, -LIMIT))
            for number, q in enumerate(self.all)
            if q.window.series is not None
        ]
        return PeriodicSeries.of(rows)

    @cached_property
    def with_empty(self) -> tuple[ServedWindow, ...]:
        """Windows that are also emitted without tuples."""
        return tuple(q for q in self.context_free if q.emits_empty)

    @cached_property
    def unprompted(self) -> tuple[ServedWindow, ...]:
        """Windows that the watermark alone emits at regular times, also without a tuple."""
        regular = (q for q in self.all if q.window.period is not None)
        return tuple(q for q in regular if q.window.unprompted or q in self.with_empty)

    @cached_property
    def only_edges(self) -> bool:
        """Whether all windows are periodic and none is emitted empty: results appear at known edges only."""
        return len(self.periodic) == len(self.all) and not self.with_empty

    @cached_property
    def longest(self) -> int:
        """The length of the longest periodic window."""
        return int(self.series.length.max())

    @cached_property
    def overlap(self) -> int:
        """The most periodic windows that contain one slice."""
        return int((self.series.length // self.series.slide + 1).sum()) if self.periodic else 0

    @cached_property
    def most_overlapping(self) -> int:
        """The most instances of one context-free window that contain one slice."""
        return max((q.window.per_tuple for q in self.context_free), default=0)

    def first_start(self, after: int) -> int:
        """The smallest start of any context-free window that ends after `after`."""
        starts = [window.first_start(after) for _, window in self.irregular]
        if self.periodic:
            series = self.series
            if abs(after) >= LIMIT:
                return INF if after > 0 and not starts else (min(starts) if after > 0 else NEG_INF)
            number = (after - series.length - series.offset) // series.slide + 1
            starts.append(int((number * series.slide + series.offset).min()))
        return int(min(starts))

    def number(self, window: ServedWindow) -> int:
        """The position of a window among all."""
        return next(i for i, q in enumerate(self.all) if q is window)

    @cached_property
    def sessions(self) -> tuple[ServedWindow, ...]:
        """Plain sessions on time."""
        return tuple(q for q in self.all if q.window.session_gap is not None)

    @cached_property
    def tuple_driven(self) -> tuple[ServedWindow, ...]:
        """Windows whose edges depend on the tuples in order."""
        return tuple(q for q in self.all if isinstance(q.window, TupleDriven))

    @cached_property
    def looks_back(self) -> bool:
        """Whether some window may begin before the tuples that reveal it (forward context aware)."""
        return any(q.window.context is Context.FORWARD_AWARE for q in self.tuple_driven)

    @cached_property
    def gaps(self) -> npt.NDArray[np.int64]:
        """Distinct session gaps, smallest first: the session classes."""
        gaps = {q.window.session_gap for q in self.sessions}
        return np.unique(np.array([gap for gap in gaps if gap is not None], dtype=np.int64))

    @cached_property
    def gap(self) -> int:
        """The smallest session gap, which alone decides where sessions cut; -1 without sessions."""
        return int(self.gaps[0]) if len(self.gaps) else -1

    def session_class(self, session: ServedWindow) -> int:
        """The position of a session's gap among the distinct gaps."""
        gap = session.window.session_gap
        assert gap is not None
        return int(np.searchsorted(self.gaps, gap))

    @cached_property
    def edges(self) -> EdgeSet:
        """Fixed edges of all context-free windows; sessions added later are cut where they begin."""
        windows = [q.window for q in self.context_free if isinstance(q.window, ContextFreeWindow)]
        starts = [q.since for q in self.all if q.since > NEG_INF]
        return EdgeSet.of(windows, starts)
