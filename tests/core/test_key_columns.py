"""Every type of key, several keys, many keys."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError

D = decimal.Decimal
NOONS = [dt.datetime(2024, 5, 1, 12), dt.datetime(2024, 5, 2, 12)]
KEYS: dict[str, tuple[pa.Array, list[Any]]] = {
    "string": (pa.array(["a", "b", "a", None, ""]), ["a", "b", None, ""]),
    "large string": (pa.array(["a", "b", "a"], pa.large_string()), ["a", "b"]),
    "string view": (pa.array(["a", "b", "a", None], pa.string_view()), ["a", "b", None]),
    "binary": (pa.array([b"a", b"\xff", b"a"]), [b"a", b"\xff"]),
    "fixed binary": (pa.array([b"ab", b"cd", b"ab"], pa.binary(2)), [b"ab", b"cd"]),
    "int8": (pa.array([1, -1, 1, None], pa.int8()), [1, -1, None]),
    "uint64": (pa.array([2**64 - 1, 0, 2**64 - 1], pa.uint64()), [2**64 - 1, 0]),
    "bool": (pa.array([True, False, True, None]), [True, False, None]),
    "float64": (pa.array([0.0, -0.0, 1.5, math.inf, None]), [0.0, 1.5, math.inf, None]),
    "float32": (pa.array([0.0, -0.0, 1.5], pa.float32()), [0.0, 1.5]),
    "float16": (pa.array([0.0, -0.0, 1.5], pa.float16()), [0.0, 1.5]),
    "date": (
        pa.array([dt.date(2024, 1, 1), dt.date(1969, 1, 1)] * 2),
        [dt.date(2024, 1, 1), dt.date(1969, 1, 1)],
    ),
    "time": (pa.array([dt.time(12), dt.time(13), dt.time(12)]), [dt.time(12), dt.time(13)]),
    "timestamp": (pa.array([NOONS[0], NOONS[1], NOONS[0]]), NOONS),
    "duration": (pa.array([dt.timedelta(1), dt.timedelta(2)] * 2), [dt.timedelta(1), dt.timedelta(2)]),
    "decimal": (pa.array([D("1.50"), D("-2.25"), D("1.50")]), [D("1.50"), D("-2.25")]),
    "decimal256": (pa.array([D("1.50"), D("2.25")] * 2, pa.decimal256(50, 2)), [D("1.50"), D("2.25")]),
    "dictionary": (pa.array(["a", "b", "a", None]).dictionary_encode(), ["a", "b", None]),
    "dictionary of integers": (pa.array([7, 8, 7]).dictionary_encode(), [7, 8]),
    "run-end encoded": (pc.run_end_encode(pa.array([7, 7, 8])), [7, 8]),
    "null": (pa.nulls(3), [None]),
    "struct": (
        pa.array([{"x": 1, "y": "a"}, {"x": 1, "y": None}, {"x": 1, "y": "a"}, None]),
        [{"x": 1, "y": "a"}, {"x": 1, "y": None}, None],
    ),
    "struct of floats": (pa.array([{"x": 0.0}, {"x": -0.0}, {"x": 2.0}]), [{"x": 0.0}, {"x": 2.0}]),
    "list": (pa.array([[1, 2], [], [1, 2], [None], None, [2, 1]]), [[1, 2], [], [None], None, [2, 1]]),
    "fixed list": (pa.array([[1, 2], [2, 1], [1, 2]], pa.list_(pa.int64(), 2)), [[1, 2], [2, 1]]),
    "map": (pa.array([[("a", 1)], [], [("a", 1)]], pa.map_(pa.string(), pa.int64())), [[("a", 1)], []]),
    "list of structs": (pa.array([[{"x": 1}], [{"x": 2}], [{"x": 1}]]), [[{"x": 1}], [{"x": 2}]]),
    "uuid": (pa.array([bytes(16), bytes(15) + b"1"] * 2, pa.uuid()), [uuid.UUID(int=0), uuid.UUID(int=49)]),
}

ENCODED = ("dictionary", "dictionary of integers", "run-end encoded")


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type(name: str) -> None:
    column, distinct = KEYS[name]
    shape = mt.windows(x=w.tumbling(10), c=w.count(1)).aggregate(n=a.count()).by("k").on("t")
    op = shape.operator()
    op.process({"t": pa.array(range(len(column))), "k": column})
    again = Operator.restore(op.snapshot())
    for each in (op, again):
        each.process(pa.table({"t": pa.array([5] * len(column)), "k": column}).slice(1))
        table = each.finish().to_arrow()
        mine = table.filter(pc.equal(table["window_name"], "x"))
        assert mine["k"].to_pylist() == distinct
        assert sum(mine["n"].to_pylist()) == 2 * len(column) - 1
        plain = column.type.value_type if name in ENCODED else column.type
        assert table["k"].type == (pa.large_string() if name == "string view" else plain)
        assert table.num_rows == len(mine) + 2 * len(column) - 1


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()], ids=str)
def test_every_nan_is_one_key(kind: pa.DataType) -> None:
    plain, strange = np.array([np.nan, -np.nan]), np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    column = pa.array(np.concatenate([plain, strange, [1.0]])).cast(kind)
    table = (
        mt.windows(x=w.tumbling(10))
        .aggregate(n=a.count())
        .by("k")
        .on("t")
        .run({"t": [1, 2, 3, 4], "k": column})
    )
    assert table["n"].to_pylist() == [3, 1]
    nested = pa.array([{"x": float(v)} for v in (math.nan, -math.nan, 1.0)])
    table = (
        mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t").run({"t": [1, 2, 3], "k": nested})
    )
    assert table["n"].to_pylist() == [2, 1]


def test_several_key_columns_and_none() -> None:
    data = {
        "t": [1, 2, 3, 4, 5],
        "a": ["x", "x", "y", None, None],
        "b": [1, 2, 1, None, None],
        "c": [True] * 5,
    }
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count())
    assert shape.on("t").run(data)["n"].to_pylist() == [5]
    table = shape.by("a", "b", "c").on("t").run(data)
    found = {(row["a"], row["b"], row["c"]): row["n"] for row in table.to_pylist()}
    assert found == {("x", 1, True): 1, ("x", 2, True): 1, ("y", 1, True): 1, (None, None, True): 2}
    assert table.column_names[:3] == ["a", "b", "c"]


def test_the_time_or_a_value_may_be_a_key_too() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).by("t", "v").on("t")
    assert shape.run({"t": [1, 1, 2], "v": [5, 5, 6]})["total"].to_pylist() == [10, 6]


def test_many_keys_with_few_tuples_each() -> None:
    n = 50_000
    shape = mt.windows(x=w.tumbling(10), s=w.session(3), c=w.count(1)).aggregate(n=a.count()).by("k").on("t")
    table = shape.run({"t": np.zeros(2 * n, np.int64), "k": np.tile(np.arange(n), 2)})
    assert table.num_rows == 4 * n


def test_categories_of_polars() -> None:
    """Their values are views, of which Arrow takes no rows."""
    shape = mt.windows(x=w.tumbling(10)).aggregate(names=a.collect("k"), most=a.mode("k")).by("k").on("t")
    for kind in (pl.Categorical, pl.Enum(["a", "b"])):
        frame = pl.DataFrame({"t": [1, 2, 3], "k": ["b", "a", "b"]}, schema_overrides={"k": kind})
        rows = shape.run(frame).to_pylist()
        assert [(row["k"], row["names"], row["most"]) for row in rows] == [
            ("b", ["b", "b"], "b"),
            ("a", ["a"], "a"),
        ]


def test_a_union_is_refused() -> None:
    kinds, offsets = pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32())
    union = pa.UnionArray.from_dense(kinds, offsets, [pa.array([1, 2])])
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t")
    with pytest.raises(DataError, match=r'"k" must not be a union.*cast it'):
        shape.run(pa.table({"t": [1, 2], "k": union}))
