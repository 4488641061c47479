"""The distinct values of one key column: by hash where Arrow has kernels for the type, else by text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from muntin.errors import DataError
from muntin.slicing.key_index import KeyIndex, is_indexable

Codes = npt.NDArray[np.int64]

_VIEWED = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Values by code, in order of first appearance; adding some makes a new object.

    `known` has them in the form that is looked up: -0.0 as 0.0, all NaN as one, as in SQL. For types that
    Arrow cannot hash (structs, lists, maps, extension types) it has a text for each value, and `originals`
    the first value with that text; these keys cost Python work per tuple.
    """

    kind: pa.DataType
    known: pa.Array
    originals: pa.Array | None = None
    index: KeyIndex | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, kind: pa.DataType) -> KeyColumn:
        """No values of this type yet."""
        empty, indexed = _empty(kind)
        return replace(empty, index=KeyIndex()) if indexed else empty

    def __len__(self) -> int:
        return len(self.known)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(self.known.nbytes) + (0 if self.originals is None else int(self.originals.nbytes))

    def encode(self, column: pa.Array, out: Codes | None = None) -> tuple[KeyColumn, Codes]:
        """The column with all these values, and the code of each, in `out` if given."""
        column = plain_array(column)
        if self.originals is None:
            known, codes = lookup(self.known, _normal(column, self.known.type), self.index, out)
            return replace(self, known=known), codes
        known, codes = lookup(self.known, _texts(column), None, out)
        fresh, where = np.unique(codes, return_index=True)
        first = pa.array(where[fresh >= len(self.known)])
        added = column.cast(self.kind) if column.type != self.kind else column
        return replace(self, known=known, originals=_joined(self.originals, added.take(first))), codes

    def values(self, codes: Codes) -> pa.Array:
        """The values of these codes, in the type of the column."""
        if self.originals is not None:
            return self.originals.take(pa.array(codes))
        return self.known.take(pa.array(codes)).cast(self.kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a column that may be encoded."""
    if t.is_dictionary(kind) or t.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


def plain_array(column: pa.Array) -> pa.Array:
    """The decoded values of a column."""
    while t.is_dictionary(column.type) or t.is_run_end_encoded(column.type):
        column = _decoded(column) if t.is_dictionary(column.type) else pc.run_end_decode(column)
    return column


def _decoded(column: pa.DictionaryArray) -> pa.Array:
    # Arrow takes no rows from views, which polars has in its categories.
    kind = _VIEWED.get(column.dictionary.type)
    if kind is None:
        return column.dictionary_decode()
    plain = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(kind))
    return plain.dictionary_decode().cast(column.dictionary.type)


def lookup(
    known: pa.Array, column: pa.Array, index: KeyIndex | None = None, out: Codes | None = None
) -> tuple[pa.Array, Codes]:
    """Codes of the column's values in `known`, which grows by the values that it lacks."""
    if index is not None and not column.null_count:
        return index.encode(known, column, out)
    encoded = column.dictionary_encode(null_encoding="encode")
    fresh = encoded.dictionary
    codes = pc.index_in(fresh, value_set=known)
    if codes.null_count:
        missing = pc.is_null(codes)
        added = fresh.filter(missing)
        known = _joined(known, added)
        codes = codes.to_numpy(zero_copy_only=False).copy()
        codes[missing.to_numpy(zero_copy_only=False)] = np.arange(len(known) - len(added), len(known))
    codes = np.asarray(codes, dtype=np.int64)
    # With mode="raise" NumPy would take a copy of `out`.
    return known, np.take(codes, np.asarray(encoded.indices), out=out, mode="clip")


def _joined(known: pa.Array, added: pa.Array) -> pa.Array:
    return pa.concat_arrays([known, added]) if len(added) else known


@cache
def _empty(kind: pa.DataType) -> tuple[KeyColumn, bool]:
    """No values of this type, and whether an index finds them."""
    storage = _storage(kind)
    if storage is None:
        return KeyColumn(kind, pa.array([], pa.large_string()), pa.array([], kind)), False
    return KeyColumn(kind, pa.array([], storage)), is_indexable(storage)


def _storage(kind: pa.DataType) -> pa.DataType | None:
    """The type that values are hashed as; None where Arrow has no kernels for it."""
    if t.is_float16(kind):
        return pa.float32()
    if kind in _VIEWED:
        return _VIEWED[kind]
    if t.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    try:
        lookup(pa.array([], kind), pa.array([], kind))
    except pa.ArrowNotImplementedError:
        return None
    return kind


def _normal(column: pa.Array, storage: pa.DataType) -> pa.Array:
    column = column if column.type == storage else column.cast(storage)
    if not t.is_floating(storage):
        return column
    zero, nan = pa.scalar(0.0, storage), pa.scalar(float("nan"), storage)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


def _texts(column: pa.Array) -> pa.Array:
    try:
        values = column.to_pylist()
    except (ValueError, KeyError) as error:  # nanoseconds that Python cannot hold, a field twice in a struct
        raise DataError(f"cannot read the key column of type {column.type}: {error}") from error
    return pa.array([None if value is None else _text(value) for value in values], pa.large_string())


def _text(value: Any) -> str:
    """The same text for equal values of one type, and for no others."""
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        return "{" + ",".join(f"{name!r}:{_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    return repr(value)
