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
from muntin.slicing.combining.base import combine
from muntin.slicing.emission import window_values

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


def test_ranges_before_the_last_fold_are_answered() -> None:
    op = (
        mt.windows(hundred=w.sliding(100, every=50), one=w.tumbling(1))
        .aggregate(n=a.count())
        .on("t")
        .operator()
    )
    op.process({"t": list(range(200))})
    op.advance(199)
    op.stats()  # joins the slices of 150 to 198, between which no window has an edge any more
    assert op.stats().merges > 0
    assert ranges(op.query(100, 170)) == [(100, 150, 50, 50)]
    assert ranges(op.query(120, 200)) == [(150, 200, 50, 50)]


@pytest.mark.parametrize("store", ["flatfat", "fiba", None])
def test_a_tree_that_persists_serves_ranges(store: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    combines: list[int] = []

    def counted(*arguments: Any) -> Any:
        states, count = combine(*arguments)
        combines.append(count)
        return states, count

    monkeypatch.setattr(window_values, "combine", counted)
    size = 2**15 if store is None else 2**12
    op = (
        mt.windows(long=w.sliding(2 * size, every=1))
        .aggregate(total=a.sum("v"))
        .on("t", max_windows=None)
        .operator(store=store)
    )
    values = np.arange(size)
    op.process({"t": values, "v": values})
    op.advance(2)
    # Two partials; a node of FiBA has up to eight entries.
    bound = (24 if store == "fiba" else 4) * int(np.log2(size))
    # The plan's own choice walks until that has cost as much as a tree over all slices.
    for _ in range(8 if store is None else 1):
        op.query(1, size - 1)
    combines.clear()
    for begin, end in [(1, size - 1), (size // 3, size // 2), (5, size - 7), (2, size)]:
        assert ranges(op.query(begin, end)) == [(begin, end, end - begin, int(values[begin:end].sum()))]
    if store is not None:
        assert max(combines) <= bound
    else:  # a short range is less work to walk
        assert max(combines[0], combines[2], combines[3]) <= bound
    plain = op.snapshot()
    op.query(7, 70)
    assert op.snapshot() == plain
    op.process({"t": [size], "v": [1]})
    combines.clear()
    assert ranges(op.query(5, size + 1)) == [(5, size + 1, size - 4, int(values[5:].sum()) + 1)]
    assert combines[0] <= bound


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
