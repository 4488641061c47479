"""Hashes of keys and tuples: the key group of a tuple, and its position among the tuples of one time.

A key belongs to one group, and each shuffle partition gets one group: all keys of a group share one stateful
call per micro-batch. Spark places a group by the Murmur3 hash of its number; so the numbers are chosen such
that each partition gets one.
"""

from __future__ import annotations

from functools import reduce
from itertools import count
from operator import add
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from muntin.connectors.spark.input_columns import arrow_schema
from muntin.connectors.spark.jvm.expressions import quoted
from muntin.connectors.spark.jvm.query_columns import as_integer
from muntin.errors import QueryError
from muntin.slicing.binding import require

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["group_column", "group_numbers", "murmur3_of_int", "order_column", "tie_column"]

_MASK = 0xFFFFFFFF
_SEED = 42
"""Spark's."""
_BITS = 62
"""The bits of a position, which is not negative."""
_AFTER_INTEGER, _AFTER_TIMESTAMP = 20, 11
"""The bits of the hash in a position, after those of a tie column."""
_SMALL = 1 << _BITS - _AFTER_INTEGER


def group_numbers(partitions: int) -> list[int]:
    """One number for each partition that Spark's hash partitioning sends there.

    >>> numbers = group_numbers(4)
    >>> sorted(murmur3_of_int(n) % 4 for n in numbers)
    [0, 1, 2, 3]
    """
    numbers: dict[int, int] = {}
    for number in count():
        numbers.setdefault(murmur3_of_int(number) % partitions, number)
        if len(numbers) == partitions:
            break
    return [numbers[partition] for partition in range(partitions)]


def murmur3_of_int(value: int) -> int:
    """Murmur3 (x86, 32 bit) of one int with Spark's seed, as a signed number.

    >>> murmur3_of_int(0), murmur3_of_int(1)
    (933211791, -559580957)
    """
    k = _rotated(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    h = (_rotated(_SEED ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4  # the length in bytes
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def group_column(keys: tuple[str, ...], frame: DataFrame, groups: list[int]) -> Column:
    """The group of a tuple, by the hash of its key."""
    if not keys:
        return f.lit(groups[0]).cast("int")
    number = f.pmod(
        f.xxhash64(*(_hashable(quoted(key), frame.schema[key].dataType) for key in keys)), f.lit(len(groups))
    )
    return f.element_at(f.array(*map(f.lit, groups)), (number + 1).cast("int")).cast("int")


def order_column(frame: DataFrame, columns: list[str], tie: str | Column | None) -> Column:
    """The position of a tuple among those of its time: not negative, and the same when it is read again.

    Different tuples should have different positions. So a tie column is followed by bits of the hash, as
    many as fit: 11 after a timestamp, and 20 after an integer below 2**42.
    """
    number = _hash(frame, columns)
    if tie is None:
        return f.shiftrightunsigned(number, 1)
    given = tie_column(frame, tie)
    if not isinstance(frame.select(_column(tie)).schema[0].dataType, IntegralType):
        return _followed_by(number, given, _AFTER_TIMESTAMP)
    small = _followed_by(number, given, _AFTER_INTEGER)
    return f.when(given < _SMALL, small).otherwise(given - _SMALL + (1 << _BITS))


def _followed_by(number: Column, given: Column, bits: int) -> Column:
    return f.shiftleft(given, bits).bitwiseOR(f.shiftrightunsigned(number, 64 - bits))


def tie_column(frame: DataFrame, tie: str | Column) -> Column:
    """The position of a tuple among those of its time by a column of the user."""
    if isinstance(tie, str):
        require((tie,), arrow_schema(frame, "UTC"))
    kind = frame.select(_column(tie)).schema[0]
    if not isinstance(kind.dataType, TimestampType | TimestampNTZType | IntegralType):
        raise QueryError(
            f'tie must be a column of integers or timestamps: "{kind.name}" is '
            f"{kind.dataType.simpleString()}; leave it out to order tuples of one time by their values"
        )
    number = as_integer(_column(tie), kind.dataType)
    integer = isinstance(kind.dataType, IntegralType)
    message = (
        f'the tie column "{kind.name}" must not be null or negative, nor lie above '
        f"{'2**62' if integer else 'the year 2112'}; leave tie= out, or shift its values"
    )
    fits = number.between(0, (1 << _BITS if integer else 1 << 63 - _AFTER_TIMESTAMP) - 1)
    return f.when(fits, number).otherwise(f.raise_error(f.lit(message)).cast("long"))


def _column(tie: str | Column) -> Column:
    return quoted(tie) if isinstance(tie, str) else tie


def _hash(frame: DataFrame, columns: list[str]) -> Column:
    """64 bits of the values of a tuple."""
    fields = {field.name: field for field in frame.schema}
    values = [_with_nulls(quoted(name), fields[name].dataType) for name in columns]
    # Spark's hash skips nulls: (1, null) and (null, 1) would be equal. So it gets a bit for each.
    absent = [quoted(name).isNull() for name in columns if fields[name].nullable]
    bits = [flag.cast("long") * f.lit(1 << i % _BITS) for i, flag in enumerate(absent)]
    masks = [reduce(add, bits[i : i + _BITS]) for i in range(0, len(bits), _BITS)]
    return f.xxhash64(*values, *masks)


def _with_nulls(column: Column, kind: DataType) -> Column:
    """The column, as text where Spark's hash would skip a null inside of its values."""
    return _text(column) if isinstance(kind, ArrayType | StructType) else _hashable(column, kind)


def _hashable(column: Column, kind: DataType) -> Column:
    """The column, so that equal values have one hash; as text where Spark hashes no maps and variants."""
    if isinstance(kind, DoubleType | FloatType):
        return column + f.lit(0.0)  # makes -0.0 equal to 0.0
    form = kind.json()
    return _text(column) if '"type":"map"' in form or '"variant"' in form else column


def _text(column: Column) -> Column:
    return f.to_json(f.struct(column), {"ignoreNullFields": "false"})
