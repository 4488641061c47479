"""Sessions with a gap per tuple: the range of a tuple is from its time to its time plus its gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from muntin.deferred_import import DeferredImport
from muntin.errors import QueryError
from muntin.expressions import Expr, as_expr
from muntin.timeline import NEG_INF, Micros
from muntin.windows.base import Context, Ints
from muntin.windows.kernel_arguments import Flags, arrays, cuts_of_rows, matrix, needs, owned
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, TupleDriven, Tuples
from muntin.windows.validation import LONGEST, positive_span

if TYPE_CHECKING:
    from muntin.windows import session_kernels
else:
    session_kernels = DeferredImport("muntin.windows.session_kernels")

_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
"""Microseconds in a unit of durations, as (multiply, divide)."""


@dataclass(frozen=True, slots=True)
class ReachingSession(TupleDriven):
    """Tuples whose ranges [time, time + gap] overlap or touch; `gap` is a column or an expression.

    The session ends where the latest of these ranges ends, which need not be that of its last tuple.
    With `max_length` it ends that long after its first tuple at the latest.

    >>> window = ReachingSession(as_expr("timeout"))
    >>> tuples = Tuples.of([0, 2, 9, 20], timeout=[10, 1, 3, 5])
    >>> window.cut(window.initial(1), tuples, upto=100).intervals()
    [(0, 12), (20, 25)]
    """

    gap: Expr
    max_length: int | None = None

    context: ClassVar[Context] = Context.FORWARD_FREE
    constructor: ClassVar[str] = "session"
    timed: ClassVar[bool] = True
    refuses: ClassVar[bool] = True
    context_fields: ClassVar[tuple[str, ...]] = ("seen", "reach", "begin", "start", "last")

    def __post_init__(self) -> None:
        self._settle(gap=as_expr(self.gap, "gap"))
        if self.max_length is not None:
            cure = "leave it out for no limit"
            self._settle(max_length=positive_span(self.max_length, "max_length", cure=cure))

    @property
    def holds_keys(self) -> bool:
        return False

    def describe(self) -> str:
        return self._described(f"session {self.gap}")

    def parameters(self) -> dict[str, object]:
        given = TupleDriven.parameters(self)
        return {"gap_expression": given.pop("gap"), **given}

    def spans(self) -> tuple[int, ...]:
        return () if self.max_length is None else (self.max_length,)

    def spans_over(self, types: Mapping[Expr, pa.DataType], integer_time: bool) -> tuple[int, ...]:
        kind = types[self.gap]
        if pa.types.is_null(kind):
            return self.spans()
        if integer_time and pa.types.is_integer(kind):
            return (1, *self.spans())
        if not integer_time and pa.types.is_duration(kind):
            multiply, _ = _MICROS[kind.unit]
            return (Micros(multiply), *self.spans())
        if integer_time:
            rule, cure = "integers, as the time column is", "cast it, or make the time column a timestamp"
        else:
            rule = "durations, as the time column is a timestamp"
            cure = f'in Python mt.col("{self.gap}").cast(pa.duration("s")), in a file "seconds({self.gap})"'
        raise QueryError(f'gap must be given in {rule}: got {kind} in "{self.gap}"; {cure}')

    def refused(self, columns: Mapping[Expr, pa.Array]) -> tuple[Expr, Flags, str]:
        _, fine = _lengths(columns[self.gap])
        return self.gap, ~fine, "must be a positive length of time in every tuple"

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        column = tuples.columns[self.gap]
        gaps, fine = _lengths(pa.array(column) if isinstance(column, np.ndarray) else column)
        if not fine.all():
            value = pa.array(column).take(pa.array(np.flatnonzero(~fine)[:1]))[0]
            raise needs(self, f"a positive length of time in every tuple: {self.gap} has {value}")
        rows, opened = session_kernels.reaching_sessions(
            *arrays(tuples),
            matrix(contexts),
            gaps,
            self.max_length is not None,
            self.max_length or 0,
            ending.upto,
            ending.closing,
        )
        return cuts_of_rows(rows, None, opened)

    def open_until(self, contexts: Contexts) -> int:
        is_open = contexts["begin"] >= 0
        if not is_open.any():
            return NEG_INF
        ends = contexts["reach"][is_open] + 1
        if self.max_length is not None:
            ends = np.minimum(ends, contexts["start"][is_open] + self.max_length)
        return int(ends.max())


def _lengths(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, Flags]:
    """Gaps in the unit inside, and which of them are usable: positive, and no longer than a window may be."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    multiply = divide = 1
    if pa.types.is_duration(column.type):
        multiply, divide = _MICROS[column.type.unit]
        column = column.view(pa.int64())
    raw = column.fill_null(0).to_numpy(zero_copy_only=False)
    fine = valid & (raw >= divide) & (raw <= LONGEST // multiply)
    lengths = np.where(fine, raw, 0).astype(np.int64) * multiply // divide
    return owned(lengths), fine
