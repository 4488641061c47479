"""Tuples on which an expression or the `lift` of a user-defined aggregate fails: bad tuples.

They are detected on arrival. Tuples of windows that are cut in tuple order are stored, and sliced at a
watermark; an error there would return at every watermark. So they are lifted on arrival, and their partials
are stored with them. Other tuples are lifted as they are sliced, where an error has the same effect; only
where bad tuples are skipped or routed, `lift` is tried before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.base import Groups, Partial
from muntin.errors import DataError, UserCodeError, value_text
from muntin.expressions import Expr
from muntin.slicing.arrivals import arrival_numbers
from muntin.slicing.batch import Batch
from muntin.slicing.lifted_tuples import LiftedTuples
from muntin.windows.base import Window

if TYPE_CHECKING:
    from muntin.slicing.arrivals import Arrivals, Times
    from muntin.slicing.bound_plan import BoundPlan
    from muntin.slicing.state import State

__all__ = ["accepted"]

Values = dict[Expr, pa.Array]
Reasons = dict[int, str]
"""Rows, and what is wrong with their tuples."""


def accepted(
    plan: BoundPlan, state: State, arrivals: Arrivals, data: pa.RecordBatch, times: Times
) -> tuple[pa.RecordBatch, Times, Values, LiftedTuples | None]:
    """The tuples that do not fail, their times, inputs and, where tuples are stored, their partials.

    Failing ones are bad, and treated by policy.
    """
    binding, fails = plan.binding, arrivals.policy == "fail"
    try:
        values = binding.evaluate(data)
    except DataError:
        binding.evaluate(data.slice(0, 0))  # types that do not fit are an error of the whole batch
        flaws = dict(_failing(binding.evaluate, data, first=fails))
        data, times = arrivals.without(data, times, flaws, state)
        values = binding.evaluate(data)
    unusable = dict(_unusable(binding.refusing, values))
    if unusable:
        data, times = arrivals.without(data, times, unusable, state)
        values = binding.evaluate(data)
    if not binding.fallible or (fails and state.tuples is None):
        return data, times, values, None
    lifted, fallible = None, binding.fallible
    try:
        if state.tuples is not None:
            lifted = _lifted(plan, state, data, times, values)
            fallible = tuple(partial for partial in fallible if partial not in plan.partials.partials)
    except UserCodeError:  # the tuples that fail are searched for
        fallible = binding.fallible
    refused = dict(_refused(fallible, values, times[0], first=fails))
    if not refused:
        return data, times, values, lifted
    if fails:
        ((row, error),) = refused.items()
        keys = [data.column(k).slice(row, 1) for k in plan.spec.keys]
        error.key = int(state.keys.encode(keys)[0]) if keys else 0
        raise error
    data, times = arrivals.without(data, times, {row: str(e) for row, e in refused.items()}, state)
    values = binding.evaluate(data)
    return data, times, values, _lifted(plan, state, data, times, values)


def _unusable(windows: Iterable[Window], values: Values) -> Iterator[tuple[int, str]]:
    """The rows with values that a window cannot use, and why."""
    for window in windows:
        expr, bad, rule = window.refused(values)
        for row in np.flatnonzero(bad).tolist():
            value = values[expr][row].as_py()
            yield row, f'"{expr}" {rule}: got {"null" if value is None else value_text(value)}'


def _lifted(
    plan: BoundPlan, state: State, data: pa.RecordBatch, times: Times, values: Values
) -> LiftedTuples | None:
    """The partials of the user's aggregates for each tuple, where tuples are stored."""
    if state.tuples is None:
        return None
    batch = Batch(None, times[0], arrival_numbers(data, state), values)
    return LiftedTuples.of(plan.partials.partials, batch)


def _failing(
    evaluate: Callable[[pa.RecordBatch], object], data: pa.RecordBatch, first: bool
) -> Iterator[tuple[int, str]]:
    """The rows on which `evaluate` fails, found by bisection, and why; all of them, or the first."""
    ranges = [(0, len(data))]
    while ranges:
        begin, end = ranges.pop()
        try:
            evaluate(data.slice(begin, end - begin))
        except DataError as error:
            if end - begin > 1:
                middle = (begin + end) // 2
                ranges += [(middle, end), (begin, middle)]
                continue
            yield begin, str(error)
            if first:
                return


def _refused(
    fallible: tuple[Partial, ...], values: Values, time: npt.NDArray[np.int64], first: bool
) -> Iterator[tuple[int, UserCodeError]]:
    """The rows on which the `lift` of an aggregate fails, and its error; all of them, or one."""
    seen: set[int] = set()
    for partial in fallible:
        begin = 0
        while begin < len(time):
            size = len(time) - begin
            rest = {expr: column.slice(begin) for expr, column in values.items()}
            # The sequence number of a tuple is its row, so that the error names the row.
            groups = Groups(size, None, True, time[begin:], begin, rest, np.arange(size + 1))
            try:
                partial.try_lift(groups)
                break
            except UserCodeError as error:
                row = begin if error.seq is None else error.seq
                begin = row + 1
                if row not in seen:
                    seen.add(row)
                    yield row, error
                if first:
                    return
