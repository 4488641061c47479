"""Session windows: activity without a longer silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.windows.arguments import constructor
from muntin.windows.base import Context, Ints, Window
from muntin.windows.columns import matrix, owned
from muntin.windows.found import cuts_of_rows
from muntin.windows.measured_session import MeasuredSession
from muntin.windows.tuple_driven import Contexts, Cuts, TupleDriven, Tuples
from muntin.windows.validation import column_name, longer_than_gap, plain, positive_span, same_kind, text

if TYPE_CHECKING:
    from muntin.windows import session_kernels
else:
    session_kernels = DeferredImport("muntin.windows.session_kernels")

__all__ = ["CappedSession", "Session", "session"]


@dataclass(frozen=True, slots=True)
class Session(Window):
    """Tuples whose neighbours are at most `gap` apart: [first, last + gap).

    Sessions are not cut tuple by tuple: the slicer separates slices wherever a gap
    lies between neighbours, and every session, also of larger gaps, is a run of
    such slices. [scotty §6.1]

    >>> Session("30 seconds").describe()
    'session 30 seconds'
    """

    gap: int

    context: ClassVar[Context] = Context.FORWARD_FREE
    constructor: ClassVar[str] = "session"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", positive_span(self.gap, "gap"))

    def describe(self) -> str:
        return f"session {text(self.gap)}"

    def parameters(self) -> dict[str, object]:
        return {"gap": plain(self.gap)}

    def spans(self) -> tuple[int, ...]:
        return (self.gap,)

    @property
    def session_gap(self) -> int:
        return self.gap

    def complete_at(self, newest: int) -> int:
        return newest + self.gap + 1


@dataclass(frozen=True, slots=True)
class CappedSession(TupleDriven):
    """Sessions that end after `max_length` at the latest: a tuple at or after that starts a new one.

    They end at min(last + gap, first + max_length).

    >>> window = CappedSession(10, 25)
    >>> window.cut(window.initial(1), Tuples.of([0, 10, 20, 30, 45]), upto=100).intervals()
    [(0, 25), (30, 40), (45, 55)]
    """

    gap: int
    max_length: int

    context: ClassVar[Context] = Context.FORWARD_FREE
    constructor: ClassVar[str] = "session"
    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        gap = positive_span(self.gap, "gap")
        max_length = positive_span(self.max_length, "max_length", cure="leave it out for no limit")
        same_kind(gap=gap, max_length=max_length)
        longer_than_gap(gap, max_length)
        object.__setattr__(self, "gap", gap)
        object.__setattr__(self, "max_length", max_length)

    def describe(self) -> str:
        return f"session {text(self.gap)}, at most {text(self.max_length)}"

    def parameters(self) -> dict[str, object]:
        return {"gap": plain(self.gap), "max_length": plain(self.max_length)}

    def spans(self) -> tuple[int, ...]:
        return self.gap, self.max_length

    @property
    def holds_keys(self) -> bool:
        return False

    def complete_at(self, newest: int) -> int:
        return newest + self.gap + 1

    def initial(self, n: int) -> Contexts:
        contexts = np.zeros(n, [(name, np.int64) for name in ("begin", "first", "last", "seen")])
        contexts["begin"] = -1
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
        rows, opened = session_kernels.capped_sessions(
            owned(tuples.offsets),
            owned(tuples.time),
            owned(tuples.rank),
            matrix(contexts),
            self.gap,
            self.max_length,
            upto,
            closing,
        )
        return cuts_of_rows(rows, opened=opened)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        return np.where(contexts["begin"] >= 0, contexts["begin"], seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        key = np.flatnonzero(contexts["begin"] >= 0)
        return key, contexts["begin"][key]


@constructor
def session(
    gap: object, max_length: object = None, *, measure: str | None = None
) -> Session | CappedSession | MeasuredSession:
    """Windows of activity: neighbours in one session are at most `gap` apart.

    With `max_length`, a session also ends that long after its first tuple. With
    `measure`, both are in units of that column instead of time.

    >>> session("30 seconds", max_length="1 hour").describe()
    'session 30 seconds, at most 1 hour'
    >>> session(0.5, measure="odometer").describe()
    'session 0.5 on odometer'
    """
    # __post_init__ reads numbers, and durations where it is time.
    if column_name(measure) is not None:
        return MeasuredSession(gap, measure, max_length)  # type: ignore[arg-type]
    if max_length is None:
        return Session(gap)  # type: ignore[arg-type]
    return CappedSession(gap, max_length)  # type: ignore[arg-type]
