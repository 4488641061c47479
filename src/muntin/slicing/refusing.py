"""Tuples that an expression or the `lift` of a user's aggregate refuses: bad tuples, found when they come.

Slicing lifts tuples at once, but where windows are cut in tuple order they are kept and lifted at a
watermark. A refusal there would come again at every watermark, so `lift` is tried before. The price is a
second call of `lift` for each tuple; it is paid only for aggregates of the user, and only where tuples are
kept or bad ones are skipped or routed. Elsewhere lifting itself raises the same error, for the same batch.
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
    from muntin.slicing.operator import SlicingOperator, Times

__all__ = ["accepted"]

Values = dict[Expr, pa.Array]
Flaws = dict[int, str]
"""What is wrong with the tuple of a row."""


def accepted(
    operator: SlicingOperator, data: pa.RecordBatch, times: Times
) -> tuple[pa.RecordBatch, Times, Values]:
    """The tuples that can be computed with, their times and inputs; others are treated as the policy says."""
    binding, arrivals = operator.binding, operator.arrivals
    assert binding is not None
    try:
        values = binding.evaluate(data)
    except DataError:
        binding.evaluate(data.slice(0, 0))  # types that do not fit are an error of the whole batch
        flaws = dict(_failing(binding.evaluate, data, first=arrivals.policy == "fail"))
        data, times = arrivals.without(data, times, flaws)
        values = binding.evaluate(data)
    fails = arrivals.policy == "fail"
    if not binding.fallible or (fails and operator.slices.kept is None):
        return data, times, values
    refused = dict(_refused(binding.fallible, values, times[0], first=fails))
    if not refused:
        return data, times, values
    if fails:
        ((row, error),) = refused.items()
        keys = operator._encode(data.slice(row, 1))
        error.key = 0 if keys is None else int(keys[0])
        raise error
    data, times = arrivals.without(data, times, {row: str(error) for row, error in refused.items()})
    return data, times, binding.evaluate(data)


def _failing(
    evaluate: Callable[[pa.RecordBatch], object], data: pa.RecordBatch, first: bool
) -> Iterator[tuple[int, str]]:
    """The rows on which evaluating fails, found by halving, and why; all of them, or the first."""
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
    """The rows that the `lift` of some aggregate refuses, and its error; all of them, or one."""
    seen: set[int] = set()
    for partial in fallible:
        begin = 0
        while begin < len(time):
            size = len(time) - begin
            rest = {expr: column.slice(begin) for expr, column in values.items()}
            # Numbered by their rows, so that the error names one.
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
