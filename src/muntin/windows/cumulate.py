"""Cumulating windows, which grow within a period, on time or on another measure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from muntin.errors import QueryError
from muntin.timeline import LengthLike
from muntin.windows.arguments import constructor
from muntin.windows.base import Window
from muntin.windows.grids import EvenlySpaced, Layout
from muntin.windows.measured import EvenlySpacedOnMeasure, whole_units
from muntin.windows.validation import (
    empty_on_time,
    flag,
    numbers_of_period,
    shown,
    spans_of_period,
    text,
)


class _Cumulating(Window):
    """The description of windows that grow by a step within a period."""

    __slots__ = ()

    length: float
    step: float
    constructor = "cumulate"

    def describe(self) -> str:
        return self._described(f"cumulate {text(self.length)} by {text(self.step)}")


@dataclass(frozen=True, slots=True)
class Cumulate(_Cumulating, EvenlySpaced):
    """For each period [b, b + length): the windows [b, b + step), [b, b + 2 * step), ... [b, b + length).

    >>> import numpy as np
    >>> starts, ends = Cumulate(30, 10).windows(np.array([12, 31]), after=-100, upto=100)
    >>> list(zip(starts.tolist(), ends.tolist()))
    [(0, 20), (0, 30), (30, 40), (30, 50), (30, 60)]
    """

    length: int
    step: int
    offset: int = 0
    emit_empty: bool = False

    def __post_init__(self) -> None:
        length, step, offset = spans_of_period(self.length, self.step, "step", self.offset)
        flag(self.emit_empty, "emit_empty")
        _require_multiple(length, step)
        self._settle(length=length, step=step, offset=type(offset)(offset % length))

    @property
    def per_tuple(self) -> int:
        return self.length // self.step

    def progressions(self, in_order: bool = False) -> list[tuple[int, int]]:
        return [(self.offset, self.length if in_order else self.step)]

    def slices_per_window(self, rate: float) -> float:
        return self.length * rate

    def spans(self) -> tuple[int, ...]:
        return self.length, self.step, self.offset

    def layout(self) -> Layout:
        return self.offset, self.length, self.per_tuple, self.offset + self.step, self.step


@dataclass(frozen=True, slots=True)
class MeasuredCumulate(_Cumulating, EvenlySpacedOnMeasure):
    """Within each period on a measure: its first step, its first two steps, and so on to the whole.

    >>> from muntin.windows.tuple_driven import Tuples
    >>> window = MeasuredCumulate(30, 10, 0, "km")
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 5, 9], km=[3, 8, 14, 31]), upto=9)
    >>> list(zip(cuts.low.tolist(), cuts.high.tolist())), cuts.end.tolist()
    ([(0, 10), (0, 20), (0, 30)], [2, 3, 3])
    """

    length: float
    step: float
    offset: float = 0
    measure: str | None = None

    def __post_init__(self) -> None:
        length, step, offset = numbers_of_period(self.length, self.step, "step", self.offset, self.measure)
        _require_multiple(length, step)
        self._settle(length=length, step=step, offset=offset)
        self.on_units  # noqa: B018  # refuses lengths of too many digits

    @property
    def on_units(self) -> tuple[Cumulate, int]:
        return _on_units(self)

    @property
    def distinct_begins(self) -> int:
        return 1  # all open windows begin with the first tuple of the period


@lru_cache(maxsize=1024)
def _on_units(window: MeasuredCumulate) -> tuple[Cumulate, int]:
    (length, step, offset), scale = whole_units(window.length, window.step, window.offset)
    return Cumulate(length, step, offset), scale


def _require_multiple(length: Any, step: Any) -> None:
    exact, exact_step = Decimal(str(length)), Decimal(str(step))  # as the user wrote them
    if exact % exact_step:
        following = type(length)((exact // exact_step + 1) * exact_step)
        raise QueryError(
            f"length must be a multiple of step: got {shown(length)} and {shown(step)}; "
            f"the next multiple is {shown(following)}"
        )


@constructor
def cumulate(
    length: LengthLike,
    step: LengthLike,
    offset: LengthLike = 0,
    *,
    measure: str | None = None,
    emit_empty: bool = False,
) -> Cumulate | MeasuredCumulate:
    """Windows that grow by `step` and start over every `length`: this hour so far, every minute.

    With `measure`, the lengths are in units of that column instead of time.

    >>> cumulate("1 hour", step="1 minute").describe()
    'cumulate 1 hour by 1 minute'
    >>> cumulate(100, step=10, measure="odometer").describe()
    'cumulate 100 by 10 on odometer'
    """
    # __post_init__ reads durations, timedeltas and integers, on a measure numbers.
    if measure is None:
        return Cumulate(length, step, offset, emit_empty)  # type: ignore[arg-type]
    empty_on_time(emit_empty, measure)
    return MeasuredCumulate(length, step, offset, measure)  # type: ignore[arg-type]
