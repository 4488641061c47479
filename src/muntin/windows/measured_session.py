"""Sessions on another advancing measure: no more than so many kilometres between two tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.errors import DataError
from muntin.expressions import Expr, as_expr
from muntin.timeline import LIMIT
from muntin.windows.base import Context, Ints
from muntin.windows.columns import matrix, measure_values, owned
from muntin.windows.found import cuts_of_rows
from muntin.windows.tuple_driven import Contexts, Cuts, TupleDriven, Tuples
from muntin.windows.validation import fail, longer_than_gap, measured_unit, on, positive_number

if TYPE_CHECKING:
    from muntin.windows import measured_kernels
else:
    measured_kernels = DeferredImport("muntin.windows.measured_kernels")

__all__ = ["MeasuredSession"]


@dataclass(frozen=True, slots=True)
class MeasuredSession(TupleDriven):
    """Sessions on a measure: a tuple more than `gap` ahead of the one before starts a new one.

    With `max_length`, so does a tuple that far from the first. `low` is the first
    position, `high` the last one plus the gap, or `low` plus the greatest length.

    >>> window = MeasuredSession(5, "km")
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 9], km=[0, 5, 11]), upto=9)
    >>> cuts.intervals(), cuts.low.tolist(), cuts.high.tolist()
    ([(1, 9)], [0], [10])
    """

    gap: float
    measure: str
    max_length: float | None = None

    context: ClassVar[Context] = Context.FORWARD_FREE
    constructor: ClassVar[str] = "session"

    def __post_init__(self) -> None:
        unit = measured_unit(self.measure)
        gap = self._length(self.gap, "gap", unit)
        if self.max_length is not None:
            max_length = self._length(self.max_length, "max_length", unit)
            longer_than_gap(gap, max_length)
            object.__setattr__(self, "max_length", max_length)
        object.__setattr__(self, "gap", gap)

    def _length(self, value: object, name: str, unit: str) -> Any:
        length = positive_number(value, name, unit)
        if length >= LIMIT:
            raise fail(f"{name} must be below 2**62", length, "use a coarser unit for the column")
        return length

    def describe(self) -> str:
        most = "" if self.max_length is None else f", at most {self.max_length}"
        return f"session {self.gap}{most}" + on(self.measure)

    def parameters(self) -> dict[str, object]:
        most = {} if self.max_length is None else {"max_length": self.max_length}
        return {"gap": self.gap, **most, "measure": self.measure}

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
        measure = measure_values(tuples, as_expr(self.measure), self.describe())
        limit = self.gap if self.max_length is None else self.max_length
        if measure.dtype == np.int64 and (self.gap != int(self.gap) or limit != int(limit)):
            raise DataError(
                f"{self.describe()} needs whole numbers: {self.measure} is an integer column; "
                "round the lengths, or cast the column to float64"
            )
        rows, marks, opened = measured_kernels.measured_sessions(
            owned(tuples.offsets),
            owned(tuples.time),
            owned(tuples.rank),
            measure,
            matrix(contexts),
            matrix(contexts, measure.dtype),
            measure.dtype.type(self.gap),
            self.max_length is not None,
            measure.dtype.type(limit),
            closing,
        )
        return cuts_of_rows(rows, marks, opened)

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        return np.where(contexts["begin"] >= 0, contexts["begin"], seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        key = np.flatnonzero(contexts["begin"] >= 0)
        return key, contexts["begin"][key]
