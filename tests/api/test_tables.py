"""Whatever holds tuples becomes one record batch."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections import namedtuple
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from muntin.connectors.tables import Expected, as_record, to_batch
from muntin.errors import DataError

COLUMNS = {"ts": [1, 2, 3], "amount": [1.5, None, 2.5], "shop": ["a", "b", None]}
RECORDS = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]


@pytest.mark.parametrize(
    "data",
    [
        pa.table(COLUMNS),
        pa.record_batch(COLUMNS),
        pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
        pa.table(COLUMNS).to_reader(),
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        COLUMNS,
        MappingProxyType(COLUMNS),
        RECORDS,
        tuple(RECORDS),
        {"ts": range(1, 4), "amount": pa.array(COLUMNS["amount"]), "shop": tuple(COLUMNS["shop"])},
        {
            "ts": np.array([1, 2, 3]),
            "amount": pd.Series(COLUMNS["amount"]),
            "shop": pl.Series(COLUMNS["shop"]),
        },
        {"ts": pa.chunked_array([[1], [2, 3]]), "amount": COLUMNS["amount"], "shop": COLUMNS["shop"]},
    ],
    ids=lambda data: f"{type(data).__module__}.{type(data).__name__}",
)
def test_every_kind_of_data(data: object) -> None:
    batch, misfits = to_batch(data)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.to_pydict() == COLUMNS
    assert batch.schema.metadata is None
    assert not misfits


def read(data: object, **expected: object) -> pa.RecordBatch:
    """The batch, where nothing is wrong with any value."""
    batch, misfits = to_batch(data, Expected(**expected))  # type: ignore[arg-type]
    assert not misfits
    return batch


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        ({"ts": 1}, True),
        ({"ts": None}, True),
        ({"ts": "2024"}, True),
        ({"ts": np.int64(1)}, True),
        ({"ts": np.array(1)}, True),
        ({"ts": 1, "tags": ["a", "b"]}, True),
        (MappingProxyType({"ts": 1, "tags": []}), True),
        ({"ts": [1]}, False),
        ({"ts": [1], "amount": 3}, False),
        ({"ts": np.array([1])}, False),
        ({"ts": pd.Series([1])}, False),
        ({"ts": pl.Series([1])}, False),
        ({"ts": pa.array([1])}, False),
        ({"amount": 1}, False),
        ({}, False),
        ([{"ts": 1}], False),
        (pa.table({"ts": [1]}), False),
    ],
)
def test_what_is_a_record(data: object, answer: bool) -> None:
    assert as_record(data, "ts") is (data if answer else None)


def test_a_record_may_lack_its_time_where_that_is_forgiven() -> None:
    assert as_record({"amount": 1}, "ts", forgiving=True) == {"ts": None, "amount": 1}
    for no_record in ({}, {"amount": [1]}, [1], None):
        assert as_record(no_record, "ts", forgiving=True) is None


def test_columns_must_be_columns() -> None:
    with pytest.raises(DataError, match='"v" must hold a value for each of "t": got 3; pass a list'):
        to_batch({"t": [1], "v": 3}, Expected("t"))
    with pytest.raises(DataError, match=r'there is no column "time".*Did you mean "tme"'):
        to_batch({"tme": [1], "v": [3]}, Expected("time"))


def test_nothing_is_copied_where_nothing_must_be() -> None:
    array = pa.array(range(100))
    address = array.buffers()[1].address
    numpy = np.arange(100)
    for data in (pa.table({"a": array}), pa.record_batch({"a": array}), {"a": array}):
        assert read(data).column("a").buffers()[1].address == address
    assert read({"a": numpy}).column("a").buffers()[1].address == numpy.ctypes.data
    batch = pa.record_batch({"a": array})
    assert read(batch, types={"a": pa.int64()}) is batch


def test_python_values() -> None:
    utc = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    batch = read([{"t": utc, "d": Decimal("1.5"), "n": None}, {"t": utc, "d": Decimal("10.25"), "n": None}])
    assert batch.schema.field("t").type == pa.timestamp("us", "UTC")
    assert batch.schema.field("d").type == pa.decimal128(38, 2)
    assert batch.column("d").to_pylist() == [Decimal("1.50"), Decimal("10.25")]
    assert batch.schema.field("n").type == pa.null()
    assert read({"t": [dt.datetime(2024, 1, 1)]}).schema.field("t").type == pa.timestamp("us")


def test_records_may_lack_and_add_fields() -> None:
    batch = read([{"a": 1}, {"b": 2}])
    assert batch.to_pydict() == {"a": [1, None], "b": [None, 2]}


def test_a_named_index_of_pandas_is_a_column() -> None:
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.DatetimeIndex(["2024-01-01", "2024-01-02"], name="ts"))
    assert read(frame).schema.names == ["v", "ts"]
    assert read(frame.rename_axis(None)).schema.names == ["v"]


def test_empty_data() -> None:
    assert read([]).num_rows == 0
    assert read({}).num_rows == 0
    assert read({"a": []}).num_rows == 0
    empty = read(pa.table({"a": pa.array([], pa.int64())}))
    assert empty.num_rows == 0
    assert empty.schema.names == ["a"]
    assert read(pd.DataFrame({"a": []})).num_rows == 0


TYPES = {"ts": pa.timestamp("ms"), "amount": pa.float64(), "price": pa.decimal128(10, 2)}


def test_types_that_are_known_are_given_to_python_values() -> None:
    record = {"ts": dt.datetime(2024, 1, 1), "amount": 5, "price": Decimal("1.5"), "more": "x"}
    batch = read([record], types=TYPES)
    assert batch.schema.types == [pa.timestamp("ms"), pa.float64(), pa.decimal128(10, 2), pa.string()]
    assert batch.to_pylist() == [record]
    assert read({"amount": [None]}, types=TYPES).schema.types == [pa.float64()]
    assert read(pa.table({"amount": [1]}), types=TYPES).schema.types == [pa.float64()]


Point = namedtuple("Point", "ts amount")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (3, "cannot read tuples from int"),
        ("x.csv", "cannot read tuples from str"),
        (None, "cannot read tuples from NoneType"),
        (pa.array([1]), "cannot read tuples from Int64Array"),
        (pd.Series([1]), "cannot read tuples from Series"),
        (np.arange(3), "cannot read tuples from ndarray"),
        (pl.DataFrame({"a": [1]}).lazy(), ".collect()"),
        ([1, 2], "must hold dicts: got int in row 0"),
        ([{"a": 1}, Point(1, 2)], "got Point in row 1"),
        ({"a": [1], "b": [1, 2]}, "same length: got a: 1, b: 2"),
        ({1: [1]}, "names of columns must be texts"),
        ({"a": np.zeros((2, 2))}, 'cannot read the column "a"'),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "names of columns must be unique: got a, a"),
    ],
)
def test_what_holds_no_tuples(data: object, words: str) -> None:
    with pytest.raises(DataError) as error:
        to_batch(data)
    assert words in str(error.value)


WITHOUT_FRAMES = """
import sys
class Nothing:
    def find_spec(self, name, *args):
        if name in ("pandas", "polars"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Nothing())
from muntin.connectors.tables import as_record, to_batch
assert to_batch({"a": [1]}) == to_batch([{"a": 1}])
assert as_record({"a": 1}, "a")
"""


def test_pandas_and_polars_are_not_needed() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_FRAMES], check=True)
