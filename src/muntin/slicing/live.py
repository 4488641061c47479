"""The queries that an operator serves right now, sorted by what the slicer must know of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

import numpy as np
import numpy.typing as npt

from muntin.expressions import Expr
from muntin.slicing.edges import EdgeSet
from muntin.timeline import INF, LIMIT, NEG_INF
from muntin.windows.base import Context, ContextFreeWindow, Window
from muntin.windows.tuple_driven import TupleDriven


@dataclass(slots=True, eq=False)
class LiveQuery:
    """One named window while it runs.

    Added on the fly, no window of it begins before `since`, and none that ended by `after`, the
    watermark then, comes out. `inputs`: the columns it reads.
    """

    name: str
    window: Window
    since: int = NEG_INF
    after: int = NEG_INF
    late: int = 0
    inputs: tuple[Expr, ...] = ()

    @property
    def emits_empty(self) -> bool:
        """Whether its windows come out without tuples, too."""
        return isinstance(self.window, ContextFreeWindow) and self.window.emit_empty

    @property
    def ends_with_key(self) -> bool:
        """Whether its windows end with the life of their key, where silent keys are forgotten.

        Landmarks do not: they hold all tuples since their start.
        """
        return self.window.holds_keys and not self.window.endless


@dataclass(frozen=True, slots=True)
class Grid:
    """The periodic queries as columns, for compiled code: number, length, slide, offset, since, after.

    The number is a query's place among all. Longer windows come first: then those that end together
    are listed in the order of results, by start and then by number. Two more columns tell where ends
    stand among all: they lie a multiple of a unit apart, and window k of a query ends `apart * k + place`
    units behind the window 0 of the first.
    """

    columns: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: list[tuple[int, int, int, int, int, int]]) -> Grid:
        """The grid of these queries."""
        rows = sorted(rows, key=lambda row: -row[1])
        ends = [length + offset for _, length, _, offset, _, _ in rows]
        unit = gcd(*(slide for _, _, slide, _, _, _ in rows), *(end - ends[0] for end in ends))
        places = [(row[2] // unit, (end - ends[0]) // unit) for row, end in zip(rows, ends, strict=True)]
        both = [(*row, *place) for row, place in zip(rows, places, strict=True)]
        return cls(np.ascontiguousarray(np.array(both, dtype=np.int64).T))

    @property
    def length(self) -> npt.NDArray[np.int64]:
        """How long the windows of each query are."""
        lengths: npt.NDArray[np.int64] = self.columns[1]
        return lengths

    @property
    def slide(self) -> npt.NDArray[np.int64]:
        """How far they are apart."""
        slides: npt.NDArray[np.int64] = self.columns[2]
        return slides

    @property
    def offset(self) -> npt.NDArray[np.int64]:
        """Where one of them begins."""
        offsets: npt.NDArray[np.int64] = self.columns[3]
        return offsets


@dataclass(frozen=True)
class LiveSet:
    """All queries of an operator. A change makes a new set; the state is adapted to it."""

    queries: tuple[LiveQuery, ...] = field(default=())

    @cached_property
    def free(self) -> tuple[LiveQuery, ...]:
        """Context-free queries on time: their edges are known beforehand."""
        return tuple(q for q in self.queries if isinstance(q.window, ContextFreeWindow))

    @cached_property
    def periodic(self) -> tuple[LiveQuery, ...]:
        """Those with arithmetic edges, listed together in one compiled pass."""
        return tuple(q for q in self.free if q.window.series is not None)

    @cached_property
    def uneven(self) -> tuple[tuple[LiveQuery, ContextFreeWindow], ...]:
        """The other context-free ones: cumulate windows, calendars, landmarks, the user's own."""
        windows = [(q, q.window) for q in self.free if q.window.series is None]
        return tuple((q, w) for q, w in windows if isinstance(w, ContextFreeWindow))

    @cached_property
    def grid(self) -> Grid:
        """The periodic queries as columns."""
        rows = [
            (number, *q.window.series, q.since, max(q.after, -LIMIT))
            for number, q in enumerate(self.queries)
            if q.window.series is not None
        ]
        return Grid.of(rows)

    @cached_property
    def spanned(self) -> tuple[LiveQuery, ...]:
        """Those that emit empty windows."""
        return tuple(q for q in self.free if q.emits_empty)

    @cached_property
    def unprompted(self) -> tuple[LiveQuery, ...]:
        """Those whose windows come out one after the other with the watermark, also without a tuple."""
        regular = (q for q in self.queries if q.window.period is not None)
        return tuple(q for q in regular if q.window.unprompted or q in self.spanned)

    @cached_property
    def only_edges(self) -> bool:
        """Whether results come out at fixed edges of arithmetic series only, and never without a tuple."""
        return len(self.periodic) == len(self.queries) and not self.spanned

    @cached_property
    def longest(self) -> int:
        """The length of the longest periodic windows."""
        return int(self.grid.length.max())

    @cached_property
    def overlap(self) -> int:
        """In how many periodic windows a slice lies, at most."""
        return int((self.grid.length // self.grid.slide + 1).sum()) if self.periodic else 0

    @cached_property
    def most_overlapping(self) -> int:
        """The most windows of one context-free query that a slice lies in."""
        return max((q.window.per_tuple for q in self.free), default=0)

    def first_start(self, after: int) -> int:
        """The smallest start of any context-free window that ends after `after`."""
        starts = [window.first_start(after) for _, window in self.uneven]
        if self.periodic:
            grid = self.grid
            if abs(after) >= LIMIT:
                return INF if after > 0 and not starts else (min(starts) if after > 0 else NEG_INF)
            number = (after - grid.length - grid.offset) // grid.slide + 1
            starts.append(int((number * grid.slide + grid.offset).min()))
        return int(min(starts))

    def number(self, query: LiveQuery) -> int:
        """The place of a query among all."""
        return next(i for i, q in enumerate(self.queries) if q is query)

    @cached_property
    def sessions(self) -> tuple[LiveQuery, ...]:
        """Plain sessions on time."""
        return tuple(q for q in self.queries if q.window.session_gap is not None)

    @cached_property
    def driven(self) -> tuple[LiveQuery, ...]:
        """Queries whose edges depend on the tuples in order."""
        return tuple(q for q in self.queries if isinstance(q.window, TupleDriven))

    @cached_property
    def aware(self) -> bool:
        """Whether a window may begin before the tuples that reveal it."""
        return any(q.window.context is Context.FORWARD_AWARE for q in self.driven)

    @cached_property
    def gaps(self) -> npt.NDArray[np.int64]:
        """Distinct session gaps, smallest first: the session classes."""
        gaps = {q.window.session_gap for q in self.sessions}
        return np.unique(np.array([gap for gap in gaps if gap is not None], dtype=np.int64))

    @cached_property
    def gap(self) -> int:
        """The smallest session gap, which alone decides where sessions cut; -1 without sessions."""
        return int(self.gaps[0]) if len(self.gaps) else -1

    def session_class(self, query: LiveQuery) -> int:
        """The place of the query's gap among the distinct gaps."""
        gap = query.window.session_gap
        assert gap is not None
        return int(np.searchsorted(self.gaps, gap))

    @cached_property
    def edges(self) -> EdgeSet:
        """Fixed edges of all context-free queries; sessions added on the fly are cut where they begin."""
        windows = [q.window for q in self.free if isinstance(q.window, ContextFreeWindow)]
        starts = [q.since for q in self.queries if q.since > NEG_INF]
        return EdgeSet.of(windows, starts)
