"""Results on their way from Python to the JVM: columns of plain types, as they are."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.conversion import PandasToArrowConversion
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from muntin.connectors.spark.result_columns import COUNTED, are_plain, as_columns, plain_columns

EDGES = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])
AT = dt.datetime(1, 1, 1, tzinfo=dt.UTC)

PLAIN: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["a", None]),
    "bytes": (pa.binary(), [b"a", None]),
    "flag": (pa.bool_(), [True, None]),
    "small": (pa.int8(), [-1, None]),
    "large": (pa.int64(), [2**62, None]),
    "float": (pa.float32(), [1.5, None]),
    "double": (pa.float64(), [-0.5, None]),
    "decimal": (pa.decimal128(38, 2), [Decimal("-1.50"), None]),
    "date": (pa.date32(), [dt.date(1582, 10, 4), None]),
    "instant": (pa.timestamp("us", "UTC"), [AT, None]),
    "local": (pa.timestamp("us"), [dt.datetime(9999, 12, 31, 23), None]),
    "span": (pa.duration("us"), [dt.timedelta(days=-1), None]),
    "nothing": (pa.null(), [None, None]),
}


def output_of(schema: pa.Schema) -> StructType:
    fields = from_arrow_schema(schema).fields
    return StructType([StructField(f.name, f.dataType, f.name != "window") for f in fields])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("name", PLAIN)
def test_plain_columns_arrive_as_they_are(name: str, zone: str) -> None:
    kind, values = PLAIN[name]
    schema = pa.schema([("k", kind), ("window", EDGES)])
    windows = [{"start": AT, "end": AT + dt.timedelta(seconds=1)}] * 2
    table = pa.table([pa.array(values, kind), pa.array(windows, EDGES)], schema=schema)
    columns = plain_columns(output_of(schema))
    frames = list(as_columns([table], "1,2", schema))
    wrapped = StructType([StructField("_0", columns)])
    arrived = []
    for frame in frames:
        batch = PandasToArrowConversion.convert(
            [frame], wrapped, timezone=zone, arrow_cast=True, assign_cols_by_name=True
        )
        arrived.append(pa.Table.from_struct_array(batch.column(0)))
    results, counters = arrived
    assert results.column_names == ["c0", "c1", "c2", COUNTED]
    assert results.column("c0").cast(kind).to_pylist() == values
    assert results.column("c1").cast(EDGES[0].type).to_pylist() == [AT, AT]
    assert results.column(COUNTED).to_pylist() == [None, None]
    # No column of the row with counters is null: a column may be declared without nulls.
    assert counters.column(COUNTED).to_pylist() == ["1,2"]
    assert [column.null_count for column in counters.columns] == [int(name == "nothing"), 0, 0, 0]


NESTED = [
    pa.list_(pa.int64()),
    pa.struct([("x", pa.int64())]),
    pa.map_(pa.string(), pa.int64()),
]


@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_nested_columns_are_packed(kind: pa.DataType) -> None:
    assert not are_plain(output_of(pa.schema([("k", kind), ("window", EDGES)])))


def test_windows_that_may_be_null_are_packed() -> None:
    # Of a routed tuple: a null window would arrive as a window of nulls.
    output = from_arrow_schema(pa.schema([("k", pa.int64()), ("window", EDGES)]))
    assert not are_plain(output)
