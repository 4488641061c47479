"""Windows that look back: the last n tuples at regular times, and a range of time at every n-th tuple.

Forward context aware: only the tuples before an edge determine where its window begins. [scotty §4.4]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.timeline import INF, NEG_INF, Micros, SpanLike
from muntin.windows.arguments import constructor
from muntin.windows.base import Context, Ints
from muntin.windows.context_checks import KeyPositions
from muntin.windows.kernel_arguments import arrays, cuts_of_rows, matrix
from muntin.windows.tuple_driven import BLOCK_BITS, Contexts, Cuts, Ending, TupleDriven, Tuples
from muntin.windows.validation import positive_span, same_kind, text, time_offset, whole_number

if TYPE_CHECKING:
    from muntin.windows import lookback_kernels
else:
    lookback_kernels = DeferredImport("muntin.windows.lookback_kernels")


class OnGrid(Protocol):
    """A window that is emitted at the edges offset + k * every."""

    @property
    def every(self) -> int: ...
    @property
    def offset(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Last(TupleDriven):
    """At every edge offset + k * every after the first tuple: the last n tuples before it.

    A window is emitted at every edge, also when the key is silent.

    >>> window = Last(2, 10)
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 3, 14]), upto=30)
    >>> cuts.intervals(), cuts.begin.tolist(), cuts.end.tolist()
    ([(2, 10), (3, 20), (3, 30)], [1, 2, 2], [3, 4, 4])
    """

    n: int
    every: int
    offset: int = 0

    context: ClassVar[Context] = Context.FORWARD_AWARE
    constructor: ClassVar[str] = "last"
    timed: ClassVar[bool] = True
    unprompted: ClassVar[bool] = True
    context_fields: ClassVar[tuple[str, ...]] = ("base", "edge", "seen")

    def __post_init__(self) -> None:
        every, offset = positive_span(self.every, "every"), time_offset(self.offset)
        same_kind(every=every, offset=offset)
        self._settle(n=whole_number(self.n, "n"), every=every, offset=type(offset)(offset % every))

    def describe(self) -> str:
        return self._described(f"last {self.n} every {text(self.every)}")

    @property
    def period(self) -> int:
        return self.every

    def spans(self) -> tuple[int, ...]:
        return self.every, self.offset

    def slices_per_window(self, rate: float) -> float:
        return _slices(self.n, rate * unit_of_rate(self.every) + 2 * unit_of_rate(self.every) / self.every)

    def complete_at(self, newest: int) -> int:
        return first_edge_after(newest, self.every, self.offset)

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        until = last_edges(self, contexts, tuples, ending)
        rows = lookback_kernels.last_windows(
            *arrays(tuples), matrix(contexts), self.n, self.every, self.offset, until
        )
        return cuts_of_rows(rows)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        first = np.maximum(contexts["seen"] - self.n, contexts["base"])
        return np.where(contexts["base"] < 0, seen, first)

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        return TupleDriven.contexts_fit(self, contexts, positions) and edges_fit(contexts, positions)


def first_edge_after(time: int, every: int, offset: int) -> int:
    """The first edge offset + k * every after a time."""
    return time - (time - offset) % every + every


def last_edges(window: OnGrid, contexts: Contexts, tuples: Tuples, ending: Ending) -> Ints:
    """Per segment, the last edge at which a window on a grid in time is emitted.

    When closing, and at the end of the stream, the first edge after the newest tuple; at the end of the
    life of a key, at least the first edge after its last tuple.
    """
    upto = ending.upto
    if ending.closing or upto == INF:
        newest = ending.newest
        if newest is None:
            newest = int(tuples.time.max()) if len(tuples) else 0
        edge = first_edge_after(newest, window.every, window.offset)
        upto = edge if upto == INF else max(upto, edge)
    until = np.full(len(contexts), upto, np.int64)
    if tuples.until is not None:
        edges = np.full(len(contexts), NEG_INF, np.int64)
        filled = tuples.offsets[1:] > tuples.offsets[:-1]
        last = tuples.time[tuples.offsets[1:][filled] - 1]
        edges[filled] = last - (last - window.offset) % window.every + window.every
        until = np.minimum(until, np.maximum(tuples.until, edges))
    return until


def edges_fit(contexts: Contexts, positions: KeyPositions) -> bool:
    """Whether the next edge of each context lies after a tuple, from which on windows are emitted."""
    known = contexts["base"] >= 0
    behind = (contexts["edge"] > positions.time) & (contexts["seen"] > contexts["base"])
    return bool((behind | ~known).all())


@dataclass(frozen=True, slots=True)
class SlideByTuple(TupleDriven):
    """At every n-th tuple, of time t: the tuples with times in [t + 1 - length, t + 1) up to this one.

    >>> window = SlideByTuple(10, 2)
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 8, 12, 17]), upto=20)
    >>> cuts.intervals(), cuts.begin.tolist(), cuts.end.tolist()
    ([(-1, 9), (8, 18)], [0, 1], [2, 4])
    """

    length: int
    every: int

    context: ClassVar[Context] = Context.FORWARD_AWARE
    constructor: ClassVar[str] = "slide_by_tuple"
    repeats: ClassVar[bool] = True
    context_fields: ClassVar[tuple[str, ...]] = ("base", "begin", "seen")

    def __post_init__(self) -> None:
        length = positive_span(self.length, "length")
        self._settle(length=length, every=whole_number(self.every, "every", cure="it counts tuples"))

    def describe(self) -> str:
        return f"range of {text(self.length)} every {self.every} tuple{'s' if self.every > 1 else ''}"

    def spans(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def reach(self) -> int:
        return self.length

    @property
    def holds_keys(self) -> bool:
        return self.every > 1

    def slices_per_window(self, rate: float) -> float:
        unit = unit_of_rate(self.length)
        return _slices(self.length / unit, rate * unit + 2 / self.every)

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        rows = lookback_kernels.slides_by_tuple(*arrays(tuples), matrix(contexts), self.length, self.every)
        return cuts_of_rows(rows)

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        counted = (contexts["base"] < 0) | (contexts["seen"] == positions.rank)
        return TupleDriven.contexts_fit(self, contexts, positions) and bool(counted.all())


def unit_of_rate(length: int) -> int:
    """The time from one tuple to the next that plans assume: a millisecond, or 1 on a column of integers."""
    return 1_000 if isinstance(length, Micros) else 1


def _slices(tuples: float, edges: float) -> float:
    """The number of slices of this many tuples, with so many edges per tuple."""
    return tuples * min(1.0, edges + 2.0**-BLOCK_BITS)


@constructor
def last(n: int, every: SpanLike, offset: SpanLike = 0) -> Last:
    """The last n tuples of a key, at regular times.

    >>> last(10, every="5 seconds").describe()
    'last 10 every 5 seconds'
    """
    return Last(n, every, offset)  # type: ignore[arg-type]  # __post_init__ reads durations


@constructor
def slide_by_tuple(length: SpanLike, every: int) -> SlideByTuple:
    """A range of time behind every n-th tuple.

    >>> slide_by_tuple("1 minute", every=10).describe()
    'range of 1 minute every 10 tuples'
    """
    return SlideByTuple(length, every)  # type: ignore[arg-type]  # __post_init__ reads durations
