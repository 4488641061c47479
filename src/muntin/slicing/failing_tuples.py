"""Tuples on which an expression or the `lift` of a user-defined aggregate fails: bad tuples.

They are detected when they arrive. Slicing lifts most tuples at once, but tuples of windows that are cut in
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
    from muntin.slicing.arrivals import Arrivals
    from muntin.slicing.binding import Binding
    from muntin.slicing.operator import SlicingOperator, Times

__all__ = ["accepted", "without_failing"]

Values = dict[Expr, pa.Array]
Reasons = dict[int, str]
"""Rows, and what is wrong with their tuples."""


def accepted(
    operator: SlicingOperator, data: pa.RecordBatch, times: Times
) -> tuple[pa.RecordBatch, Times, Values]:
    """`without_failing` for an operator, whose errors name the key of the tuple."""
    assert operator.binding is not None
    lifts_later = operator.slices.kept is not None
    try:
        return without_failing(operator.binding, operator.arrivals, data, times, lifts_later)
    except UserCodeError as error:
        keys = operator._encode(data.slice(error.seq or 0, 1))
        error.key = 0 if keys is None else int(keys[0])
        raise


def without_failing(
    binding: Binding, arrivals: Arrivals, data: pa.RecordBatch, times: Times, lifts_later: bool = False
) -> tuple[pa.RecordBatch, Times, Values]:
    """The tuples that do not fail, their times and inputs; failing ones are bad, and treated by policy.

    `lifts_later`: the tuples are lifted at a watermark, not now.
    """
    try:
        values = binding.evaluate(data)
    except DataError:
        binding.evaluate(data.slice(0, 0))  # types that do not fit are an error of the whole batch
        flaws = dict(_failing(binding.evaluate, data, first=arrivals.policy == "fail"))
        data, times = arrivals.without(data, times, flaws)
        values = binding.evaluate(data)
    fails = arrivals.policy == "fail"
    if not binding.fallible or (fails and not lifts_later):
        return data, times, values
    refused = dict(_refused(binding.fallible, values, times[0], first=fails))
    if not refused:
        return data, times, values
    if fails:
        raise next(iter(refused.values()))
    data, times = arrivals.without(data, times, {row: str(error) for row, error in refused.items()})
    return data, times, binding.evaluate(data)


def _failing(
    evaluate: Callable[[pa.RecordBatch], object], data: pa.RecordBatch, first: bool
) -> Iterator[tuple[int, str]]:
    """The rows on which `evaluate` fails, found by bisection, and why; all of them, or the first."""
    parts = [(0, len(data))]
    while parts:
        begin, end = parts.pop()
        try:
            evaluate(data.slice(begin, end - begin))
        except DataError as error:
            if end - begin > 1:
                middle = (begin + end) // 2
                parts += [(middle, end), (begin, middle)]
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
