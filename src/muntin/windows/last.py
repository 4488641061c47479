"""Multi-measure windows: the last n tuples, at regular times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.timeline import INF, NEG_INF
from muntin.windows.arguments import constructor
from muntin.windows.base import Context, Ints
from muntin.windows.columns import matrix, owned
from muntin.windows.context_checks import KeyPositions
from muntin.windows.found import cuts_of_rows
from muntin.windows.tuple_driven import Contexts, Cuts, TupleDriven, Tuples
from muntin.windows.validation import plain, positive_span, same_kind, text, time_offset, whole_number

if TYPE_CHECKING:
    from muntin.windows import lookback_kernels
else:
    lookback_kernels = DeferredImport("muntin.windows.lookback_kernels")

__all__ = ["Last", "last"]


@dataclass(frozen=True, slots=True)
class Last(TupleDriven):
    """At every edge offset + k * every after the first tuple: the last n tuples before it.

    Forward context aware: only the tuples before an edge tell where its window
    begins [scotty §4.4]. It comes out at every edge, also when the key is silent.

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

    def __post_init__(self) -> None:
        every, offset = positive_span(self.every, "every"), time_offset(self.offset)
        same_kind(every=every, offset=offset)
        object.__setattr__(self, "n", whole_number(self.n, "n"))
        object.__setattr__(self, "every", every)
        object.__setattr__(self, "offset", type(offset)(offset % every))

    def describe(self) -> str:
        words = f"last {self.n} every {text(self.every)}"
        return words + (f", offset {text(self.offset)}" if self.offset else "")

    def parameters(self) -> dict[str, object]:
        given: dict[str, object] = {"n": self.n, "every": plain(self.every)}
        return given | ({"offset": plain(self.offset)} if self.offset else {})

    @property
    def period(self) -> int:
        return self.every

    def spans(self) -> tuple[int, ...]:
        return self.every, self.offset

    def initial(self, n: int) -> Contexts:
        contexts = np.zeros(n, [(name, np.int64) for name in ("base", "edge", "seen")])
        contexts["base"] = -1
        return contexts

    def cut(
        self,
        contexts: Contexts,
        tuples: Tuples,
        upto: int,
        closing: bool = False,
        partial: bool = False,
        newest: int | None = None,
    ) -> Cuts:
        if closing or upto == INF:
            behind = self._edge_after(tuples, newest)
            upto = behind if upto == INF else max(upto, behind)
        until = np.full(len(contexts), upto, np.int64)
        if tuples.until is not None:
            until = np.minimum(until, np.maximum(tuples.until, self._edges_behind(tuples)))
        rows = lookback_kernels.last_windows(
            owned(tuples.offsets),
            owned(tuples.time),
            owned(tuples.rank),
            matrix(contexts),
            self.n,
            self.every,
            self.offset,
            until,
        )
        return cuts_of_rows(rows)

    def _edge_after(self, tuples: Tuples, newest: int | None) -> int:
        """The first edge after the newest tuple, where an endless list of windows stops."""
        if newest is None:
            newest = int(tuples.time.max()) if len(tuples) else 0
        return self.complete_at(newest)

    def complete_at(self, newest: int) -> int:
        return newest - (newest - self.offset) % self.every + self.every

    def _edges_behind(self, tuples: Tuples) -> Ints:
        """Per segment the first edge after its last tuple."""
        behind = np.full(len(tuples.offsets) - 1, NEG_INF, np.int64)
        filled = tuples.offsets[1:] > tuples.offsets[:-1]
        last = tuples.time[tuples.offsets[1:][filled] - 1]
        behind[filled] = last - (last - self.offset) % self.every + self.every
        return behind

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        first = np.maximum(contexts["seen"] - self.n, contexts["base"])
        return np.where(contexts["base"] < 0, seen, first)

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        # Windows are emitted from the context's next edge on, which lies after a tuple.
        known = contexts["base"] >= 0
        behind = (contexts["edge"] > positions.time) & (contexts["seen"] > contexts["base"])
        return TupleDriven.contexts_fit(self, contexts, positions) and bool((behind | ~known).all())

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)


@constructor
def last(n: int, every: object, offset: object = 0) -> Last:
    """The last n tuples of a key, every so often.

    >>> last(10, every="5 seconds").describe()
    'last 10 every 5 seconds'
    """
    return Last(n, every, offset)  # type: ignore[arg-type]  # __post_init__ reads durations
