"""Dictionary encoding: values of any type as integers that are equal where the values are equal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import types

from muntin.aggregates import arrays
from muntin.aggregates.base import Ints
from muntin.aggregates.partials import code_kernels
from muntin.aggregates.partials.extrema import has_arrow_order

__all__ = ["codes", "has_codes", "order_codes"]


def has_codes(type_: pa.DataType) -> bool:
    """Whether values of the type can be compared with each other."""
    return bool(arrays.has_keys(type_) or has_arrow_order(type_) or types.is_null(type_))


def codes(columns: tuple[pa.Array, ...]) -> tuple[Ints, int]:
    """Integers from 0 that are equal where the values of all columns are equal, and their number.

    There must be no nulls. As in Spark, NaN equals NaN, and -0.0 equals 0.0.

    >>> codes((pa.array(["a", "b", "a", "a"]), pa.array([0.0, 1.0, -0.0, 1.0])))
    (array([0, 1, 0, 2]), 3)
    """
    code, size = _encoded(columns[0])
    for column in columns[1:]:
        other, others = _encoded(column)
        code, size = code_kernels.number_equal(code * others + other)
    return code, size


def order_codes(array: pa.Array) -> Ints:
    """Integers in the order of the values, comparable within this array only.

    >>> order_codes(pa.array(["b", "a", "b"]))
    array([2, 1, 2])
    """
    if arrays.has_keys(array.type):
        return arrays.order_keys(array)
    if pa.types.is_null(array.type):  # a column that has had no value yet
        return np.zeros(len(array), dtype=np.int64)
    import pyarrow.compute as pc

    return np.asarray(pc.rank(array, tiebreaker="dense")).astype(np.int64)


def _encoded(array: pa.Array) -> tuple[Ints, int]:
    if arrays.has_keys(array.type):
        return code_kernels.number_equal(arrays.order_keys(array))
    encoded = array.dictionary_encode()
    return np.asarray(encoded.indices).astype(np.int64), len(encoded.dictionary)
