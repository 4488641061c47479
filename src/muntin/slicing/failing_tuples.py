"""Tuples on which an expression or the `lift` of a user-defined aggregate fails: bad tuples.

They are detected on arrival. Slicing lifts most tuples at once, but tuples of windows that are cut in
tuple order are stored, and lifted at a watermark. An error there would return at every watermark, so `lift`
is tried on arrival. This second call of `lift` per tuple is needed only for user-defined aggregates, and
only where tuples are stored or bad tuples are skipped or routed. Elsewhere slicing raises the same error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.base import Groups, Partial
from muntin.errors import DataError, UserCodeError
from muntin.expressions import Expr

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
) -> tuple[pa.RecordBatch, Times, Values]:
    """The tuples that do not fail, their times and inputs; failing ones are bad, and treated by policy."""
    binding, fails = plan.binding, arrivals.policy == "fail"
    try:
        values = binding.evaluate(data)
    except DataError:
        binding.evaluate(data.slice(0, 0))  # types that do not fit are an error of the whole batch
        flaws = dict(_failing(binding.evaluate, data, first=fails))
        data, times = arrivals.without(data, times, flaws, state)
        values = binding.evaluate(data)
    if not binding.fallible or (fails and state.tuples is None):
        return data, times, values
    refused = dict(_refused(binding.fallible, values, times[0], first=fails))
    if not refused:
        return data, times, values
    if fails:
        ((row, error),) = refused.items()
        keys = [data.column(k).slice(row, 1) for k in plan.spec.keys]
        error.key = int(state.keys.encode(keys)[0]) if keys else 0
        raise error
    data, times = arrivals.without(data, times, {row: str(e) for row, e in refused.items()}, state)
    return data, times, binding.evaluate(data)


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
