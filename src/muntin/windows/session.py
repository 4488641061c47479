"""Session windows: activity without a longer silence."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.expressions import Expr, as_expr
from muntin.timeline import LIMIT, LengthLike
from muntin.windows.arguments import constructor
from muntin.windows.base import Context, Window
from muntin.windows.kernel_arguments import Numbers, arrays, cuts_of_rows, matrix, measure_values, owned
from muntin.windows.measured import needs_whole_numbers
from muntin.windows.reaching_session import ReachingSession
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, TupleDriven, Tuples
from muntin.windows.validation import (
    column_name,
    fail,
    longer_than_gap,
    measured_unit,
    positive_number,
    positive_span,
    same_kind,
    text,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from muntin.windows import session_kernels
else:
    session_kernels = DeferredImport("muntin.windows.session_kernels")


class _AnySession(Window):
    """The description of sessions."""

    __slots__ = ()

    gap: float
    context: ClassVar[Context] = Context.FORWARD_FREE
    constructor: ClassVar[str] = "session"

    def describe(self) -> str:
        return self._described(f"session {text(self.gap)}")


@dataclass(frozen=True, slots=True)
class Session(_AnySession):
    """Tuples whose neighbours are at most `gap` apart: [first, last + gap).

    Sessions are not cut tuple by tuple: the slicer separates slices wherever a gap
    lies between neighbours, and every session, also of larger gaps, is a run of
    such slices. [scotty §6.1]

    >>> Session("30 seconds").describe()
    'session 30 seconds'
    """

    gap: int

    def __post_init__(self) -> None:
        self._settle(gap=positive_span(self.gap, "gap"))

    def spans(self) -> tuple[int, ...]:
        return (self.gap,)

    @property
    def session_gap(self) -> int:
        return self.gap

    def complete_at(self, newest: int) -> int:
        return newest + self.gap + 1


class _CutSession(_AnySession, TupleDriven):
    """Sessions that are cut tuple by tuple, at gaps of a measure."""

    __slots__ = ()

    max_length: Any
    context_fields: ClassVar[tuple[str, ...]] = ("seen", "position", "begin", "start", "last", "low")

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        measure = self._measured(tuples)
        unit = measure.dtype.type
        rows, marks, opened = session_kernels.sessions(
            *arrays(tuples),
            matrix(contexts),
            matrix(contexts, measure.dtype),
            measure,
            unit(self.gap),
            self.max_length is not None,
            unit(self.max_length or 0),
            self.timed,
            ending.upto,
            ending.closing,
        )
        return cuts_of_rows(rows, None if self.timed else marks, opened)

    @abstractmethod
    def _measured(self, tuples: Tuples) -> Numbers:
        """The times of the tuples, or their values of the measure."""


@dataclass(frozen=True, slots=True)
class CappedSession(_CutSession):
    """Sessions that end after `max_length` at the latest: a tuple at or after that starts a new one.

    They end at min(last + gap, first + max_length).

    >>> window = CappedSession(10, 25)
    >>> window.cut(window.initial(1), Tuples.of([0, 10, 20, 30, 45]), upto=100).intervals()
    [(0, 25), (30, 40), (45, 55)]
    """

    gap: int
    max_length: int

    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        gap = positive_span(self.gap, "gap")
        max_length = positive_span(self.max_length, "max_length", cure="leave it out for no limit")
        same_kind(gap=gap, max_length=max_length)
        longer_than_gap(gap, max_length)
        self._settle(gap=gap, max_length=max_length)

    def spans(self) -> tuple[int, ...]:
        return self.gap, self.max_length

    @property
    def holds_keys(self) -> bool:
        return False

    def complete_at(self, newest: int) -> int:
        return newest + self.gap + 1

    def _measured(self, tuples: Tuples) -> Numbers:
        return owned(tuples.time)


@dataclass(frozen=True, slots=True)
class MeasuredSession(_CutSession):
    """Sessions on a measure: a tuple more than `gap` ahead of the one before starts a new one.

    With `max_length`, so does a tuple that far from the first. `low` is the first
    position, `high` the last one plus the gap, or `low` plus the greatest length.

    >>> window = MeasuredSession(5, measure="km")
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 9], km=[0, 5, 11]), upto=9)
    >>> cuts.intervals(), cuts.low.tolist(), cuts.high.tolist()
    ([(1, 9)], [0], [10])
    """

    gap: float
    max_length: float | None = None
    measure: str | None = None

    def __post_init__(self) -> None:
        unit = measured_unit(self.measure)
        gap = _length(self.gap, "gap", unit)
        if self.max_length is not None:
            max_length = _length(self.max_length, "max_length", unit)
            longer_than_gap(gap, max_length)
            self._settle(max_length=max_length)
        self._settle(gap=gap)

    def _measured(self, tuples: Tuples) -> Numbers:
        measure = measure_values(tuples, self)
        if measure.dtype == np.int64 and any(length % 1 for length in (self.gap, self.max_length or 0)):
            raise needs_whole_numbers(self)
        return measure


def _length(value: object, name: str, unit: str) -> Any:
    length = positive_number(value, name, unit)
    if length >= LIMIT:
        raise fail(f"{name} must be below 2**62", length, "use a coarser unit for the column")
    return length


@constructor
def session(
    gap: LengthLike | Expr | pc.Expression,
    max_length: LengthLike | None = None,
    *,
    measure: str | None = None,
) -> Session | CappedSession | MeasuredSession | ReachingSession:
    """Windows of activity: neighbours in one session are at most `gap` apart.

    With `max_length`, a session also ends that long after its first tuple. With
    `measure`, both are in units of that column instead of time. `gap` may be an expression
    such as `mt.col("timeout")`: then each tuple has its own gap.

    >>> session("30 seconds", max_length="1 hour").describe()
    'session 30 seconds, at most 1 hour'
    >>> session(0.5, measure="odometer").describe()
    'session 0.5 on odometer'
    >>> import muntin as mt
    >>> session(mt.col("timeout")).describe()
    'session timeout'
    """
    # __post_init__ reads numbers, and durations where it is time.
    if isinstance(gap, Expr) or hasattr(gap, "cast"):  # an expression of Arrow, or a column of Spark
        if measure is not None:
            cure = "leave measure out, or give one gap for all tuples"
            raise fail("gap must be a number on a measure", str(as_expr(gap)), cure)
        return ReachingSession(gap, max_length)  # type: ignore[arg-type]
    if isinstance(gap, str) and gap.isidentifier():
        cure = f'if it is a column, write mt.col("{gap}"), in a file gap_expression = "{gap}"'
        raise fail("gap must be a length of time or an expression", gap, cure)
    if column_name(measure) is not None:
        return MeasuredSession(gap, max_length, measure)  # type: ignore[arg-type]
    if max_length is None:
        return Session(gap)  # type: ignore[arg-type]
    return CappedSession(gap, max_length)  # type: ignore[arg-type]
