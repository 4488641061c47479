"""Arrow arrays as NumPy arrays and back, without copying where the memory allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from muntin.deferred_import import DeferredImport
from muntin.errors import SnapshotError

if TYPE_CHECKING:
    from muntin.aggregates import array_kernels
else:
    array_kernels = DeferredImport("muntin.aggregates.array_kernels")

__all__ = [
    "Bools",
    "Floats",
    "Ints",
    "bits",
    "floats",
    "from_decimal_words",
    "from_fixed",
    "from_keys",
    "from_lists",
    "has_keys",
    "integers",
    "is_decimal",
    "list_items",
    "order_keys",
    "plain",
    "plain_type",
    "read_lists",
    "read_numbers",
    "rows_in_order",
    "take_or_null",
    "to_lists",
    "true",
    "valid",
    "words",
]

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

_INT64 = np.dtype(np.int64)
_TOP = np.int64(-(2**63))
_NARROW_DECIMAL = 18
"""The largest number of digits of a decimal that fits into 64 bits."""
_EXACT, _EXACT_TENS = 2**53, 22
"""Floats represent all integers up to `_EXACT` exactly, and the powers of ten up to 10**`_EXACT_TENS`."""


_ENCODED = frozenset(
    {
        pa.lib.Type_DICTIONARY,
        pa.lib.Type_RUN_END_ENCODED,
        pa.lib.Type_STRING_VIEW,
        pa.lib.Type_BINARY_VIEW,
    }
)
"""The types that `plain_type` resolves, by number: to ask for each by name costs more than most columns."""


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type without its encoding: of a dictionary the type of its values, of a view the string."""
    if type_.id not in _ENCODED:
        return type_
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    return pa.string() if types.is_string_view(type_) else pa.binary()


def plain(array: pa.Array) -> pa.Array:
    """The same values without an encoding, so that arrays can be joined and taken from."""
    if array.type.id not in _ENCODED:
        return array
    if types.is_dictionary(array.type):
        return plain(array.dictionary_decode())
    if types.is_run_end_encoded(array.type):
        import pyarrow.compute as pc

        return plain(pc.run_end_decode(array))
    return array.cast(plain_type(array.type))


def is_decimal(type_: pa.DataType) -> bool:
    """Decimals of up to 38 digits."""
    return bool(types.is_decimal(type_) and not types.is_decimal256(type_))


def has_keys(type_: pa.DataType) -> bool:
    """Whether `order_keys` supports the type: its order fits into 64 bits."""
    if is_decimal(type_):
        return bool(type_.precision <= _NARROW_DECIMAL)
    return bool(
        types.is_integer(type_)
        or types.is_floating(type_)
        or types.is_boolean(type_)
        or types.is_date(type_)
        or types.is_time(type_)
        or types.is_timestamp(type_)
        or types.is_duration(type_)
    )


def valid(array: pa.Array) -> Bools | None:
    """Which entries are not null; None when all are."""
    if array.null_count == 0:
        return None
    if types.is_null(array.type) or array.buffers()[0] is None:
        import pyarrow.compute as pc

        return _bits(pc.is_valid(array).buffers()[1], 0, len(array))
    return _bits(array.buffers()[0], array.offset, len(array))


def true(array: pa.Array) -> Bools:
    """Which conditions hold; null counts as false."""
    if types.is_null(array.type):
        return np.zeros(len(array), dtype=np.bool_)
    flags, known = _bits(array.buffers()[1], array.offset, len(array)), valid(array)
    return flags if known is None else flags & known


def integers(array: pa.Array) -> Ints:
    """Integers, and what is stored as such, as int64; unscaled for decimals."""
    if types.is_int64(array.type):  # most often, so that nothing else is asked
        return _fixed(array, _INT64)
    if types.is_boolean(array.type):
        return _bits(array.buffers()[1], array.offset, len(array)).astype(np.int64)
    if types.is_decimal128(array.type):
        return np.ascontiguousarray(words(array)[:, 0])
    assert not types.is_uint64(array.type), "does not fit into int64; there are words for it"
    signed = "u" if types.is_unsigned_integer(array.type) else "i"
    return _fixed(array, np.dtype(f"{signed}{array.type.bit_width // 8}")).astype(np.int64, copy=False)


def bits(array: pa.Array) -> Ints:
    """Integers as int64; of those of 64 bits without a sign the same bits."""
    if types.is_uint64(array.type):
        return _fixed(array, np.dtype(np.uint64)).view(np.int64)
    return integers(array)


def floats(array: pa.Array) -> Floats:
    """Numbers as float64."""
    if types.is_floating(array.type):
        return _fixed(array, np.dtype(f"f{array.type.bit_width // 8}")).astype(np.float64, copy=False)
    if types.is_decimal(array.type):
        return _nearest_floats(array)
    if types.is_uint64(array.type):
        return _fixed(array, np.dtype(np.uint64)).astype(np.float64)
    return integers(array).astype(np.float64)


def _nearest_floats(array: pa.Array) -> Floats:
    """Decimals as the nearest floats.

    Arrow's cast multiplies by a rounded power of ten: it gives 123456.78899999999 for 123456.789. The
    quotient of two exact floats is rounded once; parsing a text gives the same result, but slowly.
    """
    scale = array.type.scale
    if not types.is_decimal256(array.type) and 0 <= scale <= _EXACT_TENS:
        pairs = words(array)
        unscaled = pairs[:, 0]
        exact = (pairs[:, 1] == unscaled >> 63) & (unscaled >= -_EXACT) & (unscaled <= _EXACT)
        if exact.all():
            quotients: Floats = unscaled / 10.0**scale
            return quotients
    return _fixed(array.cast(pa.string()).cast(pa.float64()), np.dtype(np.float64))


def order_keys(array: pa.Array) -> Ints:
    """Integers that compare as the values do.

    Floats in Spark's order: -0.0 equals 0.0, and NaN equals NaN and is above all numbers.

    >>> order_keys(pa.array([-1.5, -0.0, 0.0, 2.5, float("inf"), float("nan")])).tolist() == sorted(
    ...     order_keys(pa.array([-1.5, -0.0, 0.0, 2.5, float("inf"), float("nan")])).tolist()
    ... )
    True
    """
    if types.is_floating(array.type):
        return array_kernels.float_keys(floats(array).view(np.int64))
    if types.is_uint64(array.type):
        return _fixed(array, np.dtype(np.uint64)).view(np.int64) ^ _TOP
    return integers(array)


def from_keys(keys: Ints, ok: Bools | None, type_: pa.DataType) -> pa.Array:
    """The values of these order keys; null where not `ok`."""
    if types.is_floating(type_):
        bits = np.where(keys < 0, -keys | _TOP, keys)
        # Narrowing a NaN, or an arbitrary key at a null, warns.
        with np.errstate(invalid="ignore", over="ignore"):
            return from_fixed(bits.view(np.float64).astype(f"f{type_.bit_width // 8}"), ok, type_)
    if types.is_uint64(type_):
        return from_fixed(keys ^ _TOP, ok, type_)
    if types.is_boolean(type_):
        return pa.array(keys > 0, type_, mask=None if ok is None else ~ok)
    if types.is_decimal128(type_):
        return from_decimal_words(np.column_stack([keys, keys >> 63]), ok, type_)
    return from_fixed(keys.astype(f"i{type_.bit_width // 8}", copy=False), ok, type_)


def words(array: pa.Array) -> Ints:
    """The two 64-bit words of each decimal or unsigned integer, the low one first."""
    if types.is_uint64(array.type):
        low = _fixed(array, np.dtype(np.uint64)).view(np.int64)
        return np.column_stack([low, np.zeros_like(low)])
    if array.type.bit_width != 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.empty((0, 2), dtype=np.int64)
    both = np.frombuffer(buffer, dtype=np.int64, count=2 * (array.offset + len(array)))
    return both.reshape(-1, 2)[array.offset :]


def from_decimal_words(pairs: Ints, ok: Bools | None, type_: pa.DataType) -> pa.Array:
    """Decimals from their two words."""
    return from_fixed(np.ascontiguousarray(pairs).reshape(-1), ok, type_, length=len(pairs))


def from_fixed(
    values: npt.NDArray[Any],
    ok: Bools | None,
    type_: pa.DataType,
    length: int | None = None,
) -> pa.Array:
    """An array of a type of fixed width from the bits of its values; null where not `ok`."""
    bitmap = None
    if ok is not None and np.count_nonzero(ok) < len(ok):
        bitmap = pa.py_buffer(np.packbits(ok, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, len(values) if length is None else length, [bitmap, data])


def take_or_null(array: pa.Array, index: Ints) -> pa.Array:
    """The values at these places; null at -1."""
    absent = index < 0
    return array.take(pa.array(index, mask=absent) if absent.any() else pa.array(index))


def to_lists(offsets: Ints, items: npt.NDArray[Any] | pa.Array) -> pa.Array:
    """Rows of items as one list array, for a snapshot."""
    flat = items if isinstance(items, pa.Array) else pa.array(items)
    return pa.LargeListArray.from_arrays(pa.array(offsets), flat)


def from_lists(lists: pa.Array) -> Ints:
    """The offsets of a list array that `to_lists` wrote, from 0."""
    if not len(lists):
        return np.zeros(1, dtype=np.int64)
    offsets: Ints = np.array(lists.offsets, dtype=np.int64)
    offsets -= offsets[0]
    return offsets


def list_items(lists: pa.Array) -> pa.Array:
    """The items of a list array that `to_lists` wrote."""
    if not len(lists):
        return lists.values.slice(0, 0)
    offsets = lists.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return lists.values.slice(first, last - first)


def read_lists(columns: dict[str, pa.Array], *names: str) -> tuple[Ints, list[pa.Array]]:
    """The offsets and the items of list columns that `to_lists` wrote for the same rows.

    A SnapshotError if the lists of a row differ in length.
    """
    lists = [columns[name] for name in names]
    offsets = from_lists(lists[0])
    for name, column in zip(names, lists, strict=True):
        if column.null_count or not np.array_equal(from_lists(column), offsets):
            raise SnapshotError(f'the lists of "{name}" must be as long as those of "{names[0]}"')
    return offsets, [list_items(column) for column in lists]


def read_numbers(column: pa.Array, dtype: Any = np.int64) -> npt.NDArray[Any]:
    """Numbers from a snapshot; a SnapshotError if there are nulls, or values of another type.

    Copied: Arrow's memory is read-only, and kernels are compiled for writable arrays.
    """
    if column.null_count or column.type != pa.from_numpy_dtype(dtype):
        raise SnapshotError(
            f"a column must be {np.dtype(dtype)} without nulls: got {column.type}, {column.null_count} nulls"
        )
    return np.array(column.to_numpy(zero_copy_only=False))


def rows_in_order(offsets: Ints, *columns: npt.NDArray[Any]) -> bool:
    """Whether the items of each row are sorted by these columns; the first column counts most.

    >>> rows_in_order(np.array([0, 2, 3]), np.array([5, 5, 1]), np.array([1, 2, 9]))
    True
    """
    begins = np.zeros(len(columns[0]) + 1, dtype=np.bool_)
    begins[offsets] = True
    fine = begins[1 : len(columns[0])]
    tied = ~fine
    for column in columns:
        fine = fine | (tied & (column[1:] > column[:-1]))
        tied &= column[1:] == column[:-1]
    return bool((fine | tied).all())


def _fixed(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)


def _bits(buffer: pa.Buffer | None, offset: int, length: int) -> Bools:
    if buffer is None or length == 0:
        return np.empty(0, dtype=np.bool_)
    first = offset // 8
    packed = np.frombuffer(buffer, dtype=np.uint8)[first : (offset + length + 7) // 8]
    skipped = offset - 8 * first
    return np.unpackbits(packed, bitorder="little", count=skipped + length)[skipped:].view(np.bool_)
