"""Small tables of results that are one Arrow message, against the same tables made column by column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.slicing.emission import results
from muntin.slicing.emission.result_messages import ResultMessages

AGGREGATES = {
    "n": a.count(),
    "total": a.sum("v"),
    "mean": a.mean("v"),
    "low": a.min("v"),
    "high": a.max("x"),
    "lowest": a.min("x"),
    "last": a.max("t"),
}
FLOATS = {"floats": a.sum("x"), "middle": a.mean("x"), "long": a.sum("d")}
WINDOWS = {"ten": w.tumbling(10), "a longer name": w.sliding(30, 7)}
SECONDS = {"ten": w.tumbling("10 s"), "half": w.sliding("2500 ms", "500 ms")}
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[pa.Table | None]:
    """What messages were asked for, and their tables."""
    tables: list[pa.Table | None] = []
    make = ResultMessages.table

    def noted(self: ResultMessages, *arguments: Any) -> pa.Table | None:
        tables.append(make(self, *arguments))
        return tables[-1]

    monkeypatch.setattr(ResultMessages, "table", noted)
    return tables


def batches(time: pa.DataType, value: pa.DataType, nulls: bool = False) -> list[tuple[pa.Table, int]]:
    """Tuples in order, with the watermark behind each batch."""
    rng, found = np.random.default_rng(3), []
    scale = PER_SECOND[time.unit] if pa.types.is_timestamp(time) else 1
    for start in range(0, 200, 20):
        times = np.sort(rng.integers(start, start + 20, 9))
        most = 2**50 if value == pa.int64() else 2**30
        values = rng.integers(-most, most, 9)
        first = pa.array(values).cast(value)
        columns = {
            "t": pa.array(times * scale).cast(time),
            "v": pa.nulls(9, value) if nulls and start == 60 else first,
            "x": pa.array(rng.choice([-0.0, 0.0, np.nan, np.inf, -1.5, 2.5e-300], 9)),
            "d": pa.array(values).cast(pa.duration("ms")),
            "k": pa.array(rng.choice(["north", "south", ""], 9)),
        }
        found.append((pa.table(columns), (start + 20) * scale))
    return found


def driven(query: mt.Query, given: list[tuple[pa.Table, int]]) -> list[tuple[pa.Table, pa.Table]]:
    """The results of each step, with the struct of edges and with plain columns."""
    found, unit = [], given[0][0].schema.field("t").type
    operator = query.operator()
    for i, (batch, watermark) in enumerate(given):
        operator.process(batch)
        made = operator.advance(pa.scalar(watermark, unit) if pa.types.is_timestamp(unit) else watermark)
        # Either table may be the first that is made.
        plain = made.to_arrow() if i % 2 else None
        nested = made.to_arrow(nested=True)
        found.append((nested, made.to_arrow() if plain is None else plain))
    return found


@pytest.mark.parametrize("value", [pa.int64(), pa.timestamp("us"), pa.duration("s")], ids=str)
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    "time", [pa.int64(), pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("s", "UTC")]
)
def test_messages_hold_what_columns_hold(
    time: pa.DataType, keyed: bool, value: pa.DataType, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = WINDOWS if time == pa.int64() else SECONDS
    aggregates = AGGREGATES if value == pa.int64() else {"low": a.min("v"), "n": a.count("v")}
    if not keyed:
        aggregates = aggregates | FLOATS
    query = mt.windows(**named).aggregate(**aggregates).on("t")
    query = query.by("k") if keyed else query
    given = batches(time, value)
    found = driven(query, given)
    assert sum(table is not None for table in made) >= len(given) - 2  # the first step binds the types
    monkeypatch.setattr(results, "MOST_ROWS", 0)
    for (nested, plain), (other_nested, other_plain) in zip(found, driven(query, given), strict=True):
        for table, other in ((nested, other_nested), (plain, other_plain)):
            table.validate(full=True)
            assert table.schema.equals(other.schema, check_metadata=True)
            # As texts, so that NaN equals itself and -0.0 differs from 0.0.
            assert repr(table.to_pylist()) == repr(other.to_pylist())


def test_a_window_without_values_is_null(made: list[Any]) -> None:
    query = mt.windows(ten=w.tumbling(20)).aggregate(total=a.sum("v"), low=a.min("v"), n=a.count()).on("t")
    found = driven(query, batches(pa.int64(), pa.int64(), nulls=True))
    rows = [row for _, plain in found for row in plain.to_pylist()]
    assert [row["total"] is None for row in rows] == [row["low"] is None for row in rows]
    assert [row["window_start"] for row in rows if row["total"] is None] == [60]
    assert all(row["n"] == 9 for row in rows)


def test_a_value_that_is_null_is_no_part_of_a_message(made: list[Any]) -> None:
    """The slice of nulls was made by the general route; the step that emits it is the compiled one."""
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v"), n=a.count()).on("t")
    operator = query.operator(schema={"t": pa.int64(), "v": pa.int64()})
    operator.process({"t": [1], "v": pa.array([None], pa.int64())})
    operator.advance(5)
    operator.process(pa.record_batch({"t": [12], "v": [4]}))
    emitted = operator.advance(20)
    assert emitted["total"].to_pylist() == [None, 4]
    assert emitted["n"].to_pylist() == [1, 1]
    assert made == [None, None]  # of plain columns, and of the struct that they are made of then


def test_more_rows_than_a_message_has_are_made_column_by_column(made: list[Any]) -> None:
    rows = results.MOST_ROWS + 1
    query = mt.windows(one=w.tumbling(1)).aggregate(total=a.sum("v")).on("t")
    operator = query.operator()
    for start in (0, rows, 2 * rows):
        operator.process(pa.record_batch({"t": np.arange(start, start + rows), "v": np.arange(rows)}))
        emitted = operator.advance(start + rows)
        assert emitted["total"].to_pylist() == list(range(rows))
    assert made == []
    operator.process(pa.record_batch({"t": np.arange(3 * rows, 4 * rows), "v": np.arange(rows)}))
    assert operator.advance(4 * rows - 1)["total"].to_pylist() == list(range(rows - 1))
    assert [len(table) for table in made] == [rows - 1]


def test_values_that_are_not_of_64_bits_are_made_column_by_column(made: list[Any]) -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(low=a.min("v")).on("t")
    operator = query.operator()
    for start in (0, 10, 20):
        values = pa.array([3, -2], pa.int16())
        operator.process(pa.record_batch({"t": pa.array([start, start + 1]), "v": values}))
        emitted = operator.advance(start + 10)
        assert emitted["low"].to_pylist() == [-2]
        assert emitted.schema.field("low").type == pa.int16()
    assert made == []
