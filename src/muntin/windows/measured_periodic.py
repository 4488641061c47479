"""Tumbling and sliding windows on another advancing measure: kilometres, invoice numbers.

A tuple's position is the largest value of the column so far, in the order of
tuples: one that lags counts where the stream stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.expressions import Expr, as_expr
from muntin.timeline import NEG_INF
from muntin.windows.base import Context, Ints
from muntin.windows.columns import matrix, owned
from muntin.windows.context_checks import KeyPositions
from muntin.windows.found import cuts_of_rows
from muntin.windows.grids import count_unseen, integer_ranges
from muntin.windows.measured_grid import MeasureGrid, positions_of
from muntin.windows.tuple_driven import Contexts, Cuts, TupleDriven, Tuples
from muntin.windows.validation import fail, measured_unit, number, on, positive_number, shown

if TYPE_CHECKING:
    from muntin.windows import measured_kernels
else:
    measured_kernels = DeferredImport("muntin.windows.measured_kernels")

__all__ = ["MeasuredPeriodic"]

MOST_OPEN = 1_000_000
"""So many windows of a key may be open: the context holds where each of them began."""


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
        unit = measured_unit(self.measure)
        length = positive_number(self.length, "length", unit)
        tumble = f"did you mean tumbling({shown(length)}, measure={shown(self.measure)})?"
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "slide", positive_number(self.slide, "slide", tumble))
        object.__setattr__(self, "offset", number(self.offset, "offset", unit))
        if self.per_tuple > MOST_OPEN:
            raise fail(f"every must be at least a {MOST_OPEN}th of length", self.slide, "make it larger")

    @property
    def grid(self) -> MeasureGrid:
        """Where the windows lie, exactly."""
        return MeasureGrid.of(self.length, self.slide, self.offset)

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

    @property
    def per_tuple(self) -> int:
        grid = self.grid
        return -(-grid.length // grid.slide)

    def initial(self, n: int) -> Contexts:
        fields = ("seen", "position", "oldest", "following", "latest")
        ring = ("begins", np.int64, (self.per_tuple,))
        return np.zeros(n, [*((name, np.int64) for name in fields), ring])

    def cut(
        self,
        contexts: Contexts,
        tuples: Tuples,
        upto: int,
        closing: bool = False,
        partial: bool = False,
        newest: int | None = None,
    ) -> Cuts:
        at = positions_of(self, contexts, tuples)
        grid = self.grid
        first, last = grid.numbers(at, self.describe(), self.measure)
        rows, opened = measured_kernels.measured_windows(
            owned(tuples.offsets),
            owned(tuples.time),
            owned(tuples.rank),
            first,
            last,
            matrix(contexts),
            closing,
        )
        low = grid.offset + rows[6] * grid.slide
        marks = grid.on_measure(np.stack([low, low + grid.length]), at.dtype)
        return cuts_of_rows(rows[:6], marks, opened)

    def count(self, contexts: Contexts, tuples: Tuples, closing: bool) -> int:
        at = positions_of(self, contexts.copy(), tuples)
        first, last = self.grid.numbers(at, self.describe(), self.measure)
        oldest, following = contexts["oldest"], contexts["following"]
        come = np.diff(tuples.offsets) > 0
        begins, ends = tuples.offsets[:-1][come], tuples.offsets[1:][come] - 1
        known = np.where(contexts["seen"] > 0, following, NEG_INF)[come]
        first[begins] = np.maximum(first[begins], known)  # those before are open, or were
        number = count_unseen(first, last, begins) + int((following - oldest).sum(dtype=np.float64))
        if closing:
            return number
        around, _ = self.grid.numbers(at[ends], self.describe(), self.measure)
        still_open = np.where(come, 0, following - oldest)
        still_open[come] = np.maximum(last[ends] - around + 1, 0)
        return number - int(still_open.sum(dtype=np.float64))

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        slot = contexts["oldest"] % self.per_tuple
        begin = contexts["begins"][np.arange(len(contexts)), slot]
        return np.where(contexts["oldest"] < contexts["following"], begin, seen)

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        if not TupleDriven.contexts_fit(self, contexts, positions):
            return False
        open_ones = contexts["following"] - contexts["oldest"]
        return bool(((open_ones >= 0) & (open_ones <= self.per_tuple)).all())

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        oldest, last = contexts["oldest"], contexts["following"] - 1
        key = np.repeat(np.arange(len(contexts)), np.maximum(last - oldest + 1, 0))
        return key, contexts["begins"][key, integer_ranges(oldest, last) % self.per_tuple]
