"""Windows at fixed places on the time axis: one band, or everything since a landmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from muntin.errors import QueryError
from muntin.timeline import INF, NEG_INF, InstantLike, Micros, SpanLike, format_instant, instant
from muntin.windows.arguments import constructor
from muntin.windows.base import ContextFreeWindow, Ints, Window
from muntin.windows.grids import multiples
from muntin.windows.validation import flag, positive_span, shown, text


@dataclass(frozen=True, slots=True)
class FixedBand(ContextFreeWindow):
    """The single window [start, start + length).

    >>> FixedBand(100, 20).last_end(np.array([99, 100, 119, 120])).tolist() == [NEG_INF, 120, 120, NEG_INF]
    True
    """

    start: int
    length: int
    emit_empty: bool = False

    constructor = "fixed_band"

    def __post_init__(self) -> None:
        length = positive_span(self.length, "length")
        self._settle(start=_start(self.start, "length", length), length=length)
        flag(self.emit_empty, "emit_empty")

    @property
    def end(self) -> int:
        """The first time after the window."""
        return self.start + self.length

    def describe(self) -> str:
        return self._described(f"fixed band of {text(self.length)} from {_point(self.start, self.length)}")

    def parameters(self) -> dict[str, object]:
        return Window.parameters(self) | {"start": _point(self.start, self.length)}

    def spans(self) -> tuple[int, ...]:
        return _in_one_kind(self.start, self.length)

    def edges(self, lo: int, hi: int) -> Ints:
        return np.array([edge for edge in (int(self.start), self.end) if lo <= edge <= hi], np.int64)

    def starts(self, lo: int, hi: int) -> Ints:
        return self.edges(lo, min(hi, self.start))

    def overlapping(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        hit = after < self.end <= upto and bool(((last >= self.start) & (first < self.end)).any())
        return np.full(int(hit), self.start, np.int64), np.full(int(hit), self.end, np.int64)

    def last_end(self, times: Ints) -> Ints:
        return np.where((times >= self.start) & (times < self.end), self.end, NEG_INF)

    def first_start(self, after: int) -> int:
        return int(self.start) if self.end > after else INF


@dataclass(frozen=True, slots=True)
class Landmark(ContextFreeWindow):
    """From a landmark to now: the windows [start, start + k * every) for k = 1, 2, ...

    They never end, so at the end of a stream the first edge after the newest tuple
    is the last one.

    >>> _, ends = Landmark(0, 10).windows(np.array([12, 35]), after=20, upto=50)
    >>> ends.tolist()
    [30, 40, 50]
    """

    start: int
    every: int
    emit_empty: bool = False

    constructor = "landmark"
    endless: ClassVar[bool] = True
    unprompted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        every = positive_span(self.every, "every")
        self._settle(start=_start(self.start, "every", every), every=every)
        flag(self.emit_empty, "emit_empty")

    def describe(self) -> str:
        return self._described(f"landmark from {_point(self.start, self.every)} every {text(self.every)}")

    def parameters(self) -> dict[str, object]:
        return Window.parameters(self) | {"start": _point(self.start, self.every)}

    @property
    def period(self) -> int:
        return self.every

    @property
    def holds_keys(self) -> bool:
        return True

    @property
    def earliest(self) -> int:
        return self.start

    def spans(self) -> tuple[int, ...]:
        return _in_one_kind(self.start, self.every)

    def edges(self, lo: int, hi: int) -> Ints:
        return multiples(self.start, self.every, max(lo, self.start), hi)

    def starts(self, lo: int, hi: int) -> Ints:
        return self.edges(lo, min(hi, self.start))

    def overlapping(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        reached = np.searchsorted(last, self.start)
        if reached == len(last):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if upto == INF:
            newest = int(last[-1])
            upto = newest - (newest - self.start) % self.every + self.every
        # The first span that reaches the landmark overlaps every window that ends after it began.
        begun = max(after, int(first[reached]), self.start)
        ends = multiples(self.start, self.every, begun + 1, upto)
        return np.full(len(ends), self.start, np.int64), ends

    def last_end(self, times: Ints) -> Ints:
        return np.where(times >= self.start, INF, NEG_INF)

    def first_start(self, after: int) -> int:
        return int(self.start)


def _start(value: object, name: str, length: int) -> int:
    """A point in time; next to a duration an integer means microseconds, but not the other way round."""
    start = instant(value, "start")
    if isinstance(start, Micros) and not isinstance(length, Micros):
        raise QueryError(
            f"{name} must be a duration where start is a date: got {shown(length)} and {shown(value)}; "
            f'did you mean "{length} seconds"? On an integer time column start is an integer too'
        )
    return start


def _point(start: int, length: int) -> str | int:
    """A start as its user would write it; next to a duration an integer means microseconds."""
    return format_instant(Micros(start) if isinstance(length, Micros) else start)


def _in_one_kind(start: int, length: int) -> tuple[int, ...]:
    return length, (Micros(start) if isinstance(length, Micros) else start)


@constructor
def fixed_band(start: InstantLike, length: SpanLike, *, emit_empty: bool = False) -> FixedBand:
    """One window, from `start` (a datetime, an ISO text or an integer) on.

    With `emit_empty` it is also emitted when a key has tuples before and after it, and none in it.

    >>> fixed_band("2024-01-01", "1 day").describe()
    'fixed band of 1 day from 2024-01-01T00:00:00+00:00'
    """
    # __post_init__ reads times and durations.
    return FixedBand(start, length, emit_empty)  # type: ignore[arg-type]


@constructor
def landmark(start: InstantLike, every: SpanLike, *, emit_empty: bool = False) -> Landmark:
    """Everything since `start`, reported at regular times.

    With `emit_empty`, reports before the first tuple since `start` are emitted as well, if the key had
    tuples before.

    >>> landmark("2024-01-01", every="1 hour").describe()
    'landmark from 2024-01-01T00:00:00+00:00 every 1 hour'
    """
    # __post_init__ reads times and durations.
    return Landmark(start, every, emit_empty)  # type: ignore[arg-type]
