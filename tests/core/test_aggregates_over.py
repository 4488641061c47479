"""Aggregates over some of the windows: what they cost, and that they fail only where they are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError, UserCodeError
from muntin.query_file import loads
from muntin.testing.oracle import Oracle

BIG = 2**62


def tuples(number: int, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "t": np.sort(rng.integers(0, number, number)),
        "v": rng.integers(0, 100, number),
        "u": rng.integers(0, 50, number),
    }


def merges(query: Any, data: dict[str, Any]) -> int:
    op = query.operator(store="lazy")
    op.process(data)
    op.finish()
    return int(op.stats().merge_combines)


def test_windows_combine_only_what_they_show() -> None:
    data = tuples(2_000)
    windows = mt.windows(fast=w.sliding(200, every=10), slow=w.tumbling(1_000))
    least = merges(windows.aggregate(total=a.sum("v")).on("t"), data)
    over = merges(windows.aggregate(total=a.sum("v"), users=a.count_distinct("u").over("slow")).on("t"), data)
    everywhere = merges(windows.aggregate(total=a.sum("v"), users=a.count_distinct("u")).on("t"), data)
    fast, slow = 200 * 19, 2 * 99  # combines of slices of 10 in the windows of each name, less one each
    assert over - least <= slow + 2
    assert everywhere - least >= fast


def test_an_aggregate_that_no_served_window_shows_costs_nothing() -> None:
    windows = mt.windows(fast=w.tumbling(10), slow=w.tumbling(1_000))
    limited = windows.aggregate(total=a.sum("v"), users=a.count_distinct("u").over("slow")).on("t")
    plain = mt.windows(fast=w.tumbling(10)).aggregate(total=a.sum("v")).on("t")
    op, other = limited.operator(), plain.operator()
    op.process(tuples(100))
    op.remove("slow")
    before = op.stats()
    assert before.slices == 10
    more = {name: column + 100 if name == "t" else column for name, column in tuples(500, 2).items()}
    op.process(more)
    other.process(more)
    op.advance(100)
    now, expected = op.stats(), other.stats()
    assert now.lifts - before.lifts == expected.lifts
    assert now.state_bytes == expected.state_bytes
    assert {row["users"] for row in op.finish().to_pylist()} == {None}


@pytest.mark.parametrize("lateness", [0, 50])
def test_a_sum_overflows_only_where_it_is_shown(lateness: int) -> None:
    """Without lateness the compiled step runs first, and leaves this to the general route."""
    windows = mt.windows(one=w.tumbling(1), ten=w.tumbling(10))
    data = {"t": [1, 2], "v": [BIG, BIG]}
    limited = windows.aggregate(total=a.sum("v").over("one")).on("t", allowed_lateness=lateness)
    assert [row["total"] for row in limited.run(data).to_pylist()] == [BIG, BIG, None]
    with pytest.raises(DataError, match="overflows"):
        windows.aggregate(total=a.sum("v").over("ten")).on("t").run(data)


@pytest.mark.parametrize("store", [None, "lazy", "flatfat", "fiba", "two_stacks", "daba"])
def test_each_store_serves_groups_of_windows(store: str | None) -> None:
    query = (
        mt.windows(long=w.sliding(300, every=7), short=w.sliding(40, every=10), visit=w.session(3))
        .aggregate(
            n=a.count(), most=a.max("v").over("long"), users=a.count_distinct("u").over("short", "visit")
        )
        .on("t")
    )
    data = tuples(600)
    rows = [
        dict(zip(data, values, strict=True))
        for values in zip(*(c.tolist() for c in data.values()), strict=True)
    ]
    op, oracle = query.operator(store=store), Oracle(query)
    for begin in range(0, 600, 150):
        op.process({name: column[begin : begin + 150] for name, column in data.items()})
        oracle.process(rows[begin : begin + 150])
        mark = rows[begin + 149]["t"]
        got = {
            (r["window_name"], r["window"]["start"]): (r["n"], r["most"], r["users"])
            for r in op.advance(mark).to_pylist()
        }
        wanted = {(r.window_name, r.start): tuple(r.aggregates.values()) for r in oracle.advance(mark)}
        assert got == wanted


@pytest.mark.parametrize("store", [None, "lazy", "flatfat", "fiba", "two_stacks", "daba"])
def test_a_store_combines_only_partials_that_do_not_grow(store: str | None) -> None:
    """Lists are joined by a walk, and the other partials of the same windows by the store."""
    query = (
        mt.windows(ten=w.sliding(10, 5)).aggregate(n=a.count(), all=a.collect("u"), most=a.max("v")).on("t")
    )
    op = query.operator(store=store)
    op.process({"t": [1, 6, 7], "u": ["x", "y", "z"], "v": [3, 1, 2]})
    rows = [(row["n"], row["all"], row["most"]) for row in op.finish().to_pylist()]
    assert rows == [(1, ["x"], 3), (3, ["x", "y", "z"], 3), (2, ["y", "z"], 2)]


def test_errors_are_those_of_the_group() -> None:
    """With on_error="skip", windows that fail are found inside a group, and the row is that of the window."""

    def refuse(p: float) -> float:
        if p > 20:
            raise ValueError("too much")
        return p

    lifted = a.aggregate("v", lift=float, combine=max, lower=refuse, name="checked", type="float64")
    query = (
        mt.windows(ten=w.tumbling(10), twenty=w.tumbling(20))
        .aggregate(n=a.count(), checked=lifted.over("twenty"))
        .on("t", on_error="skip")
    )
    rows = query.run({"t": [1, 11, 21, 31, 41], "v": [30, 1, 2, 3, 4]}).to_pylist()
    assert [row["checked"] for row in rows if row["window_name"] == "ten"] == [None] * 5
    assert [row["checked"] for row in rows if row["window_name"] == "twenty"] == [None, 3.0, 4.0]
    with pytest.raises(UserCodeError, match=r"twenty \[0, 20\)"):
        mt.windows(ten=w.tumbling(10), twenty=w.tumbling(20)).aggregate(
            n=a.count(), checked=lifted.over("twenty")
        ).on("t").run({"t": [1, 11], "v": [30, 1]})


def test_over_is_part_of_the_query() -> None:
    windows = mt.windows(day=w.tumbling("1 day"), week=w.tumbling("7 days"))
    query = windows.aggregate(users=a.count_distinct("u").over("day", "week"), n=a.count()).on("t")
    other = windows.aggregate(users=a.count_distinct("u"), n=a.count()).on("t")
    assert "users=a.count_distinct(column='u').over('day', 'week')" in repr(query)
    assert 'over = ["day", "week"]' in query.to_toml()
    assert loads(query.to_toml()) == query != other
    assert loads(query.to_toml()).fingerprint() == query.fingerprint() != other.fingerprint()
    assert "users only over day, week" in str(query.explain())
    assert "users: count_distinct(u).over(day, week), holistic" in str(query.explain(verbose=True))


def test_misuse_is_refused() -> None:
    windows = mt.windows(day=w.tumbling("1 day"), week=w.tumbling("7 days"))
    with pytest.raises(
        QueryError, match=r'over windows of the query: got "dya"; there are day, week. Did you'
    ):
        windows.aggregate(n=a.count().over("dya"))
    with pytest.raises(QueryError, match="needs the names of windows"):
        a.count().over()
    with pytest.raises(QueryError, match='each window once: got "day" twice'):
        a.count().over("day", "day")
    with pytest.raises(QueryError, match="takes names of windows"):
        a.count().over(3)  # type: ignore[arg-type]
    text = windows.aggregate(n=a.count().over("day")).on("t").to_toml()
    with pytest.raises(QueryError, match=r"\[aggregates.n\]: over must be a list"):
        loads(text.replace('["day"]', '"day"'))
    with pytest.raises(QueryError, match='got "dya"'):
        loads(text.replace('["day"]', '["dya"]'))
    with pytest.raises(QueryError, match="must not be over some windows"):
        mt.windows(day=w.until(a.sum("v").over("day"), 3)).aggregate(n=a.count())


def test_a_snapshot_after_the_window_has_gone() -> None:
    windows = mt.windows(ten=w.tumbling(10), thirty=w.tumbling(30))
    op = windows.aggregate(n=a.count(), users=a.count_distinct("u").over("thirty")).on("t").operator()
    op.process(tuples(100))
    op.remove("thirty")
    saved = op.snapshot()
    assert mt.Operator.restore(saved).finish().to_pylist() == op.finish().to_pylist()
    again = mt.Operator.restore(saved)
    added = again.add(thirty=w.tumbling(30))
    window, aggregate = str(added).splitlines()
    assert window == '"thirty" (tumbling 30) is served from the beginning'
    assert aggregate.startswith(
        '"users" (count_distinct(u).over(thirty)) is shown by windows that begin at 99'
    )
    again.process({"t": [110, 125], "v": [1, 2], "u": [3, 4]})
    rows = [row for row in again.finish().to_pylist() if row["window_name"] == "thirty"]
    assert [(row["window"]["start"], row["users"]) for row in rows] == [
        (0, None), (30, None), (60, None), (90, None), (120, 1),
    ]  # fmt: skip
