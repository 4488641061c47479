"""Tables, batches, DataFrames, dicts, lists and records: all give the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

RECORDS = [
    {"t": 3, "k": "a", "v": 1.5, "n": 1},
    {"t": 12, "k": "b", "v": 2.5, "n": 2},
    {"t": 8, "k": "a", "v": None, "n": 3},
    {"t": 25, "k": None, "v": 4.0, "n": None},
    {"t": 4, "k": "b", "v": 0.5, "n": 5},
]
TABLE = pa.Table.from_pylist(RECORDS)
COLUMNS = {name: [record[name] for record in RECORDS] for name in RECORDS[0]}
CONTAINERS: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "chunked table": lambda: pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)]),
    "batch": lambda: TABLE.to_batches()[0],
    "sliced batch": lambda: (
        pa.concat_tables([TABLE.slice(3), TABLE]).combine_chunks().to_batches()[0].slice(2)
    ),
    "pandas": lambda: TABLE.to_pandas().astype({"n": "Int64"}),
    "pandas of Arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.from_arrow(TABLE),
    "dict of lists": lambda: COLUMNS,
    "dict of Arrow": lambda: dict(zip(TABLE.column_names, TABLE.columns, strict=True)),
    "dict of NumPy": lambda: COLUMNS | {"t": np.array(COLUMNS["t"])},
    "dict of Series": lambda: COLUMNS | {"t": pd.Series(COLUMNS["t"]), "n": pl.Series(COLUMNS["n"])},
    "list of dicts": lambda: RECORDS,
    "tuple of dicts": lambda: tuple(RECORDS),
}


def query(**on: Any) -> Any:
    shape = mt.windows(ten=w.tumbling(10), s=w.session(5), two=w.count(2))
    aggregates = {"n": a.count(), "total": a.sum("v"), "most": a.max("n"), "first": a.first("k")}
    return shape.aggregate(**aggregates).by("k").on("t", **on)


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same(container: str) -> None:
    assert query().run(CONTAINERS[container]()).to_pylist() == query().run(TABLE).to_pylist()


@pytest.mark.parametrize("container", CONTAINERS)
def test_batches_of_different_kinds_may_follow_each_other(container: str) -> None:
    op, expected = query().operator(), query().operator()
    for data in (TABLE, CONTAINERS[container](), RECORDS):
        op.process(data)
        expected.process(TABLE)
    assert op.finish() == expected.finish()


def test_single_records_give_the_same() -> None:
    op = query().operator()
    for record in RECORDS:
        assert op.process(record).num_rows == 0
    assert op.finish() == query().run(TABLE)


def test_records_and_batches_keep_their_order() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(all=a.collect("v")).on("t")
    op = shape.operator()
    for data in ({"t": 1, "v": 1}, {"t": 1, "v": 2}, [{"t": 1, "v": 3}], {"t": 1, "v": 4}):
        op.process(data)
    assert op.finish()["all"].to_pylist() == [[1, 2, 3, 4]]


def test_more_records_than_the_buffer_holds() -> None:
    op = mt.windows(x=w.tumbling(100_000)).aggregate(n=a.count()).on("t").operator()
    for t in range(10_000):
        op.process({"t": t})
    assert op.finish()["n"].to_pylist() == [10_000]


def test_extra_columns_are_ignored_and_their_order_is_free() -> None:
    op = query().operator()
    op.process(TABLE)
    op.process(TABLE.append_column("more", pa.array(range(5))).select(["more", "n", "v", "k", "t"]))
    op.process(TABLE.select(["n", "k", "t", "v"]))
    assert op.stats().tuples == 15


def test_no_tuples_at_all() -> None:
    for nothing in ([], {}, {"t": [], "v": []}, pa.table({}), TABLE.schema.empty_table(), pd.DataFrame()):
        assert query().run(nothing).num_rows == 0
    op = query().operator()
    for nothing in ([], TABLE.slice(0, 0), {}):
        op.process(nothing)
        op.process(TABLE)
    assert op.stats().tuples == 15
    assert query().run(TABLE.schema.empty_table()).schema == query().run(TABLE).schema


def test_a_field_that_records_leave_out_is_null_in_every_batch() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count(), total=a.sum("v")).on("t")
    at_once = shape.run([{"t": 1, "v": 2}, {"t": 2}])
    op = shape.operator()
    op.process([{"t": 1, "v": 2}])
    op.process([{"t": 2}])
    assert op.finish() == at_once
