"""Aggregates that are added to a running operator and removed from it; property tests have random ones."""

from __future__ import annotations

from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError, SnapshotError

BASE = mt.windows(ten=w.tumbling(10))


def values(results: Any, *names: str) -> list[tuple[Any, ...]]:
    return [(row["window"]["start"], *(row[name] for name in names)) for row in results.to_pylist()]


def test_windows_that_begin_after_the_newest_tuple_show_a_new_aggregate() -> None:
    op = BASE.aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1, 12], "v": [5, 6]})
    added = op.add(top=a.max("v"), users=a.count_distinct("v"))
    assert added.since == {"top": 13, "users": 13}
    assert str(added).splitlines()[0] == (
        '"top" (max(v)) is shown by windows that begin at 13 or later: earlier slices lack it'
    )
    op.process({"t": [15, 21], "v": [7, 8]})
    assert values(op.finish(), "n", "top", "users") == [
        (0, 1, None, None), (10, 2, None, None), (20, 1, 8, 1),
    ]  # fmt: skip


def test_before_the_first_tuple_nothing_is_missed() -> None:
    op = BASE.aggregate(n=a.count()).on("t").operator()
    assert op.add(top=a.max("v")).since["top"] < -(2**62)
    op.remove("n")
    op.process({"t": [1], "v": [5]})
    assert op.finish().to_arrow().column_names == [
        "window_name",
        "window_start",
        "window_end",
        "top",
        "kind",
        "revision",
    ]


def test_columns_change_with_the_next_step() -> None:
    op = BASE.aggregate(n=a.count(), total=a.sum("v")).on("t", allowed_lateness=100).operator()
    op.process({"t": [1, 12], "v": [5, 6]})
    assert values(op.advance(10), "n", "total") == [(0, 1, 5)]
    op.remove("total")
    op.add(top=a.max("v"))
    results = op.advance(20)
    assert results.to_arrow().column_names[3:] == ["n", "top", "kind", "revision"]
    op.process({"t": [2], "v": [9]})
    assert [row["top"] for row in op.advance(21).to_pylist()] == [None]  # an update of [0, 10)


def test_a_name_that_comes_back_is_another_aggregate() -> None:
    op = BASE.aggregate(n=a.count(), top=a.max("v")).on("t").operator()
    op.process({"t": [1, 2], "v": [5, 6]})
    op.remove("top")
    op.process({"t": [11, 12], "v": [5, 6]})
    op.add(top=a.min("v"))
    op.process({"t": [21, 22], "v": [5, 6]})
    assert values(op.finish(), "top") == [(0, None), (10, None), (20, 5)]


def test_what_leaves_costs_nothing() -> None:
    op = BASE.aggregate(n=a.count(), users=a.count_distinct("v")).on("t").operator()
    plain = BASE.aggregate(n=a.count()).on("t").operator()
    for each in (op, plain):
        each.process({"t": list(range(100)), "v": list(range(100))})
    assert op.stats().state_bytes > plain.stats().state_bytes
    op.remove("users")
    assert op.stats().state_bytes == plain.stats().state_bytes


@pytest.mark.parametrize("query", [
    mt.windows(visit=w.session(3)).aggregate(n=a.count()).on("t", allowed_lateness=50),
    mt.windows(three=w.count(3, every=1)).aggregate(n=a.count()).on("t", allowed_lateness=50),
], ids=["sessions", "counts"])  # fmt: skip
def test_retractions_repeat_values_in_the_columns_of_now(query: Any) -> None:
    op = query.operator()
    op.process({"t": [1, 2, 10, 11, 20], "v": [1, 2, 3, 4, 5]})
    assert len(op.advance(15))
    op.add(top=a.max("v"))
    op.process({"t": [6, 5, 8], "v": [9, 9, 9]})
    rows = op.advance(16).to_pylist()
    assert {row["kind"] for row in rows} & {"retract", "update"}
    assert {row["top"] for row in rows} == {None}
    again = mt.Operator.restore(op.snapshot())
    assert again.finish().to_pylist() == op.finish().to_pylist()


def test_a_snapshot_knows_since_when() -> None:
    op = BASE.aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1, 12], "v": [5, 6]})
    op.add(top=a.max("v"))
    saved = op.snapshot()
    again = mt.Operator.restore(saved)
    again.process({"t": [15, 25], "v": [7, 8]})
    assert values(again.finish(), "top") == [(0, None), (10, None), (20, 8)]
    with pytest.raises(SnapshotError, match="another query"):
        mt.Operator.restore(saved, BASE.aggregate(n=a.count()).on("t"))
    same = BASE.aggregate(n=a.count(), top=a.max("v")).on("t")
    assert values(mt.Operator.restore(saved, same).finish(), "top") == [(0, None), (10, None)]


def test_slices_and_ranges_are_null_where_an_aggregate_is_incomplete() -> None:
    op = BASE.aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1, 12], "v": [5, 6]})
    op.add(bigger=a.count(filter="v > 5"))
    op.process({"t": [22], "v": [7]})
    assert [row["bigger"] for row in op.slices().to_pylist()] == [None, None, 1]
    assert [row["bigger"] for row in op.query(0, 30).to_pylist()] == [None]
    assert [row["bigger"] for row in op.query(20, 30).to_pylist()] == [1]
    assert [row["bigger"] for row in op.open_windows().to_pylist()] == [None, None, 1]


@pytest.mark.parametrize("seen", [False, True], ids=["before any tuple", "later"])
def test_changes_that_make_no_sense(seen: bool) -> None:
    op = (
        mt.windows(ten=w.tumbling(10), n=w.tumbling(5))
        .aggregate(n=a.count(), top=a.max("v"))
        .on("t")
        .operator()
    )
    if seen:
        op.process({"t": [1], "v": [5]})
    with pytest.raises(QueryError, match='there is an aggregate "top" already'):
        op.add(top=a.min("v"))
    with pytest.raises(QueryError, match=r'must be over windows of the query: got "tem".*Did you mean "ten"'):
        op.add(more=a.min("v").over("tem"))
    with pytest.raises(QueryError, match="has the name of a result column"):
        op.add(kind=a.count())
    with pytest.raises(QueryError, match="no window or aggregate"):
        op.remove("top", "nothing")
    if seen:
        with pytest.raises((DataError, QueryError), match='no column "w"'):
            op.add(five=w.tumbling(5), more=a.min("w"))
    assert list(op._engine.served.hidden) == []
    assert [name for name, _ in op._engine.spec.aggregates] == ["n", "top"]
    assert [one.name for one in op._engine.served.all] == ["ten", "n"]
    other = BASE.aggregate(top=a.max("v")).on("t").operator()
    with pytest.raises(QueryError, match='"top" is the only aggregate left'):
        other.remove("top")


def test_code_that_sees_nulls_is_not_run_on_stored_tuples_without_its_column() -> None:
    op = mt.windows(three=w.count(3)).aggregate(n=a.count()).on("t", allowed_lateness=10).operator()
    op.process({"t": [1, 2, 3, 4], "v": [1, 2, 3, 4]})
    op.advance(3)
    doubled: dict[str, Any] = {"lift": lambda v: v * 2, "combine": max, "type": "int64"}
    with pytest.raises(QueryError, match='"x" runs on nulls, too, and stored tuples have no value of v'):
        op.add(x=a.aggregate("v", **doubled, ignore_nulls=False))
    op.add(x=a.aggregate("v", **doubled))
    op.process({"t": [5, 6, 7, 8, 9], "v": [1, 2, 3, 4, 5]})
    assert values(op.advance(20), "n", "x") == [(1, 3, None), (4, 3, None), (7, 3, 10)]


def test_a_name_of_both_is_that_of_the_window() -> None:
    op = mt.windows(x=w.tumbling(10), y=w.tumbling(5)).aggregate(x=a.count(), n=a.count()).on("t").operator()
    op.remove("x")
    assert [one.name for one in op._engine.served.all] == ["y"]
    op.remove("x")
    assert [name for name, _ in op._engine.spec.aggregates] == ["n"]


def test_a_window_and_its_aggregate_come_together() -> None:
    op = BASE.aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1, 12], "v": [5, 6]})
    op.add(twenty=w.tumbling(20), top=a.max("v").over("twenty"))
    op.process({"t": [25], "v": [7]})
    rows = op.finish().to_pylist()
    assert [(row["window_name"], row["window"]["start"], row["top"]) for row in rows] == [
        ("ten", 0, None), ("twenty", 0, None), ("ten", 10, None), ("ten", 20, None), ("twenty", 20, 7),
    ]  # fmt: skip
