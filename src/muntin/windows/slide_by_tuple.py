"""A range of time that slides by tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.windows.arguments import constructor
from muntin.windows.base import Context, Ints
from muntin.windows.columns import matrix, owned
from muntin.windows.context_checks import KeyPositions
from muntin.windows.found import cuts_of_rows
from muntin.windows.tuple_driven import Contexts, Cuts, TupleDriven, Tuples
from muntin.windows.validation import plain, positive_span, text, whole_number

if TYPE_CHECKING:
    from muntin.windows import lookback_kernels
else:
    lookback_kernels = DeferredImport("muntin.windows.lookback_kernels")

__all__ = ["SlideByTuple", "slide_by_tuple"]


@dataclass(frozen=True, slots=True)
class SlideByTuple(TupleDriven):
    """At every n-th tuple, of time t: the tuples with times in [t + 1 - length, t + 1) up to this one.

    Forward context aware: the n-th tuple tells where the window began.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", positive_span(self.length, "length"))
        object.__setattr__(self, "every", whole_number(self.every, "every", cure="it counts tuples"))

    def describe(self) -> str:
        return f"range of {text(self.length)} every {self.every} tuple{'s' if self.every > 1 else ''}"

    def parameters(self) -> dict[str, object]:
        return {"length": plain(self.length), "every": self.every}

    def spans(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def reach(self) -> int:
        return self.length

    @property
    def holds_keys(self) -> bool:
        return self.every > 1

    def initial(self, n: int) -> Contexts:
        contexts = np.zeros(n, [(name, np.int64) for name in ("base", "begin", "seen")])
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
        rows = lookback_kernels.slides_by_tuple(
            owned(tuples.offsets),
            owned(tuples.time),
            owned(tuples.rank),
            matrix(contexts),
            self.length,
            self.every,
        )
        return cuts_of_rows(rows)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        return np.where(contexts["base"] < 0, seen, contexts["begin"])

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        counted = (contexts["base"] < 0) | (contexts["seen"] == positions.rank)
        return TupleDriven.contexts_fit(self, contexts, positions) and bool(counted.all())

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)


@constructor
def slide_by_tuple(length: object, every: int) -> SlideByTuple:
    """A range of time behind every n-th tuple.

    >>> slide_by_tuple("1 minute", every=10).describe()
    'range of 1 minute every 10 tuples'
    """
    return SlideByTuple(length, every)  # type: ignore[arg-type]  # __post_init__ reads durations
