"""Which rows of two Arrow columns differ: nulls are equal to nulls, and NaN to NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

__all__ = ["differences"]

Mask = npt.NDArray[np.bool_]


def differences(left: pa.Array, right: pa.Array) -> Mask:
    """Whether the values of both columns differ, row by row; both have one type and length.

    >>> differences(pa.array([1.0, None, [2][0]]), pa.array([1.0, None, 3.0])).tolist()
    [False, False, True]
    >>> differences(pa.array([[1], [1, 2], []]), pa.array([[1], [1, 3], None])).tolist()
    [False, True, True]
    """
    absent, other = _nulls(left), _nulls(right)
    differ: Mask = absent != other
    both = np.flatnonzero(~absent & ~other)
    if len(both):
        chosen = pa.array(both)
        differ[both] = _of_values(left.take(chosen), right.take(chosen))
    return differ


def _nulls(column: pa.Array) -> Mask:
    absent: Mask = column.is_null().to_numpy(zero_copy_only=False).copy()
    return absent


def _of_values(left: pa.Array, right: pa.Array) -> Mask:
    """As `differences`, where no value is null."""
    kind = left.type
    if isinstance(kind, pa.BaseExtensionType):
        return differences(left.storage, right.storage)
    if t.is_dictionary(kind):
        return _of_values(left.dictionary_decode(), right.dictionary_decode())
    if t.is_struct(kind):
        return _any(differences(a, b) for a, b in zip(left.flatten(), right.flatten(), strict=True))
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or t.is_map(kind):
        return _of_lists(left, right)
    if t.is_floating(kind):
        one, other = (column.to_numpy(zero_copy_only=False) for column in (left, right))
        differ: Mask = (one != other) & ~(np.isnan(one) & np.isnan(other))
        return differ
    if t.is_null(kind):
        return np.zeros(len(left), dtype=np.bool_)
    unequal: Mask = pc.not_equal(left, right).to_numpy(zero_copy_only=False)
    return unequal


def _of_lists(left: pa.Array, right: pa.Array) -> Mask:
    kind = left.type
    if t.is_map(kind):
        entry = pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
        left, right = left.cast(entry), right.cast(entry)
    size, other = (pc.list_value_length(column).to_numpy(zero_copy_only=False) for column in (left, right))
    differ: Mask = size != other
    same = np.flatnonzero(~differ)
    if len(same) and size[same].any():
        chosen = pa.array(same)
        items = differences(left.take(chosen).flatten(), right.take(chosen).flatten())
        row = np.repeat(same, size[same])
        differ[row[items]] = True
    return differ


def _any(masks: Any) -> Mask:
    combined: Mask = np.logical_or.reduce(list(masks))
    return combined
