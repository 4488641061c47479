"""Result rows as plain Python values, and a readable comparison of two lists of them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

__all__ = ["Row", "compare", "same_value", "unmatched"]

Item = TypeVar("Item")


class Row(NamedTuple):
    """One emitted window. Times are int: microseconds, or units of an integer time column.

    `low` and `high` are the ranks of a count window, the edges on the column of a
    window with a measure, None for all others. `ordinal` numbers windows with the same
    edges, which tuples at one time can make.

    >>> print(Row(("a",), "minute", 0, 60, {"n": 2}))
    a minute [0, 60) n=2 final 0
    """

    keys: tuple[Any, ...]
    window_name: str
    start: int
    end: int
    aggregates: Mapping[str, Any]
    kind: str = "final"
    revision: int = 0
    low: Any = None
    high: Any = None
    ordinal: int = 0

    def __str__(self) -> str:
        keys = "".join(f"{key!r} " if key is None else f"{key} " for key in self.keys)
        span = "" if self.low is None else f" of [{self.low}, {self.high})"
        span += f" #{self.ordinal}" if self.ordinal else ""
        values = " ".join(f"{name}={value!r}" for name, value in self.aggregates.items())
        return (
            f"{keys}{self.window_name} [{self.start}, {self.end}){span} {values} {self.kind} {self.revision}"
        )


def compare(actual: Iterable[Row], expected: Iterable[Row], tolerance: float = 1e-9) -> str:
    """The differences between two lists of rows, in any order; empty without one.

    Floats may differ by the relative `tolerance`. Rows of the same window that
    differ only in their values are shown as one difference.

    >>> a, b = Row((), "w", 0, 5, {"n": 2}), Row((), "w", 5, 9, {"n": 1})
    >>> compare([a, b], [b, a])
    ''
    >>> print(compare([a], [a._replace(aggregates={"n": 3}), b]))
    different   w [0, 5) n=2 final 0
    expected    w [0, 5) n=3 final 0
    missing     w [5, 9) n=1 final 0
    """
    unexpected, missing = unmatched(actual, expected, lambda one, other: _same(one, other, tolerance))
    lines = []
    for row in list(missing):
        twin = next((other for other in unexpected if _window(other) == _window(row)), None)
        if twin is not None:
            lines += [f"different   {twin}", f"expected    {row}"]
            unexpected.remove(twin)
            missing.remove(row)
    lines += [f"missing     {row}" for row in missing]
    lines += [f"unexpected  {row}" for row in unexpected]
    return "\n".join(lines)


def unmatched(
    actual: Iterable[Item], expected: Iterable[Item], same: Callable[[Item, Item], bool]
) -> tuple[list[Item], list[Item]]:
    """The items of both lists without a partner in the other, in any order."""
    unexpected, missing = list(actual), []
    for item in expected:
        partner = next((i for i, other in enumerate(unexpected) if same(other, item)), None)
        if partner is None:
            missing.append(item)
        else:
            del unexpected[partner]
    return unexpected, missing


def same_value(left: Any, right: Any, tolerance: float = 1e-9) -> bool:
    """Equality of two aggregate values: NaN equals NaN, floats within the tolerance.

    >>> same_value([1.0, None], [1.0 + 1e-15, None]), same_value(1, True), same_value(1, 1.5)
    (True, False, False)
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and left == right
    if isinstance(left, float) or isinstance(right, float):
        if not _number(left) or not _number(right):
            return False
        return _same_float(float(left), float(right), tolerance)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(
            same_value(left[key], right[key], tolerance) for key in left
        )
    if _sequence(left) and _sequence(right):
        return len(left) == len(right) and all(
            same_value(one, other, tolerance) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, dt.datetime) and isinstance(right, dt.datetime):
        return _utc(left) == _utc(right)
    return bool(left == right)


def _same(actual: Row, expected: Row, tolerance: float) -> bool:
    return _window(actual) == _window(expected) and same_value(
        actual.aggregates, expected.aggregates, tolerance
    )


def _window(row: Row) -> tuple[Any, ...]:
    # Keys by type as well: 1, 1.0 and True are equal in Python; NaN is not even equal to itself.
    keys = tuple((type(key).__name__, "nan" if key != key else key) for key in row.keys)
    edges = (row.start, row.end, row.low, row.high, row.ordinal)
    return (keys, row.window_name, *edges, row.kind, row.revision)


def _number(value: object) -> bool:
    return isinstance(value, int | float | decimal.Decimal)


def _sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _utc(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value


def _same_float(left: float, right: float, tolerance: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or math.isclose(left, right, rel_tol=tolerance, abs_tol=tolerance)
