"""Python values as columns of one type: which values fit, and which are distinguished."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from muntin.connectors.types import LossError, kind_of, lossless, type_name
from muntin.connectors.values import kind_of_value, to_column

NOON = dt.datetime(2024, 5, 1, 12)
NOON_UTC = NOON.replace(tzinfo=dt.UTC)
DAY = dt.date(2024, 5, 1)
D = Decimal

INFERRED: list[tuple[list[Any], pa.DataType, list[int]]] = [
    ([1, 2, None], pa.int64(), []),
    ([1, 2.5], pa.float64(), []),
    ([1, D("2.5")], pa.decimal128(38, 1), []),
    ([1.5, D("2.5"), 3], pa.float64(), [1]),
    ([1, "x", 2], pa.int64(), [1]),
    (["x", 1, 2], pa.int64(), [0]),  # most values decide
    (["x", 1], pa.string(), [1]),  # of two as frequent the first
    ([True, 1, 0], pa.int64(), [0]),
    ([2**63, 1], pa.int64(), [0]),
    ([2**70, 1.5, "x"], pa.float64(), [0, 2]),
    (["a", b"b", "c"], pa.string(), [1]),
    ([NOON, NOON_UTC, NOON], pa.timestamp("us"), [1]),
    ([NOON_UTC, NOON, NOON_UTC], pa.timestamp("us", "UTC"), [1]),
    ([DAY, NOON, NOON], pa.timestamp("us"), [0]),
    ([NOON, pd.NaT, None], pa.timestamp("us"), []),
    ([1, pd.NA], pa.int64(), []),
    ([dt.timedelta(1), 5], pa.duration("us"), [1]),
    ([{"a": 1}, {"a": 2}, 5], pa.struct([("a", pa.int64())]), [2]),
    ([object(), 1], pa.int64(), [0]),
    ([object(), None], pa.null(), [0]),
    ([None, None], pa.null(), []),
    ([], pa.null(), []),
    ([math.nan, 1], pa.float64(), []),
    (["a", math.nan], pa.string(), [1]),
]


@pytest.mark.parametrize(
    ("values", "type_", "misfits"), INFERRED, ids=[str(case[0]).partition(" at ")[0] for case in INFERRED]
)
def test_a_column_gets_the_type_of_most_values(
    values: list[Any], type_: pa.DataType, misfits: list[int]
) -> None:
    column, found = to_column(values)
    assert column.type == type_
    assert found == misfits
    for row, (value, held) in enumerate(zip(values, column.to_pylist(), strict=True)):
        null = row in misfits or value is None or value is pd.NaT or value is pd.NA
        assert held is None if null else held == value or (held != held and value != value)


STAMP = pa.timestamp("us")
WANTED: list[tuple[pa.DataType, list[Any], list[int]]] = [
    (pa.int64(), [1, 2.0, D(3), np.int8(4), 2.5, math.nan, D("3.5"), True, "1"], [4, 5, 6, 7, 8]),
    (pa.int64(), [2**63 - 1, -(2**63), 2**63, NOON, [1]], [2, 3, 4]),
    (pa.int8(), [127, 128, -129], [1, 2]),
    (pa.uint64(), [2**64 - 1, -1], [1]),
    (pa.float64(), [1, 2.5, 2**53, 2**53 + 1, math.inf, True, D("1.5"), "2"], [3, 5, 6, 7]),
    (pa.decimal128(5, 2), [1, D("1.25"), D("1.255"), 1.5, 10**9], [2, 3, 4]),
    (pa.string(), ["a", "", b"b", 1, NOON], [2, 3, 4]),
    (pa.large_string(), ["a", 1], [1]),
    (pa.dictionary(pa.int32(), pa.string()), ["a", 1], [1]),
    (pa.binary(), [b"a", "b"], [1]),
    (pa.bool_(), [True, np.bool_(False), 1, "yes"], [2, 3]),
    (STAMP, [NOON, NOON_UTC, DAY, 5, 5.0, "2024-05-01"], [1, 2, 3, 4, 5]),
    (STAMP, [np.datetime64("2024-05-01T12", "s"), np.int64(5)], [1]),
    (pa.timestamp("s"), [NOON, NOON.replace(microsecond=1)], [1]),
    (pa.timestamp("us", "Asia/Kathmandu"), [NOON_UTC, NOON], [1]),
    (pa.date32(), [DAY, NOON, 5], [1, 2]),
    (pa.time64("us"), [dt.time(12), 5], [1]),
    (pa.duration("us"), [dt.timedelta(1), 5], [1]),
    (pa.list_(pa.int64()), [[1], [], ["x"], 5], [2, 3]),
]


@pytest.mark.parametrize(("type_", "values", "misfits"), WANTED, ids=lambda value: str(value)[:40])
def test_values_of_a_type_that_is_given(type_: pa.DataType, values: list[Any], misfits: list[int]) -> None:
    column, found = to_column([*values, None], type_)
    assert (column.type, found) == (type_, misfits)
    assert [row for row in range(len(values)) if not column[row].is_valid] == misfits
    # The same one by one, as single records come.
    assert [row for row, value in enumerate(values) if to_column([value], type_)[1]] == misfits


def test_many_values_and_few_misfits() -> None:
    values: list[Any] = list(range(20_000))
    for row in (0, 77, 12_345, 19_999):
        values[row] = str(row)
    column, misfits = to_column(values)
    assert misfits == [0, 77, 12_345, 19_999]
    assert column.null_count == 4


def test_groups_of_kinds() -> None:
    integers, stamps = frozenset({"integer"}), frozenset({"timestamp", "timestamp with a zone"})
    assert to_column([NOON, 1, NOON], None, (integers, stamps))[1] == [0, 2]
    assert to_column([NOON, 1, NOON], None, (stamps, integers))[1] == [1]
    assert to_column([NOON, NOON], None, (integers, stamps))[0].type == STAMP
    assert to_column(["x", 1.5], None, (integers, stamps))[1] == [0, 1]


LOSSLESS: list[tuple[pa.Array, pa.DataType]] = [
    (pa.array([1, None], pa.int32()), pa.int64()),
    (pa.array([1, 2**53]), pa.float64()),
    (pa.array([1.0, -3.0]), pa.int64()),
    (pa.array([0.5, math.nan, math.inf]), pa.float32()),
    (pa.array([1, 2], pa.uint64()), pa.int8()),
    (pa.array([5]), pa.decimal128(38, 2)),
    (pa.array([D("1.50")]), pa.decimal128(38, 4)),
    (pa.array([D("2.00")]), pa.int64()),
    (pa.array([NOON]), pa.timestamp("ns")),
    (pa.array([NOON_UTC]), pa.timestamp("s", "Asia/Kathmandu")),
    (pa.array(["a", None]), pa.large_string()),
    (pa.array(["a", None]).dictionary_encode(), pa.string()),
    (pa.array([7, 7]).dictionary_encode(), pa.float64()),
    (pa.nulls(2), pa.string()),
    (pa.array([[1]]), pa.list_(pa.float64())),
]


@pytest.mark.parametrize(("column", "wanted"), LOSSLESS, ids=str)
def test_lossless_casts_keep_every_value(column: pa.Array, wanted: pa.DataType) -> None:
    cast = lossless(column, wanted)
    assert cast.type == wanted
    for before, after in zip(column.to_pylist(), cast.to_pylist(), strict=True):
        assert before == after or (before != before and after != after)


@pytest.mark.parametrize(
    ("column", "wanted", "row"),
    [
        (pa.array([1.0, 1.5]), pa.int64(), 1),
        (pa.array([1.0, math.nan]), pa.int64(), 1),
        (pa.array([1, 2**53 + 1]), pa.float64(), 1),
        (pa.array([1, 300]), pa.int8(), 1),
        (pa.array([0.5, 0.1]), pa.float32(), 1),
        (pa.array([0.5, 1e300]), pa.float32(), 1),
        (pa.array([0.5, 0.125]), pa.decimal128(38, 2), 1),
        (pa.array([D("0.50"), D("0.12")]), pa.decimal128(38, 1), 1),
        (pa.array([NOON, NOON.replace(microsecond=1)]), pa.timestamp("s"), 1),
        (pa.array([1]), pa.timestamp("us"), None),
        (pa.array([NOON]), pa.int64(), None),
        (pa.array([NOON]), pa.timestamp("us", "UTC"), None),
        (pa.array([1]), pa.string(), None),
        (pa.array(["1"]), pa.int64(), None),
        (pa.array([True]), pa.int64(), None),
        (pa.array([b"a"]), pa.string(), None),
    ],
    ids=str,
)
def test_casts_that_would_change_a_value(column: pa.Array, wanted: pa.DataType, row: int | None) -> None:
    with pytest.raises(LossError) as error:
        lossless(column, wanted)
    assert error.value.row == row


def test_values_and_their_columns_are_of_one_kind() -> None:
    times = (NOON, NOON_UTC, DAY, dt.time(1), dt.timedelta(1))
    for value in (True, 1, 1.5, D(1), "a", b"a", *times, [1], {"a": 1}):
        assert kind_of_value(value) == kind_of(pa.array([value]).type)


@pytest.mark.parametrize(
    "type_", [pa.int8(), pa.float16(), pa.float64(), pa.string(), pa.timestamp("ms"), pa.date32(), pa.bool_()]
)
def test_names_of_types_are_read_back(type_: pa.DataType) -> None:
    assert pa.type_for_alias(type_name(type_).strip('"')) == type_
