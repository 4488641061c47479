"""Windows at fixed places on the time axis: one band, or everything since a landmark."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.timeline import INF, NEG_INF, Micros, format_instant, instant
from muntin.windows.arguments import constructor
from muntin.windows.base import ContextFreeWindow, Ints
from muntin.windows.grids import multiples
from muntin.windows.validation import plain, positive_span, text

__all__ = ["FixedBand", "Landmark", "fixed_band", "landmark"]


@dataclass(frozen=True, slots=True)
class FixedBand(ContextFreeWindow):
    """The single window [start, start + length).

    >>> FixedBand(100, 20).last_end(np.array([99, 100, 119, 120])).tolist() == [NEG_INF, 120, 120, NEG_INF]
    True
    """

    start: int
    length: int

    constructor = "fixed_band"

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", instant(self.start, "start"))
        object.__setattr__(self, "length", positive_span(self.length, "length"))

    @property
    def end(self) -> int:
        """The first time after the window."""
        return self.start + self.length

    def describe(self) -> str:
        return f"fixed band of {text(self.length)} from {_point(self.start, self.length)}"

    def parameters(self) -> dict[str, object]:
        return {"start": _point(self.start, self.length), "length": plain(self.length)}

    def spans(self) -> tuple[int, ...]:
        return _in_one_kind(self.start, self.length)

    def edges(self, lo: int, hi: int) -> Ints:
        return np.array([edge for edge in (int(self.start), self.end) if lo <= edge <= hi], np.int64)

    def starts(self, lo: int, hi: int) -> Ints:
        return self.edges(lo, min(hi, self.start))

    def windows(self, times: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        hit = after < self.end <= upto and bool(((times >= self.start) & (times < self.end)).any())
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

    constructor = "landmark"

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", instant(self.start, "start"))
        object.__setattr__(self, "every", positive_span(self.every, "every"))

    def describe(self) -> str:
        return f"landmark from {_point(self.start, self.every)} every {text(self.every)}"

    def parameters(self) -> dict[str, object]:
        return {"start": _point(self.start, self.every), "every": plain(self.every)}

    def spans(self) -> tuple[int, ...]:
        return _in_one_kind(self.start, self.every)

    def edges(self, lo: int, hi: int) -> Ints:
        return multiples(self.start, self.every, max(lo, self.start), hi)

    def starts(self, lo: int, hi: int) -> Ints:
        return self.edges(lo, min(hi, self.start))

    def windows(self, times: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        inside = times[np.searchsorted(times, self.start) :]
        if not len(inside):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if upto == INF:
            upto = int(inside[-1]) + self.every
        # The earliest tuple is in every window that ends after it.
        ends = multiples(self.start, self.every, max(after, int(inside[0])) + 1, upto)
        return np.full(len(ends), self.start, np.int64), ends

    def last_end(self, times: Ints) -> Ints:
        return np.where(times >= self.start, INF, NEG_INF)

    def first_start(self, after: int) -> int:
        return int(self.start)


def _point(start: int, length: int) -> str | int:
    """A start as its user would write it; beside a duration an integer means microseconds."""
    return format_instant(Micros(start) if isinstance(length, Micros) else start)


def _in_one_kind(start: int, length: int) -> tuple[int, ...]:
    return length, (Micros(start) if isinstance(length, Micros) else start)


@constructor
def fixed_band(start: object, length: object) -> FixedBand:
    """One window, from `start` (a datetime, an ISO text or an integer) on.

    >>> fixed_band("2024-01-01", "1 day").describe()
    'fixed band of 1 day from 2024-01-01T00:00:00+00:00'
    """
    return FixedBand(start, length)  # type: ignore[arg-type]  # __post_init__ reads times and durations


@constructor
def landmark(start: object, every: object) -> Landmark:
    """Everything since `start`, reported every so often.

    >>> landmark("2024-01-01", every="1 hour").describe()
    'landmark from 2024-01-01T00:00:00+00:00 every 1 hour'
    """
    return Landmark(start, every)  # type: ignore[arg-type]  # __post_init__ reads times and durations
