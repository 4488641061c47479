"""The laws of an aggregate over columns: the partials that run must agree with its definition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.base import Aggregate, Groups
from muntin.errors import MuntinError
from muntin.slicing.partials import PartialSet, States
from muntin.testing.laws.algebra import Algebra, Broken, Outcome
from muntin.testing.laws.cases import Case, Tuple

__all__ = ["Columns"]

Ints = npt.NDArray[np.int64]

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
Slices = list[list[Tuple]]
Form = Callable[[Sequence[Case]], States]
"""One form of the computation of each case as a whole."""


class Columns:
    """An aggregate over columns of given types, with many cases at once: a case is three rows."""

    def __init__(
        self,
        aggregate: Aggregate,
        types: tuple[pa.DataType, ...],
        rows: Sequence[tuple[Any, ...]],
        tolerance: float,
    ) -> None:
        self.bound = aggregate.bind(types)
        self.inputs = dict(zip(aggregate.inputs, types, strict=True))
        self.partials = PartialSet.of((self.bound,), tuple(self.inputs.items()))
        self.rows = rows
        self.tolerance = tolerance
        self.forms: list[tuple[str, Form]] = [
            ("columns compute what the functions say", partial(self._together, ordered=False)),
            ("the order of arrival does not matter", partial(self._together, ordered=True)),
            ("lifting many tuples is folding single ones", self._one_by_one),
            ("associativity of columns", partial(self._in_two_steps, cut=2)),
            ("associativity of columns", partial(self._in_two_steps, cut=1)),
            ("serialisation", self._written_and_read),
        ]

    def check(self, cases: Sequence[Case], algebra: Algebra) -> None:
        """Check all laws; raises Broken, with the number of the first case that breaks one."""
        want = [self._as_in_columns(algebra.result(case)) for case in cases]
        for law, form in self.forms:
            self._compare(law, self._results(form, cases), want)
        if self.bound.invertible:
            want = [self._as_in_columns(algebra.result((case[0], (), ()))) for case in cases]
            self._compare("invertibility", self._results(self._without_others, cases), want)

    def _compare(self, law: str, outcomes: list[Outcome], want: list[Outcome]) -> None:
        for number, (one, other) in enumerate(zip(outcomes, want, strict=True)):
            if not one.same(other, self.tolerance):
                broken = Broken(law, f"columns give   {one}", f"functions give {other}")
                broken.case = number
                raise broken

    def _results(self, form: Form, cases: Sequence[Case]) -> list[Outcome]:
        """The result of each case; one by one where one fails, since that fails the column."""
        try:
            return [Outcome(value) for value in self.partials.lower(form(cases))[0].to_pylist()]
        except MuntinError as error:
            if len(cases) > 1:
                return [outcome for case in cases for outcome in self._results(form, [case])]
            return [Outcome(error=error)]

    def _as_in_columns(self, outcome: Outcome) -> Outcome:
        """A result of the functions as the column can hold it."""
        value, type_ = outcome.value, self.bound.type
        if isinstance(value, Decimal) and pa.types.is_decimal(type_):
            return Outcome(value.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP))
        if isinstance(value, dt.timedelta) and pa.types.is_duration(type_):
            unit = dt.timedelta(microseconds=_MICROSECONDS[type_.unit])
            return Outcome((2 * value + unit) // (2 * unit) * unit)
        if outcome.error is not None:
            return outcome
        try:
            return Outcome(pa.array([value], type_)[0].as_py())
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            return Outcome(error=error)

    # The forms of the computation. ----------------------------------------------------

    def _together(self, cases: Sequence[Case], ordered: bool) -> States:
        return self._window(self._lifted(_slices(cases), ordered), len(cases))

    def _one_by_one(self, cases: Sequence[Case]) -> States:
        sizes = np.array([sum(map(len, case)) for case in cases], dtype=np.int64)
        single = [[one] for part in _slices(cases) for one in part]
        hi = np.cumsum(sizes)
        return self.partials.window(self._lifted(single, ordered=False), None, hi - sizes, hi)

    def _in_two_steps(self, cases: Sequence[Case], cut: int) -> States:
        states = self._lifted(_slices(cases), ordered=False)
        first = 3 * np.arange(len(cases), dtype=np.int64)
        lo = np.column_stack([first, first + cut]).reshape(-1)
        hi = np.column_stack([first + cut, first + 3]).reshape(-1)
        pairs = self.partials.reduce(states, None, lo, hi)
        two = 2 * np.arange(len(cases), dtype=np.int64)
        return self.partials.window(pairs, None, two, two + 2)

    def _written_and_read(self, cases: Sequence[Case]) -> States:
        states = self._lifted(_slices(cases), ordered=False)
        read = tuple(
            p.from_arrow(_through_ipc(p.to_arrow(s)))
            for p, s in zip(self.partials.partials, states, strict=True)
        )
        return self._window(read, len(cases))

    def _without_others(self, cases: Sequence[Case]) -> States:
        states = self._lifted(_slices(cases), ordered=False)
        first = 3 * np.arange(len(cases), dtype=np.int64)
        whole = self.partials.reduce(states, None, first, first + 3)
        others = self.partials.reduce(states, None, first + 1, first + 3)
        return tuple(
            p.invert(one, other) for p, one, other in zip(self.partials.partials, whole, others, strict=True)
        )

    def _window(self, states: States, cases: int) -> States:
        first = 3 * np.arange(cases, dtype=np.int64)
        return self.partials.window(states, None, first, first + 3)

    def _lifted(self, slices: Slices, ordered: bool) -> States:
        tuples = [(group, one) for group, part in enumerate(slices) for one in part]
        # Arrived in the order of seq, with the slices mixed, or sorted.
        tuples.sort(key=(lambda item: (item[0], item[1].at)) if ordered else lambda item: item[1].at[1])
        group = np.array([g for g, _ in tuples], dtype=np.int64)
        time, seq = (np.array([one.at[k] for _, one in tuples], dtype=np.int64) for k in (0, 1))
        values = {
            expr: pa.array([self.rows[one.value][k] for _, one in tuples], type_)
            for k, (expr, type_) in enumerate(self.inputs.items())
        }
        return self.partials.lift(Groups(len(slices), group, ordered, time, seq, values))


def _slices(cases: Sequence[Case]) -> Slices:
    return [list(part) for case in cases for part in case]


def _through_ipc(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """The columns as a snapshot would hold them."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(columns)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    table = pa.ipc.open_stream(sink.getvalue()).read_all()
    return {name: table.column(name).combine_chunks() for name in table.column_names}
