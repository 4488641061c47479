"""The types of columns that aggregates accept, with the words of the error for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates import arrays
from muntin.aggregates.base import Aggregate
from muntin.aggregates.partials.codes import has_codes
from muntin.aggregates.partials.extrema import has_arrow_order
from muntin.errors import DataError
from muntin.expressions import Expr

__all__ = [
    "COMPARABLE",
    "INTEGERS",
    "NUMBERS",
    "ORDERED",
    "SUMMABLE",
    "TEXTS",
    "Accepted",
    "is_text",
    "require",
    "unaccepted",
]


class Accepted(NamedTuple):
    """The types that an input may have."""

    words: str
    test: Callable[[pa.DataType], bool]


def is_text(type_: pa.DataType) -> bool:
    """Whether values of the type are strings."""
    return bool(t.is_string(type_) or t.is_large_string(type_))


def _is_number(type_: pa.DataType) -> bool:
    return bool(t.is_integer(type_) or t.is_floating(type_) or arrays.is_decimal(type_))


NUMBERS = Accepted("numbers", _is_number)
INTEGERS = Accepted("integers", t.is_integer)
SUMMABLE = Accepted("numbers or durations", lambda type_: _is_number(type_) or t.is_duration(type_))
TEXTS = Accepted("strings", is_text)
ORDERED = Accepted("values with an order", lambda type_: arrays.has_keys(type_) or has_arrow_order(type_))
COMPARABLE = Accepted("values that can be compared", has_codes)


def require(
    aggregate: Aggregate, types: tuple[pa.DataType, ...], accepted: Accepted, which: int = 0
) -> pa.DataType:
    """The type of this input without its encoding; a DataError if the aggregate does not accept it."""
    type_ = arrays.plain_type(types[which])
    if not accepted.test(type_):
        raise unaccepted(aggregate, accepted.words, aggregate.inputs[which], types[which])
    return type_


def unaccepted(aggregate: Aggregate, words: str, expr: Expr, type_: pa.DataType) -> DataError:
    """The error for an input that has none of the types called `words`."""
    cure = "cast the column, or choose another one"
    if type_ == pa.null():
        cure = "it holds nothing but nulls, cast it to the type that it should have"
    return DataError(f'{aggregate.constructor} needs {words}: "{expr}" is {type_}; {cure}')
