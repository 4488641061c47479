"""Kinds of column types, and casts of columns without loss."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from muntin.aggregates.type_names import named_type
from muntin.errors import QueryError, value_text
from muntin.slicing.key_columns import plain_array, plain_type

__all__ = ["FAILURES", "LossError", "cure", "declared", "kind_of", "lossless", "plain", "type_name"]

FAILURES = (pa.ArrowException, ArithmeticError, TypeError, ValueError)
"""The errors of Arrow for values that it cannot convert."""

_KINDS = [
    (t.is_null, "null"),
    (t.is_boolean, "boolean"),
    (t.is_integer, "integer"),
    (t.is_floating, "float"),
    (t.is_decimal, "decimal"),
    (lambda type_: t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_), "text"),
    (lambda type_: t.is_binary(type_) or t.is_large_binary(type_), "bytes"),
    (lambda type_: t.is_timestamp(type_) and type_.tz is None, "timestamp"),
    (t.is_timestamp, "timestamp with a zone"),
    (t.is_date, "date"),
    (t.is_time, "time"),
    (t.is_duration, "duration"),
]
_NUMBERS = ("integer", "float", "decimal")
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


class LossError(ValueError):
    """Values that another type cannot represent: the first is in `row`; None if the types do not fit."""

    def __init__(self, row: int | None) -> None:
        super().__init__(row)
        self.row = row


def kind_of(type_: pa.DataType) -> str:
    """The kind of the values of a type, in one word; "other" for nested types and extensions.

    >>> kind_of(pa.int32()), kind_of(pa.large_string()), kind_of(pa.timestamp("s", "UTC"))
    ('integer', 'text', 'timestamp with a zone')
    """
    type_ = plain_type(type_)
    return next((kind for matches, kind in _KINDS if matches(type_)), "other")


def type_name(type_: pa.DataType) -> str:
    """A type as the user writes it in `schema={...}`.

    >>> type_name(pa.float64()), type_name(pa.timestamp("us", "UTC")), type_name(pa.decimal128(38, 2))
    ('"float64"', 'pa.timestamp("us", "UTC")', 'pa.decimal128(38, 2)')
    """
    if t.is_timestamp(type_) and type_.tz is not None:
        return f'pa.timestamp("{type_.unit}", "{type_.tz}")'
    name = {"double": "float64", "float": "float32", "halffloat": "float16"}.get(str(type_), str(type_))
    return f"pa.{name}" if t.is_decimal(type_) else f'"{name}"'


def cure(name: str, wanted: pa.DataType, given: pa.DataType) -> str:
    """How to get a column whose type fits the given values, too; empty where no other type would.

    >>> cure("v", pa.int64(), pa.float64())
    'pass schema={"v": "float64"}'
    """
    kinds = kind_of(wanted), kind_of(given)
    wider = kinds[1] in _NUMBERS and (kinds[0] == "integer" or kinds[0] == kinds[1])
    return f'pass schema={{"{name}": {type_name(given)}}}' if wider and given != wanted else ""


def declared(schema: object) -> dict[str, pa.DataType]:
    """The types of the user: a pyarrow schema, or a dict of names and types.

    >>> declared({"v": "float64", "ts": pa.timestamp("ms")})
    {'v': DataType(double), 'ts': TimestampType(timestamp[ms])}
    """
    if schema is None:
        return {}
    if isinstance(schema, pa.Schema):
        schema = dict(zip(schema.names, schema.types, strict=True))
    if not isinstance(schema, Mapping):
        raise QueryError(
            f'schema must be a pyarrow schema or a dict like {{"v": "float64"}}: got {value_text(schema)}'
        )
    types = {name: _declared_type(name, kind) for name, kind in schema.items()}
    return {name: kind for name, kind in types.items() if kind != pa.null()}


def _declared_type(name: object, kind: object) -> pa.DataType:
    if not isinstance(name, str):
        raise QueryError(f"schema: names of columns must be texts: got {value_text(name)}")
    type_ = named_type(kind, f'schema: the type of "{name}"')
    return _VIEWS.get(type_, plain_type(type_))


def lossless(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The same values in another type, without dictionaries or run ends.

    Raises LossError where a value, or its meaning, would change: Arrow would also cast times to counts of
    their unit, and numbers to texts.

    >>> lossless(pa.array([1, 2], pa.int32()), pa.float64()).to_pylist()
    [1.0, 2.0]
    """
    column = plain(column)
    if column.type == wanted:
        return column
    given, asked = kind_of(column.type), kind_of(wanted)
    if given not in ("null", asked) and not {given, asked} <= set(_NUMBERS):
        raise LossError(None)
    try:
        cast = column.cast(wanted)
    except FAILURES:
        raise LossError(_first_change(column, wanted)) from None
    if given in _NUMBERS and "integer" not in (given, asked) and (row := _changed(column, cast)) is not None:
        raise LossError(row)  # Arrow rounds floats and decimals without an error
    return cast


def plain(column: pa.Array) -> pa.Array:
    """The values of a column without an encoding or views, from which Arrow takes no rows."""
    column = plain_array(column)
    return column.cast(_VIEWS[column.type]) if column.type in _VIEWS else column


def _first_change(column: pa.Array, wanted: pa.DataType) -> int | None:
    try:
        return _changed(column, column.cast(wanted, safe=False))
    except FAILURES:
        return None


def _changed(column: pa.Array, cast: pa.Array) -> int | None:
    """The first row whose value changes in a cast to the type and back."""
    differs = pc.not_equal(column, cast.cast(column.type, safe=False))
    if t.is_floating(column.type):
        both = pc.and_(pc.is_nan(column), pc.is_nan(cast) if t.is_floating(cast.type) else False)
        differs = pc.and_not(differs, both)
    row = pc.index(differs, True).as_py()
    return None if row < 0 else int(row)
