"""Example values: given by the user, drawn from a strategy, or a few of each type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from muntin.aggregates.base import Aggregate
from muntin.aggregates.udaf import UserDefined
from muntin.errors import DataError, QueryError

__all__ = ["EXAMPLES", "default_types", "given_rows", "rows_of_types", "types_of"]

Row = tuple[Any, ...]

_DAY = dt.date(2024, 2, 29)
_NOON = dt.datetime(2024, 2, 29, 12)

EXAMPLES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 2, 3, -5, 7, 10],
    pa.float64(): [0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 7.0, 100.0],
    pa.string(): ["", "a", "b", "ab", "ä", "B"],
    pa.bool_(): [False, True],
    pa.int8(): [0, 1, -1, 127, -128],
    pa.uint64(): [0, 1, 2, 3, 2**40],
    pa.float32(): [0.0, 1.0, -1.5, 8.0],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("1.00"), Decimal("-1.50"), Decimal("99.99")],
    pa.timestamp("us", "UTC"): [_NOON.replace(tzinfo=dt.UTC) + dt.timedelta(hours=h) for h in (0, 1, -30)],
    pa.timestamp("s"): [_NOON, _NOON - dt.timedelta(days=400)],
    pa.date32(): [_DAY, _DAY + dt.timedelta(days=1), dt.date(1969, 7, 20)],
    pa.duration("ms"): [dt.timedelta(0), dt.timedelta(seconds=1), dt.timedelta(milliseconds=-250)],
    pa.binary(): [b"", b"a", b"\xff"],
    pa.list_(pa.int64()): [[], [1], [2, 1]],
}
"""A few values of each type, the simplest first: an error is shown with the first ones that do."""


def given_rows(values: Any, inputs: int) -> list[Row]:
    """The values that the user gave, one row of inputs each; a strategy is drawn from."""
    items = _drawn(values) if hasattr(values, "flatmap") else list(values)
    if not items:
        raise QueryError("values must not be empty: give a few, or leave them out")
    rows = [(item,) for item in items] if inputs == 1 else [tuple(item) for item in items]
    for row in rows:
        if len(row) != inputs:
            raise QueryError(f"values must be rows of {inputs}, one for each column: got {row!r}")
    return rows


def _drawn(strategy: Any) -> list[Any]:
    """Different values of a hypothesis strategy, the same in each run."""
    from hypothesis import HealthCheck, given, settings

    accepted: dict[str, Any] = {}

    @settings(max_examples=50, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def gather(value: Any) -> None:
        accepted.setdefault(repr(value), value)

    gather()
    return sorted(accepted.values(), key=lambda value: len(repr(value)))


def types_of(rows: Sequence[Row], inputs: int) -> tuple[pa.DataType, ...]:
    """The types of columns that hold these rows."""
    return tuple(pa.array([row[k] for row in rows]).type for k in range(inputs))


def default_types(aggregate: Aggregate) -> list[tuple[pa.DataType, ...]]:
    """All combinations of types to try that mean something to the aggregate.

    Functions of a user may take more types than they are meant for (`+` joins texts, too): those that
    take numbers are checked with numbers.
    """
    inputs = len(aggregate.inputs)
    if not inputs:
        return [()]
    other = (pa.int64(),) * (inputs - 1)
    tried = dict.fromkeys(
        types for type_ in EXAMPLES for types in ((type_,) * inputs, (type_, *other), (*other, type_))
    )
    accepted = [types for types in tried if _binds(aggregate, types)]
    numbers = [types for types in accepted if set(types) <= {pa.int64(), pa.float64()}]
    return numbers or accepted if isinstance(aggregate, UserDefined) else accepted


def _binds(aggregate: Aggregate, types: tuple[pa.DataType, ...]) -> bool:
    try:
        aggregate.bind(types)
    except (DataError, QueryError):
        return False
    return True


def rows_of_types(types: tuple[pa.DataType, ...]) -> list[Row]:
    """Rows of example values; with null among them."""
    if not types:
        return [()]
    longest = max(len(EXAMPLES[type_]) for type_ in types)
    columns = [EXAMPLES[type_] for type_ in types]
    # Shifted, so that the columns of a row are not always the same.
    rows = [
        tuple(column[(i + k * (i // len(column))) % len(column)] for k, column in enumerate(columns))
        for i in range(max(longest, 8) if len(types) > 1 else longest)
    ]
    return [*rows, (None,) * len(types)]
