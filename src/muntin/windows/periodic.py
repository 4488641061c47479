"""Tumbling and sliding windows, on time or on another measure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from muntin.timeline import LengthLike
from muntin.windows.arguments import constructor
from muntin.windows.base import Window
from muntin.windows.grids import EvenlySpaced, Layout
from muntin.windows.measured import EvenlySpacedOnMeasure, whole_units
from muntin.windows.validation import (
    empty_on_time,
    fail,
    flag,
    numbers_of_period,
    spans_of_period,
    text,
)

MOST_OPEN = 1_000_000
"""Bounds the open windows of a key on a measure: its context has 8 bytes for the begin of each."""


class _TumblingOrSliding(Window):
    """The description of windows of one length, which tumble if they slide by it."""

    __slots__ = ()

    length: float
    slide: float

    @property
    def constructor(self) -> str:  # type: ignore[override]  # one class, two constructors
        return "tumbling" if self.slide == self.length else "sliding"

    def describe(self) -> str:
        every = f" every {text(self.slide)}" if self.slide != self.length else ""
        return self._described(f"{self.constructor} {text(self.length)}{every}")

    def parameters(self) -> dict[str, object]:
        given = Window.parameters(self)
        if self.slide == self.length:
            del given["slide"]
        return {"every" if name == "slide" else name: value for name, value in given.items()}


@dataclass(frozen=True, slots=True)
class Periodic(_TumblingOrSliding, EvenlySpaced):
    """Windows [offset + k * slide, offset + k * slide + length), for every integer k.

    Tumbling when slide equals length, overlapping when it is smaller, with gaps
    between the windows when it is larger.

    >>> import numpy as np
    >>> starts, ends = Periodic(10, 20).windows(np.array([3, 12, 25]), after=-100, upto=100)
    >>> list(zip(starts.tolist(), ends.tolist()))
    [(0, 10), (20, 30)]
    """

    length: int
    slide: int
    offset: int = 0
    emit_empty: bool = False

    def __post_init__(self) -> None:
        length, slide, offset = spans_of_period(self.length, self.slide, "slide", self.offset)
        flag(self.emit_empty, "emit_empty")
        # Equal grids make equal windows, and sums with a time stay small.
        self._settle(length=length, slide=slide, offset=type(offset)(offset % slide))

    @property
    def per_tuple(self) -> int:
        return -(-self.length // self.slide)

    @property
    def series(self) -> tuple[int, int, int]:
        return self.length, self.slide, self.offset

    def progressions(self, in_order: bool = False) -> list[tuple[int, int]]:
        starts = (self.offset, self.slide)
        return [starts] if in_order else [starts, (self.offset + self.length, self.slide)]

    def slices_per_window(self, rate: float) -> float:
        return self.length * rate

    def spans(self) -> tuple[int, ...]:
        return self.length, self.slide, self.offset

    def layout(self) -> Layout:
        return self.offset, self.slide, 1, self.offset + self.length, self.slide


@dataclass(frozen=True, slots=True)
class MeasuredPeriodic(_TumblingOrSliding, EvenlySpacedOnMeasure):
    """Tumbling or sliding windows on a measure.

    >>> from muntin.windows.tuple_driven import Tuples
    >>> window = MeasuredPeriodic(10, 10, 0, "km")
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 5, 9], km=[3, 8, 7, 21]), upto=9)
    >>> cuts.intervals(), cuts.low.tolist(), cuts.complete_at.tolist()
    ([(1, 9)], [0], [9])
    """

    length: float
    slide: float
    offset: float = 0
    measure: str | None = None

    def __post_init__(self) -> None:
        length, slide, offset = numbers_of_period(self.length, self.slide, "slide", self.offset, self.measure)
        self._settle(length=length, slide=slide, offset=offset)
        if self.per_tuple > MOST_OPEN:
            raise fail(f"every must be at least a {MOST_OPEN}th of length", self.slide, "make it larger")

    @property
    def on_units(self) -> tuple[Periodic, int]:
        return _on_units(self)


@lru_cache(maxsize=1024)
def _on_units(window: MeasuredPeriodic) -> tuple[Periodic, int]:
    (length, slide, offset), scale = whole_units(window.length, window.slide, window.offset)
    return Periodic(length, slide, offset), scale


@constructor
def tumbling(
    length: LengthLike, offset: LengthLike = 0, *, measure: str | None = None, emit_empty: bool = False
) -> Periodic | MeasuredPeriodic:
    """Windows of one length without overlap or gap, aligned to the epoch plus `offset`.

    With `measure`, the lengths are in units of that column instead of time.

    >>> tumbling("1 minute").describe()
    'tumbling 1 minute'
    >>> tumbling(5, measure="odometer").describe()
    'tumbling 5 on odometer'
    """
    return _periodic(length, length, offset, measure, emit_empty)


@constructor
def sliding(
    length: LengthLike,
    every: LengthLike,
    offset: LengthLike = 0,
    *,
    measure: str | None = None,
    emit_empty: bool = False,
) -> Periodic | MeasuredPeriodic:
    """Windows of one length that start at regular distances, overlapping or with gaps.

    >>> sliding("10 minutes", every="5 seconds").describe()
    'sliding 10 minutes every 5 seconds'
    >>> sliding("1 minute", every="0 seconds")
    Traceback (most recent call last):
    muntin.errors.QueryError: slide must be positive: got "0 seconds"; did you mean tumbling("1 minute")?
    """
    return _periodic(length, every, offset, measure, emit_empty)


def _periodic(
    length: LengthLike, slide: LengthLike, offset: LengthLike, measure: str | None, emit_empty: bool
) -> Periodic | MeasuredPeriodic:
    # __post_init__ reads durations, timedeltas and integers, on a measure numbers.
    if measure is None:
        return Periodic(length, slide, offset, emit_empty)  # type: ignore[arg-type]
    empty_on_time(emit_empty, measure)
    return MeasuredPeriodic(length, slide, offset, measure)  # type: ignore[arg-type]
