"""Joins and takes Arrow columns, and makes lists; more than 2 GB in one column is an error with a cure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from muntin.aggregates.arrays import Ints
from muntin.errors import DataError, PlacedError

__all__ = ["MOST_BYTES", "TextError", "concat", "list_array", "taken", "text_bytes"]

MOST_BYTES = 2**31 - 1
"""The most bytes in a column of type string or binary, whose offsets have 32 bits."""


class TextError(DataError, PlacedError):
    """Texts or bytes that do not fit into one column."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the texts or bytes of one column must stay below 2 GB: {what}")
        self.cure = (
            'make the operator with schema={...} and "large_string" or "large_binary" for the column, '
            "or advance the watermark in smaller steps"
        )


def concat(arrays: Sequence[pa.Array]) -> pa.Array:
    """The arrays one after the other."""
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid as error:
        raise TextError(f"got {sum(array.nbytes for array in arrays):,} bytes") from error


def taken(array: pa.Array, index: Ints) -> pa.Array:
    """The values at these positions."""
    try:
        return array.take(pa.array(index))
    except pa.ArrowInvalid as error:
        raise TextError(f"got {len(index):,} values of {array.type}") from error


def text_bytes(array: pa.Array) -> int:
    """The bytes of a column that MOST_BYTES limits; 0 for other types."""
    limited = t.is_string(array.type) or t.is_binary(array.type)
    return int(array.nbytes) if limited else 0


class ListError(DataError, PlacedError):
    """Lists that do not fit into one column."""


def list_array(what: str, offsets: Ints, items: pa.Array, type_: pa.DataType) -> pa.Array:
    """One list for each row `offsets[j]:offsets[j + 1]` of the items; errors call it `what`."""
    if len(items) >= 2**31:
        raise ListError(
            f"the lists of one column must hold less than 2**31 values: got {len(items):,} of "
            f"{what}; advance the watermark in smaller steps"
        )
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), items, type=type_)
