"""The type of the results of a user-defined aggregate, inferred where the user does not declare it."""

from __future__ import annotations

import datetime as dt
import decimal
import typing
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.partials.functions import Functions
from muntin.errors import QueryError, UserCodeError

__all__ = ["result_type"]

_ANNOTATIONS = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us"),
    dt.date: pa.date32(),
    dt.timedelta: pa.duration("us"),
}

_SAMPLES: list[tuple[Callable[[pa.DataType], bool], list[Any]]] = [
    (t.is_boolean, [True, False, True]),
    (t.is_integer, [1, 2, 4]),
    (t.is_floating, [1.0, 2.0, 4.0]),
    (t.is_date, [dt.date(2000, 1, day) for day in (1, 2, 4)]),
    (t.is_time, [dt.time(hour) for hour in (1, 2, 4)]),
    (t.is_duration, [dt.timedelta(seconds=n) for n in (1, 2, 4)]),
    (lambda type_: bool(t.is_large_string(type_) or t.is_string(type_)), ["a", "b", "d"]),
    (lambda type_: bool(t.is_binary(type_) or t.is_large_binary(type_)), [b"a", b"b", b"d"]),
    (t.is_fixed_size_binary, [b"a", b"b", b"d"]),
]


def result_type(functions: Functions, types: tuple[pa.DataType, ...]) -> pa.DataType:
    """The annotated return type of the last function or, without one, the type of its sample results."""
    last = functions.lower or functions.combine
    try:
        promised = typing.get_type_hints(last).get("return")
    except (NameError, TypeError, AttributeError):
        promised = None
    if promised in _ANNOTATIONS:
        return _ANNOTATIONS[promised]
    results, error = _sample_results(functions, types)
    if int in map(type, results):  # True is 1 for Python, but not for Arrow
        results = [int(value) if isinstance(value, bool) else value for value in results]
    try:
        inferred = pa.array(results).type
    except pa.ArrowException as unfit:
        raise _unknown(functions, f"its results are of several types: {unfit}") from unfit
    if not t.is_null(inferred):
        return _roomy(inferred)
    if error is not None:
        raise _unknown(functions, f"for sample values, {error}") from error.__cause__
    raise _unknown(functions, "it gives no result for sample values")


def _sample_results(
    functions: Functions, types: tuple[pa.DataType, ...]
) -> tuple[list[Any], UserCodeError | None]:
    """The results over one sample tuple, over two and over three, and the first failure."""
    rows = list(zip(*map(_samples, types), strict=True)) if types else [()] * 3
    results: list[Any] = []
    failure: UserCodeError | None = None
    for n in range(1, len(rows) + 1):
        try:
            whole = functions.fold(functions.each("lift", rows[:n]))
            results.append(whole if functions.lower is None else functions.each("lower", [(whole,)])[0])
        except UserCodeError as error:
            failure = failure or error
    return results, failure


def _samples(type_: pa.DataType) -> list[Any]:
    """Three sample values of this type."""
    if t.is_decimal(type_):
        return [decimal.Decimal(n).quantize(decimal.Decimal(1).scaleb(-type_.scale)) for n in (1, 2, 4)]
    if t.is_timestamp(type_):
        values: list[Any] = pa.array([0, 1, 3], pa.int64()).cast(type_).to_pylist()
        return values
    return next((values for matches, values in _SAMPLES if matches(type_)), [None] * 3)


def _roomy(type_: pa.DataType) -> pa.DataType:
    """The type with the largest precision for decimals: the samples have few digits."""
    if t.is_decimal(type_):
        return pa.decimal128(38, type_.scale)
    return pa.list_(_roomy(type_.value_type)) if t.is_list(type_) else type_


def _unknown(functions: Functions, why: str) -> QueryError:
    return QueryError(
        f'the type of the results of "{functions.name}" is not known: {why}; '
        "give it, for instance type=pa.float64()"
    )
