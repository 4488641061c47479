"""Cumulating windows on another advancing measure: this stage so far, every kilometre."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muntin.deferred_import import DeferredImport
from muntin.errors import QueryError
from muntin.expressions import Expr, as_expr
from muntin.windows.base import Context, Ints
from muntin.windows.columns import matrix, owned
from muntin.windows.found import cuts_of_rows
from muntin.windows.measured_grid import MeasureGrid, positions_of
from muntin.windows.tuple_driven import Contexts, Cuts, TupleDriven, Tuples
from muntin.windows.validation import measured_unit, number, on, positive_number, shown

if TYPE_CHECKING:
    from muntin.windows import measured_kernels
else:
    measured_kernels = DeferredImport("muntin.windows.measured_kernels")

__all__ = ["MeasuredCumulate"]


@dataclass(frozen=True, slots=True)
class MeasuredCumulate(TupleDriven):
    """Within each period on a measure: its first step, its first two steps, and so on to the whole.

    All windows of a period start with its first tuple. One is complete with the
    first tuple that stands at its `high` or beyond.

    >>> window = MeasuredCumulate(30, 10, 0, "km")
    >>> cuts = window.cut(window.initial(1), Tuples.of([1, 2, 5, 9], km=[3, 8, 14, 31]), upto=9)
    >>> list(zip(cuts.low.tolist(), cuts.high.tolist())), cuts.end.tolist()
    ([(0, 10), (0, 20), (0, 30)], [2, 3, 3])
    """

    length: float
    step: float
    offset: float
    measure: str

    context: ClassVar[Context] = Context.FORWARD_FREE
    constructor: ClassVar[str] = "cumulate"

    def __post_init__(self) -> None:
        unit = measured_unit(self.measure)
        length = positive_number(self.length, "length", unit)
        tumble = f"did you mean tumbling({shown(length)}, measure={shown(self.measure)})?"
        step = positive_number(self.step, "step", tumble)
        exact, exact_step = Decimal(str(length)), Decimal(str(step))
        if exact % exact_step:
            following = type(length)((exact // exact_step + 1) * exact_step)
            raise QueryError(
                f"length must be a multiple of step: got {shown(length)} and {shown(step)}; "
                f"the next multiple is {shown(following)}"
            )
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "offset", number(self.offset, "offset", unit))
        self.grid  # noqa: B018  # refuses lengths that it cannot hold

    @property
    def grid(self) -> MeasureGrid:
        """Where the steps lie, exactly."""
        periods = MeasureGrid.of(self.step, self.length, self.offset)
        return MeasureGrid(periods.length, periods.length, periods.offset, periods.scale)

    @property
    def per_tuple(self) -> int:
        """The steps of a period: a tuple at its begin lies in a window for each of them."""
        return int(Decimal(str(self.length)) / Decimal(str(self.step)))

    def describe(self) -> str:
        words = f"cumulate {self.length} by {self.step}"
        return words + (f", offset {self.offset}" if self.offset else "") + on(self.measure)

    def parameters(self) -> dict[str, object]:
        given: dict[str, object] = {"length": self.length, "step": self.step}
        return given | ({"offset": self.offset} if self.offset else {}) | {"measure": self.measure}

    def inputs(self) -> tuple[Expr, ...]:
        return (as_expr(self.measure),)

    def initial(self, n: int) -> Contexts:
        names = ("seen", "position", "begin", "start", "last", "step")
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
        at = positions_of(self, contexts, tuples)
        grid = self.grid
        _, step = grid.numbers(at, self.describe(), self.measure)
        rows, opened = measured_kernels.measured_cumulations(
            owned(tuples.offsets),
            owned(tuples.time),
            owned(tuples.rank),
            step,
            self.per_tuple,
            matrix(contexts),
            closing,
        )
        period = (rows[6] - 1) // self.per_tuple * self.per_tuple
        edges = grid.offset + np.stack([period, rows[6]]) * grid.slide
        return cuts_of_rows(rows[:6], grid.on_measure(edges, at.dtype), opened)

    def count(self, contexts: Contexts, tuples: Tuples, closing: bool) -> int:
        at = positions_of(self, contexts.copy(), tuples)
        _, reached = self.grid.numbers(at, self.describe(), self.measure)
        begun, come = contexts["begin"] >= 0, np.diff(tuples.offsets) > 0
        begins, ends = tuples.offsets[:-1][come], tuples.offsets[1:][come] - 1
        before = np.empty_like(reached)
        before[1:] = reached[:-1]
        before[begins] = np.where(begun[come], contexts["step"][come], reached[begins])
        number = float(
            np.maximum(np.minimum(reached, self._period_end(before)) - before, 0).sum(dtype=np.float64)
        )
        if closing:
            now = contexts["step"].copy()
            now[come] = reached[ends]
            number += float((self._period_end(now) - now)[begun | come].sum(dtype=np.float64))
        return int(number)

    def _period_end(self, step: Ints) -> Ints:
        return (step // self.per_tuple + 1) * self.per_tuple

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        return np.where(contexts["begin"] >= 0, contexts["begin"], seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        key = np.flatnonzero(contexts["begin"] >= 0)
        return key, contexts["begin"][key]
