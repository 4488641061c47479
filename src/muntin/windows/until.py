"""Aggregate frames: until a running aggregate reaches a limit."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Aggregate
from muntin.deferred_import import DeferredImport
from muntin.errors import DataError, MuntinError, UserCodeError, cause_text, value_text
from muntin.expressions import Expr
from muntin.windows.arguments import constructor
from muntin.windows.base import Ints
from muntin.windows.context_checks import KeyPositions, fields_fit
from muntin.windows.frame import COMPLETE, FIELDS, OPEN, Actions, Frame
from muntin.windows.kernel_arguments import (
    Flags,
    arrays,
    condition,
    matrix,
    number_values,
    owned,
    python_values,
)
from muntin.windows.records import skip_or_raise
from muntin.windows.tuple_driven import Contexts, Cuts, Ending, Tuples
from muntin.windows.validation import column_name, fail, number, shown

if TYPE_CHECKING:
    from muntin.windows import frame_kernels
else:
    frame_kernels = DeferredImport("muntin.windows.frame_kernels")

# The numbers of the compiled aggregates, and the numbers of inputs that they may have.
_COMPILED = {"count": (0, (0, 1)), "sum": (1, (1,)), "min": (2, (1,)), "max": (3, (1,))}


@dataclass(frozen=True, slots=True)
class Until(Frame):
    """A frame lasts until its aggregate reaches the limit, and ends with the tuple that reached it.

    count, sum, min and max are compiled where the limit is a number. Any other
    aggregate runs in the interpreter, tuple by tuple, through its lift, combine and
    lower; so does the max of texts or dates. The context of such a key is the list
    [partial, *FIELDS], with the partial None before the first tuple of a frame.

    >>> from muntin.aggregates import sum
    >>> window = Until(sum("litres"), 100)
    >>> tuples = Tuples.of([1, 2, 3, 4], litres=[60, 50, 100, 10])
    >>> window.cut(window.initial(1), tuples, upto=9).intervals()
    [(1, 3), (3, 4)]
    """

    aggregate: Aggregate
    limit: Any
    measure: str | None = None

    constructor: ClassVar[str] = "until"
    context_fields: ClassVar[tuple[str, ...]] = (*FIELDS, "known", "total", "lost")

    def __post_init__(self) -> None:
        if not isinstance(self.aggregate, Aggregate):
            raise fail("aggregate must be an aggregate", self.aggregate, 'for example a.sum("amount")')
        if self.compiled:
            self._settle(limit=number(self.limit, "limit", "for example 100"))
        elif self.limit is None or (isinstance(self.limit, numbers.Number) and self.limit != self.limit):
            raise fail("limit must be a value", self.limit, "for example 100")
        elif isinstance(self.limit, dt.datetime) and self.limit.tzinfo is None:
            # Without a zone no hour comes twice, and a file has no way to say which one.
            self._settle(limit=self.limit.replace(fold=0))
        column_name(self.measure)

    @property
    def compiled(self) -> bool:
        """Whether the aggregate runs in compiled code."""
        name = getattr(self.aggregate, "constructor", "")
        if name in ("min", "max") and not isinstance(self.limit, numbers.Number):
            return False  # of texts or dates
        _, inputs = _COMPILED.get(name, (0, ()))
        return len(self.aggregate.inputs) in inputs

    @property
    def restarts(self) -> bool:
        return self.measure is None

    @property
    def interpreted(self) -> bool:
        return not self.compiled

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return (self.aggregate,)

    def describe(self) -> str:
        return self._described(f"until {self.aggregate} reaches {self.limit}")

    def inputs(self) -> tuple[Expr, ...]:
        return (*self.aggregate.reads, *Frame.inputs(self))

    def actions(self, contexts: Contexts, tuples: Tuples) -> Actions:
        values, valid, limit = np.zeros(len(tuples), np.int64), np.ones(len(tuples), np.bool_), self.limit
        what, _ = _COMPILED[self.aggregate.constructor]
        if self.aggregate.inputs:
            expr = self.aggregate.inputs[0]
            if what == 0:
                valid = _not_null(tuples, expr)
            else:
                values, valid, limit = number_values(tuples, expr, self, self.limit)
        if self.aggregate.filter is not None:
            valid = valid & self._passing(tuples)
        exact = values.dtype == np.int64
        if exact:
            limit = math.ceil(limit)
            if abs(limit) >= 2**63:
                raise DataError(f"limit must fit into 64 bits over integers: got {shown(self.limit)}")
        raw, limit = matrix(contexts, values.dtype), values.dtype.type(limit)
        actions, bad = frame_kernels.limit_actions(
            arrays(tuples)[0], matrix(contexts), raw, values, valid, exact, what, limit
        )
        if bad >= 0:
            raise DataError(f"{self.describe()}: the sum overflows 64 bits at time {tuples.time[bad]}")
        return actions

    def initial(self, n: int) -> Contexts:
        if self.compiled:
            return Frame.initial(self, n)
        contexts = np.empty(n, object)
        for i in range(n):
            contexts[i] = [None, -1, *(0 for _ in FIELDS[1:])]
        return contexts

    def _cut(self, contexts: Contexts, tuples: Tuples, ending: Ending) -> Cuts:
        if self.compiled:
            return Frame._cut(self, contexts, tuples, ending)
        partials, frames = [context[0] for context in contexts], self._fields(contexts)
        cuts = self._frames(frames, tuples, self._interpreted_actions(partials, tuples), ending.closing)
        for i, frame in enumerate(frames[list(FIELDS)].tolist()):
            contexts[i] = [partials[i], *frame]  # a new list: a copy of the contexts must not change
        return cuts

    def _fields(self, contexts: Contexts) -> Contexts:
        """Contexts with named fields, whether the aggregate is compiled or not."""
        if self.compiled:
            return contexts
        frames = Frame.initial(self, len(contexts))
        for i, context in enumerate(contexts):
            frames[i] = (*context[1:], *(0 for _ in self.context_fields[len(FIELDS) :]))
        return frames

    def keep_from(self, contexts: Contexts, seen: Ints) -> Ints:
        return Frame.keep_from(self, self._fields(contexts), seen)

    def open_begins(self, contexts: Contexts, seen: Ints) -> tuple[Ints, Ints]:
        return Frame.open_begins(self, self._fields(contexts), seen)

    def contexts_fit(self, contexts: Contexts, positions: KeyPositions) -> bool:
        if self.compiled:
            return Frame.contexts_fit(self, contexts, positions)
        # On a measure of floats, positions are the bits of floats: any 64 bits.
        whole = all(
            type(context) is list
            and len(context) == 1 + len(FIELDS)
            and all(type(value) is int and -(2**63) <= value < 2**63 for value in context[1:])
            for context in contexts
        )
        return whole and fields_fit(self._fields(contexts), positions)

    def _interpreted_actions(self, partials: list[Any], tuples: Tuples) -> Actions:
        """As `actions`; advances `partials` in place."""
        actions = np.full(len(tuples), OPEN, np.uint8)
        passing = self._passing(tuples).tolist()
        columns = [python_values(tuples.columns[expr]) for expr in self.aggregate.inputs]
        offsets, times, ranks = tuples.offsets.tolist(), tuples.time.tolist(), tuples.rank.tolist()
        for segment, (lo, hi) in enumerate(pairwise(offsets)):
            for i in range(lo, hi):
                values = [column[i] for column in columns] if passing[i] else None
                try:
                    partials[segment], reached = self._step(partials[segment], values, (times[i], ranks[i]))
                except UserCodeError as error:
                    skip_or_raise(tuples, error)
                    continue
                except MuntinError:
                    raise
                except Exception as error:  # noqa: BLE001  # of the user's code
                    failure = UserCodeError(
                        f"{self.describe()}: the aggregate failed on the values {value_text(values)} of the "
                        f"tuple of rank {ranks[i]}, time {times[i]}: {cause_text(error)}"
                    )
                    failure.__cause__ = error
                    skip_or_raise(tuples, failure)
                    continue
                if reached:
                    actions[i] = OPEN | COMPLETE
                    partials[segment] = None
        return actions

    def _passing(self, tuples: Tuples) -> Flags:
        """Which tuples pass the filter of the aggregate."""
        if self.aggregate.filter is None:
            return np.ones(len(tuples), np.bool_)
        return condition(tuples, cast(Expr, self.aggregate.filter), self)

    def _step(self, partial: Any, values: list[Any] | None, at: tuple[int, int]) -> tuple[Any, bool]:
        """The partial aggregate with one more tuple, and whether it reaches the limit.

        Without values the tuple does not pass the filter of the aggregate.
        """
        aggregate = self.aggregate
        lifted = aggregate.identity() if values is None else aggregate.lift(*values, at=at)
        partial = lifted if partial is None else aggregate.combine(partial, lifted)
        value = aggregate.lower(partial)
        if value is None:
            return partial, False
        # NaN is above every number, as in Spark's ordering.
        return partial, bool(value >= self.limit) or value != value


def _not_null(tuples: Tuples, expr: Expr) -> Any:
    column = tuples.columns[expr]
    if isinstance(column, np.ndarray):
        column = pa.array(column)
    return owned(column.is_valid().to_numpy(zero_copy_only=False))


@constructor
def until(aggregate: Aggregate, limit: Any, *, measure: str | None = None) -> Until:
    """Frames that end with the tuple at which an aggregate over the frame reaches the limit.

    >>> from muntin.aggregates import count
    >>> until(count(), 3).describe()
    'until count() reaches 3'
    """
    return Until(aggregate, limit, measure)
