"""Windows on another advancing measure: kilometres, invoice numbers.

A tuple's position is the largest value of the column so far, in the order of
tuples: one that lags counts where the stream stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np

from muntin.errors import DataError
from muntin.expressions import Expr, as_expr
from muntin.timeline import LIMIT
from muntin.windows.base import Context, Contexts, Cuts, Ints, TupleDriven, Tuples
from muntin.windows.columns import Numbers, matrix, measure_values, owned
from muntin.windows.found import cuts_of_rows
from muntin.windows.grids import integer_ranges
from muntin.windows.validation import column_name, fail, number, on, positive_number, shown

__all__ = ["MeasuredPeriodic", "MeasuredSession"]


@dataclass(frozen=True, slots=True)
class MeasuredPeriodic(TupleDriven):
    """Tumbling or sliding windows on a measure; `low` and `high` are their edges on it.

    A window starts with its first tuple and ends after its last one; it is complete
    with the first tuple that stands at `high` or beyond.

    >>> window = MeasuredPeriodic(10, 10, 0, "km")
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 5, 9], km=[3, 8, 7, 21]), upto=9)
    >>> cuts.intervals(), cuts.low.tolist(), cuts.due.tolist()
    ([(1, 6)], [0], [9])
    """

    length: float
    slide: float
    offset: float
    measure: str

    context: ClassVar[Context] = Context.FORWARD_FREE

    def __post_init__(self) -> None:
        length = positive_number(self.length, "length", self._cure())
        tumble = f"did you mean tumbling({shown(length)}, measure={shown(self.measure)})?"
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "slide", positive_number(self.slide, "slide", tumble))
        object.__setattr__(self, "offset", number(self.offset, "offset", self._cure()))
        column_name(self.measure)
        self._grid()

    def _cure(self) -> str:
        return f"it is in the unit of the column {shown(self.measure)}"

    @property
    def constructor(self) -> str:  # type: ignore[override]  # one class, two constructors
        return "tumbling" if self.slide == self.length else "sliding"

    def describe(self) -> str:
        words = f"{self.constructor} {self.length}"
        words += f" every {self.slide}" if self.slide != self.length else ""
        return words + (f", offset {self.offset}" if self.offset else "") + on(self.measure)

    def parameters(self) -> dict[str, object]:
        given: dict[str, object] = {"length": self.length}
        if self.slide != self.length:
            given["every"] = self.slide
        if self.offset:
            given["offset"] = self.offset
        return given | {"measure": self.measure}

    def inputs(self) -> tuple[Expr, ...]:
        return (as_expr(self.measure),)

    def _grid(self) -> tuple[int, int, int, int]:
        """Length, slide and offset as integers, in units of 1 / scale, and the scale.

        The edges are those of the decimal numbers that the user wrote: 0.3 is an
        edge of tumbling(0.1), and 3 * 0.1, which rounds to above 0.3, is not.
        """
        given = [Decimal(str(value)).normalize() for value in (self.length, self.slide, self.offset)]
        digits = max(0, *(-int(value.as_tuple().exponent) for value in given))
        length, slide, offset = (int(value.scaleb(digits)) for value in given)
        if digits > 15 or max(length, slide, abs(offset)) > 2**53:
            raise fail("lengths on a measure must have at most 15 digits", tuple(map(float, given)))
        return length, slide, offset % slide, 10**digits

    @property
    def _overlapping(self) -> int:
        length, slide, _, _ = self._grid()
        return -(-length // slide)

    def initial(self, n: int) -> Contexts:
        fields = ("seen", "position", "oldest", "following", "latest")
        rings = [(name, np.int64, (self._overlapping,)) for name in ("begins", "starts")]
        return np.zeros(n, [*((name, np.int64) for name in fields), *rings])

    def cut(
        self,
        contexts: Contexts,
        tuples: Tuples,
        upto: int,
        closing: bool = False,
        partial: bool = False,
        newest: int | None = None,
    ) -> Cuts:
        from muntin.windows.measured_kernels import measured_windows, positions

        measure = measure_values(tuples, as_expr(self.measure), self.describe())
        offsets = owned(tuples.offsets)
        at = positions(offsets, measure, matrix(contexts), matrix(contexts, measure.dtype))
        first, last = self._numbers(at)
        rows, opened = measured_windows(
            offsets,
            owned(tuples.time),
            owned(tuples.rank),
            first,
            last,
            matrix(contexts),
            closing,
        )
        return cuts_of_rows(rows[:6], self._marks(rows[6], at), opened)

    def _numbers(self, at: Numbers) -> tuple[Ints, Ints]:
        """First and last number of the windows that contain each position."""
        from muntin.windows.measured_kernels import grid_numbers

        length, slide, offset, scale = self._grid()
        if at.dtype == np.int64:
            if scale > 1:
                raise DataError(
                    f"{self.describe()} needs whole numbers: {self.measure} is an integer column; "
                    "round the lengths, or cast the column to float64"
                )
            return (at - offset - length) // slide + 1, (at - offset) // slide
        if len(at) and np.abs(at).max() > LIMIT / scale:
            raise DataError(
                f"{self.describe()} needs a measure below 2**62 / {scale}: got {np.abs(at).max()}; "
                "write the lengths with fewer digits"
            )
        return grid_numbers(at, length, slide, offset, scale)

    def _marks(self, numbers: Ints, at: Numbers) -> Numbers:
        length, slide, offset, scale = self._grid()
        low = offset + numbers * slide
        marks = np.stack([low, low + length])
        return marks if at.dtype == np.int64 else marks / scale

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        slot = contexts["oldest"] % self._overlapping
        begin = contexts["begins"][np.arange(len(contexts)), slot]
        return np.where(contexts["oldest"] < contexts["following"], begin, seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        oldest, last = contexts["oldest"], contexts["following"] - 1
        key = np.repeat(np.arange(len(contexts)), np.maximum(last - oldest + 1, 0))
        return key, contexts["begins"][key, integer_ranges(oldest, last) % self._overlapping]


@dataclass(frozen=True, slots=True)
class MeasuredSession(TupleDriven):
    """Sessions on a measure: a tuple more than `gap` ahead of the one before starts a new one.

    `low` and `high` are the first position and the last one plus the gap.

    >>> window = MeasuredSession(5, "km")
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 9], km=[0, 5, 11]), upto=9)
    >>> cuts.intervals(), cuts.low.tolist(), cuts.high.tolist()
    ([(1, 9)], [0], [10])
    """

    gap: float
    measure: str

    context: ClassVar[Context] = Context.FORWARD_FREE
    constructor: ClassVar[str] = "session"

    def __post_init__(self) -> None:
        cure = f"it is in the unit of the column {shown(self.measure)}"
        gap = positive_number(self.gap, "gap", cure)
        if gap >= LIMIT:
            raise fail("gap must be below 2**62", gap)
        object.__setattr__(self, "gap", gap)
        column_name(self.measure)

    def describe(self) -> str:
        return f"session {self.gap}" + on(self.measure)

    def parameters(self) -> dict[str, object]:
        return {"gap": self.gap, "measure": self.measure}

    def inputs(self) -> tuple[Expr, ...]:
        return (as_expr(self.measure),)

    def initial(self, n: int) -> Contexts:
        names = ("seen", "position", "begin", "start", "last", "low")
        contexts = np.zeros(n, [(name, np.int64) for name in names])
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
        from muntin.windows.measured_kernels import measured_sessions

        measure = measure_values(tuples, as_expr(self.measure), self.describe())
        if measure.dtype == np.int64 and self.gap != int(self.gap):
            raise DataError(
                f"{self.describe()} needs a whole number: {self.measure} is an integer column; "
                "round the gap, or cast the column to float64"
            )
        rows, marks, opened = measured_sessions(
            owned(tuples.offsets),
            owned(tuples.time),
            owned(tuples.rank),
            measure,
            matrix(contexts),
            matrix(contexts, measure.dtype),
            measure.dtype.type(self.gap),
            closing,
        )
        return cuts_of_rows(rows, marks, opened)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        return np.where(contexts["begin"] >= 0, contexts["begin"], seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        key = np.flatnonzero(contexts["begin"] >= 0)
        return key, contexts["begin"][key]
