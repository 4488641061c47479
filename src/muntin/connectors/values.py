"""Python values as a column of one type, and the rows of those that do not fit it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.connectors.types import FAILURES, LossError, kind_of, lossless

__all__ = ["as_texts", "kind_of_value", "to_column"]

# A bool is an int in Python, and a datetime a date: the narrower class comes first.
_CLASSES: list[tuple[type | tuple[type, ...], str]] = [
    ((bool, np.bool_), "boolean"),
    ((int, np.integer), "integer"),
    ((float, np.floating), "float"),
    (Decimal, "decimal"),
    (str, "text"),
    (bytes, "bytes"),
    ((dt.datetime, np.datetime64), "timestamp"),
    (dt.date, "date"),
    (dt.time, "time"),
    ((dt.timedelta, np.timedelta64), "duration"),
]
_FITTING = {
    "integer": {"integer", "float", "decimal"},  # if they are whole
    "float": {"integer", "float"},
    "decimal": {"integer", "decimal"},
}
"""The kinds of values that fit a column of a kind, where these are more than its own."""
_TOGETHER = ({"integer", "float"}, {"integer", "decimal"})
"""Kinds with a common type."""
_NUMBERS = ("integer", "float")
_EXACT = {pa.int64(): (-(2**63), 2**63 - 1), pa.float64(): (-(2**53), 2**53)}
"""The range of integers that a type represents exactly."""
_SURE = {float: (pa.float64(),), str: (pa.string(), pa.large_string()), bool: (pa.bool_(),)}
"""Types that represent every value of a class."""


def kind_of_value(value: object) -> str:
    """The kind of a value, in the words of `kind_of`.

    >>> [kind_of_value(value) for value in (True, 3, "3", None, dt.datetime(2024, 1, 1), [3])]
    ['boolean', 'integer', 'text', 'null', 'timestamp', 'other']
    """
    if value is None or type(value).__name__ in ("NaTType", "NAType"):  # pandas' own nulls
        return "null"
    kind = next((kind for classes, kind in _CLASSES if isinstance(value, classes)), "other")
    return "timestamp with a zone" if kind == "timestamp" and getattr(value, "tzinfo", None) else kind


def to_column(
    values: Sequence[Any], wanted: pa.DataType | None = None, groups: Sequence[frozenset[str]] = ()
) -> tuple[pa.Array, list[int]]:
    """The values as one column, and the rows of those that do not fit, which are null in it.

    Without a wanted type the column gets the type of most values. With `groups` of kinds, values of other
    kinds do not fit, and the first group that has a value counts.

    >>> column, misfits = to_column([1, "x", 2.5])
    >>> column.to_pylist(), misfits
    ([1.0, None, 2.5], [1])
    """
    try:
        return _convert(values, wanted, groups), []
    except FAILURES:
        wanted = wanted or _usual_type(values, groups)
    if wanted is None:
        return pa.nulls(len(values)), [i for i, v in enumerate(values) if kind_of_value(v) != "null"]
    misfits = _misfits(values, range(len(values)), wanted)
    fitting = list(values)
    for row in misfits:
        fitting[row] = None
    return _convert(fitting, wanted), misfits


def sure_values(wanted: pa.DataType) -> tuple[frozenset[type], int, int]:
    """The values that fit a type without a check: all of some classes, and integers in a range.

    >>> classes, low, high = sure_values(pa.int64())
    >>> [kind.__name__ for kind in classes], low <= 3 <= high, low <= 2**70 <= high
    (['NoneType'], True, False)
    """
    classes = {kind for kind, types in _SURE.items() if wanted in types}
    return frozenset({*classes, type(None)}), *_EXACT.get(wanted, (0, -1))


def as_texts(values: Sequence[Any]) -> pa.Array:
    """The values as texts: for a column that the query does not read, whose values have no common type."""
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _convert(
    values: Sequence[Any], wanted: pa.DataType | None, groups: Sequence[frozenset[str]] = ()
) -> pa.Array:
    """One column, or one of FAILURES: Arrow itself would truncate fractions, and read integers as times."""
    kinds = _kinds(values)
    if "null" in kinds:
        values = [None if kind_of_value(value) == "null" else value for value in values]
        kinds -= {"null"}
    if wanted is None:
        if not _one_type(kinds) or (groups and not any(kinds <= group for group in groups)):
            raise LossError(None)
        return _long_decimals(pa.array(values))
    asked = kind_of(wanted)
    if asked != "other" and not kinds <= _FITTING.get(asked, {asked}):
        raise LossError(None)
    if asked.startswith("timestamp"):
        # Without the type, Arrow takes twice as long: it infers the type first.
        plain = kinds == {"timestamp"} and set(map(type, values)) <= {dt.datetime, type(None)}
        return lossless(pa.array(values, pa.timestamp("us") if plain else None), wanted)
    if asked == "integer" and kinds - {"integer"}:
        values = [value if value is None else _whole(value) for value in values]
    return pa.array(values, wanted)


def _whole(value: Any) -> int:
    if int(value) != value:
        raise LossError(None)
    return int(value)


def _kinds(values: Sequence[Any]) -> set[str]:
    """The kinds of all values; "null" only for nulls that Arrow does not know."""
    by_class = dict(zip(map(type, values), values, strict=True))
    if by_class.keys() == {dt.datetime}:  # a shortcut for times
        zones = set(map(type, map(attrgetter("tzinfo"), values)))
        return {"timestamp" if zone is type(None) else "timestamp with a zone" for zone in zones}
    by_class.pop(type(None), None)
    kinds = {kind_of_value(value) for value in by_class.values()}
    if any(kind.startswith("timestamp") for kind in kinds):
        kinds = {kind for kind in kinds if not kind.startswith("timestamp")}
        kinds |= {kind_of_value(v) for v in {_zone(v): v for v in values if v is not None}.values()}
    return kinds


def _zone(value: Any) -> tuple[type, bool]:
    return type(value), getattr(value, "tzinfo", None) is None


def _one_type(kinds: set[str]) -> bool:
    return len(kinds) <= 1 or any(kinds <= together for together in _TOGETHER)


def _usual_type(values: Sequence[Any], groups: Sequence[frozenset[str]]) -> pa.DataType | None:
    """The type of most values, the first one of equally frequent types; None if there is none."""
    kinds = [kind_of_value(value) for value in values]
    counts = Counter("number" if kind in _NUMBERS else kind for kind in kinds if kind != "null")
    allowed = next((group for group in groups if not group.isdisjoint(kinds)), None)
    if groups:
        counts = Counter(kind for kind in kinds if allowed and kind in allowed)
    for usual, _ in counts.most_common():
        if usual == "number":
            return pa.float64() if "float" in kinds else pa.int64()
        members = [value for value, kind in zip(values, kinds, strict=True) if kind == usual]
        for candidates in (members, *([member] for member in members)):
            try:
                return _long_decimals(pa.array(candidates)).type
            except FAILURES:
                continue
    return None


def _long_decimals(column: pa.Array) -> pa.Array:
    """Decimals with the most digits, since the next batch may have longer ones."""
    return column.cast(pa.decimal128(38, column.type.scale)) if t.is_decimal128(column.type) else column


def _misfits(values: Sequence[Any], rows: range, wanted: pa.DataType) -> list[int]:
    """Rows whose values do not fit the type, by bisection: k of n take O(k log n) conversions."""
    try:
        _convert(values[rows.start : rows.stop], wanted)
    except FAILURES:
        if len(rows) == 1:
            return list(rows)
        middle = len(rows) // 2
        return _misfits(values, rows[:middle], wanted) + _misfits(values, rows[middle:], wanted)
    return []
