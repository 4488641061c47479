"""Cumulating windows: growing sums within a period."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.errors import QueryError
from muntin.windows.arguments import constructor
from muntin.windows.base import ContextFreeWindow, Ints
from muntin.windows.grids import clamp, multiples, unseen_ranges
from muntin.windows.measured_cumulate import MeasuredCumulate
from muntin.windows.validation import (
    column_name,
    empty_on_time,
    flag,
    plain,
    positive_span,
    same_kind,
    shown,
    text,
    time_offset,
    with_empty,
)

__all__ = ["Cumulate", "cumulate"]


@dataclass(frozen=True, slots=True)
class Cumulate(ContextFreeWindow):
    """For each period [b, b + length): the windows [b, b + step), [b, b + 2 * step), ... [b, b + length).

    >>> starts, ends = Cumulate(30, 10).windows(np.array([12, 31]), after=-100, upto=100)
    >>> list(zip(starts.tolist(), ends.tolist()))
    [(0, 20), (0, 30), (30, 40), (30, 50), (30, 60)]
    """

    length: int
    step: int
    offset: int = 0
    emit_empty: bool = False

    constructor = "cumulate"

    def __post_init__(self) -> None:
        length = positive_span(self.length, "length")
        step = positive_span(self.step, "step", cure=f"did you mean tumbling({shown(length)})?")
        offset = time_offset(self.offset)
        same_kind(length=length, step=step, offset=offset)
        flag(self.emit_empty, "emit_empty")
        if length % step:
            raise QueryError(
                f"length must be a multiple of step: got {shown(length)} and {shown(step)}; "
                f"the next multiple is {shown(type(length)(-(-length // step) * step))}"
            )
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "offset", type(offset)(offset % length))

    def describe(self) -> str:
        words = f"cumulate {text(self.length)} by {text(self.step)}"
        return words + (f", offset {text(self.offset)}" if self.offset else "") + with_empty(self.emit_empty)

    def parameters(self) -> dict[str, object]:
        given: dict[str, object] = {"length": plain(self.length), "step": plain(self.step)}
        if self.offset:
            given["offset"] = plain(self.offset)
        return given | ({"emit_empty": True} if self.emit_empty else {})

    @property
    def period(self) -> int:
        return self.step

    @property
    def per_tuple(self) -> int:
        return self.length // self.step

    def progressions(self, in_order: bool = False) -> list[tuple[int, int]]:
        return [(self.offset, self.length if in_order else self.step)]

    def slices_per_window(self, rate: float) -> float:
        return self.length * rate

    def spans(self) -> tuple[int, ...]:
        return self.length, self.step, self.offset

    def edges(self, lo: int, hi: int) -> Ints:
        return multiples(self.offset, self.step, lo, hi)

    def starts(self, lo: int, hi: int) -> Ints:
        return multiples(self.offset, self.length, lo, hi)

    def numbers(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        # Ends as numbers of steps on one line: a period holds `steps` of them, and the end at
        # step e belongs to the period of step e - 1.
        lowest = np.maximum((first - self.offset) // self.step, clamp((after - self.offset) // self.step)) + 1
        highest = np.minimum(
            ((last - self.offset) // self.length + 1) * self.per_tuple,
            clamp((upto - self.offset) // self.step),
        )
        return lowest, highest

    def overlapping(self, first: Ints, last: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
        ends = unseen_ranges(*self.numbers(first, last, after, upto))
        starts = (ends - 1) // self.per_tuple * self.length + self.offset
        return starts, ends * self.step + self.offset

    def last_end(self, times: Ints) -> Ints:
        return times - (times - self.offset) % self.length + self.length

    def first_start(self, after: int) -> int:
        return clamp(after - (after - self.offset) % self.length)


@constructor
def cumulate(
    length: object,
    step: object,
    offset: object = 0,
    *,
    measure: str | None = None,
    emit_empty: bool = False,
) -> Cumulate | MeasuredCumulate:
    """Windows that grow by `step` and start anew every `length`: this hour so far, every minute.

    With `measure`, the lengths are in units of that column instead of time.

    >>> cumulate("1 hour", step="1 minute").describe()
    'cumulate 1 hour by 1 minute'
    >>> cumulate(100, step=10, measure="odometer").describe()
    'cumulate 100 by 10 on odometer'
    """
    # __post_init__ reads durations, timedeltas and integers, on a measure numbers.
    if (column := column_name(measure)) is None:
        return Cumulate(length, step, offset, emit_empty)  # type: ignore[arg-type]
    empty_on_time(emit_empty, column)
    return MeasuredCumulate(length, step, offset, column)  # type: ignore[arg-type]
