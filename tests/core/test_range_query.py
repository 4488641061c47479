"""`op.query(start, end)`: any range of time, answered from slices, which says what it answers."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError, UserCodeError

HOUR = mt.windows(hour=w.sliding(60, every=10)).aggregate(n=a.count(), total=a.sum("v"))
FIVE = {"t": [1, 12, 25, 27, 38], "v": [1, 2, 4, 8, 16]}


def ranges(rows: mt.Rows) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows]


def test_a_range_ends_where_it_would_divide_a_slice() -> None:
    op = HOUR.on("t").operator()
    op.process(FIVE)
    assert ranges(op.query(0, 100)) == [(0, 100, 5, 5, 31)]
    assert ranges(op.query(10, 30)) == [(10, 30, 3, 3, 14)]
    assert ranges(op.query(5, 33)) == [(5, 33, 3, 3, 14)]  # no slice has tuples on both sides of 5 or 33
    assert ranges(op.query(10, 27)) == [(10, 25, 1, 1, 2)]
    assert ranges(op.query(26, 39)) == [(28, 39, 1, 1, 16)]
    assert ranges(op.query(26, 27)) == []
    assert ranges(op.query(50, 60)) == []


def test_keys() -> None:
    op = HOUR.by("k", "j").on("t").operator()
    op.process(FIVE | {"k": ["a", "a", "b", "a", "b"], "j": [1, 1, 2, 1, None]})
    assert ranges(op.query(10, 40)) == [
        ("a", 1, 10, 40, 2, 2, 10), ("b", 2, 10, 40, 1, 1, 4), ("b", None, 10, 40, 1, 1, 16),
    ]  # fmt: skip
    assert ranges(op.query(10, 40, key=("b", None))) == [("b", None, 10, 40, 1, 1, 16)]
    assert ranges(op.query(10, 40, key=("c", 1))) == []
    assert ranges(op.query(10, 40, key=("a", 1))) == ranges(op.query(10, 40))[:1]
    for wrong in ("a", ("a",), ("a", 1, 2)):
        with pytest.raises(QueryError, match="needs a value for each of k, j"):
            op.query(10, 40, key=wrong)
    with pytest.raises(QueryError, match=r"must fit the key columns \(k string, j int64\)"):
        op.query(10, 40, key=("a", "x"))
    one = HOUR.by("k").on("t").operator()
    one.process(FIVE | {"k": ["a", "a", "b", "a", "b"]})
    assert ranges(one.query(10, 40, key="b")) == [("b", 10, 40, 2, 2, 20)]


def test_slices_that_were_dropped_are_not_answered() -> None:
    op = (
        mt.windows(ten=w.tumbling(10), hundred=w.sliding(100, every=10))
        .aggregate(n=a.count())
        .on("t")
        .operator()
    )
    for time in range(0, 2_000, 2):
        op.process({"t": time})
        if time % 100 == 0:
            op.advance(time)
    op.stats()  # drops what no window needs
    ((begin, end, count, n),) = ranges(op.query(0, 1_950))
    assert 1_500 <= begin <= 1_810
    assert end == 1_950
    assert count == n == (end - begin) // 2


def test_it_includes_what_waits_and_changes_nothing() -> None:
    op, plain = (HOUR.on("t").operator() for _ in range(2))
    op.process(FIVE)
    plain.process(FIVE)
    record = {"t": 39, "v": 32}
    op.process(record)
    plain.process(record)
    assert ranges(op.query(30, 40)) == [(30, 40, 2, 2, 48)]
    assert op._buffer.waiting == 1
    assert op.snapshot() == plain.snapshot()
    assert op.finish().to_pylist() == plain.finish().to_pylist()
    assert len(op.query(0, 100)) == 0


def test_before_the_first_tuple() -> None:
    rows = HOUR.by("k").on("t").operator().query(0, 10)
    assert (len(rows), rows.column_names) == (
        0,
        ["k", "range_start", "range_end", "range_count", "n", "total"],
    )


def test_times_are_those_of_the_column() -> None:
    op = mt.windows(minute=w.tumbling("1 minute")).aggregate(n=a.count()).on("t").operator()
    nine = dt.datetime(2026, 5, 4, 9)
    op.process({"t": [nine + dt.timedelta(seconds=s) for s in (5, 65, 70)]})
    row = op.query(nine, "2026-05-04T09:01:08")[0]
    assert row == {
        "range_start": nine,
        "range_end": nine + dt.timedelta(seconds=65),
        "range_count": 1,
        "n": 1,
    }
    with pytest.raises(DataError, match="a timestamp column must be a datetime"):
        op.query(0, 10)
    with pytest.raises(QueryError, match="begins before its end: got 5 and 5"):
        HOUR.on("t").operator().query(5, 5)


def test_errors_name_the_key_and_no_window() -> None:
    def lower(total: int) -> int:
        raise ValueError("too much")

    total = a.aggregate("v", lift=int, combine=lambda x, y: x + y, lower=lower, type="int64", compile=False)
    op = mt.windows(ten=w.tumbling(10)).aggregate(total=total).by("k").on("t").operator()
    op.process({"t": [1], "v": [1], "k": ["x"]})
    with pytest.raises(UserCodeError, match=r"too much.*at k='?\"?x"):
        op.query(0, 10)


@pytest.mark.parametrize("store", ["lazy", "flatfat", "fiba", "daba", "prefix", "two_stacks"])
def test_every_store_answers(store: str) -> None:
    op = mt.windows(long=w.sliding(900, every=1)).aggregate(total=a.sum("v")).on("t").operator(store=store)
    values = np.arange(1_000)
    op.process({"t": values, "v": values})
    op.advance(500)
    assert ranges(op.query(500, 900)) == [(500, 900, 400, int(values[500:900].sum()))]
