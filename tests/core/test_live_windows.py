"""Windows that come and go on a running operator: what is promised, what is served, what is kept."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError
from muntin.slicing.window_changes import Change
from muntin.testing import EmbeddedEngine, OracleEngine, Row
from muntin.timeline import NEG_INF


def operator(lateness: int = 0, **windows: Any) -> Operator:
    return mt.windows(**windows).aggregate(n=a.count()).on("t", allowed_lateness=lateness).operator()


def feed(op: Operator, *times: int) -> None:
    op.process({"t": list(times), "v": [t % 10 for t in times]})


def counts(table: pa.Table, name: str) -> dict[tuple[int, int], int]:
    rows = [row for row in table.to_pylist() if row["window_name"] == name]
    return {(row["window"]["start"], row["window"]["end"]): row["n"] for row in rows}


# What is promised. -------------------------------------------------------------------------------


def test_a_query_added_before_any_tuple_is_served_from_the_beginning() -> None:
    op = operator(x=w.tumbling(10))
    added = op.add(y=w.tumbling(4), c=w.count(2))
    assert added.since == {"y": NEG_INF, "c": NEG_INF}
    assert added.notes == [
        '"y" (tumbling 4) is served from the beginning',
        '"c" (count 2) is served from the beginning',
    ]
    assert str(added) == "\n".join(added.notes)
    feed(op, 1, 5, 6)
    table = op.finish()
    assert counts(table, "y") == {(0, 4): 1, (4, 8): 2}
    assert counts(table, "c") == {(1, 6): 2}


def test_a_query_whose_edges_are_there_already_is_served_retroactively() -> None:
    op = operator(x=w.tumbling(5))
    feed(op, *range(18))
    assert op.add(y=w.tumbling(10), s=w.sliding(10, every=5)).since == {"y": NEG_INF, "s": NEG_INF}
    table = op.finish()
    assert counts(table, "y") == {(0, 10): 10, (10, 20): 8}
    assert counts(table, "s") == {(-5, 5): 5, (0, 10): 10, (5, 15): 10, (10, 20): 8, (15, 25): 3}


def test_finer_edges_start_where_no_slice_is_cut() -> None:
    op = operator(x=w.tumbling(10))
    feed(op, *range(18))
    added = op.add(y=w.tumbling(4))
    # The slice of 10 to 17 holds the edges 12 and 16: the first start behind it is 20.
    assert added.since == {"y": 20}
    assert added.notes == ['"y" (tumbling 4) starts at 20: what came before was sliced without it']
    feed(op, *range(18, 30))
    table = op.finish()
    assert counts(table, "y") == {(20, 24): 4, (24, 28): 4, (28, 32): 2}
    assert counts(table, "x") == {(0, 10): 10, (10, 20): 10, (20, 30): 10}


def test_what_the_watermark_has_passed_is_not_served_again() -> None:
    op = operator(x=w.tumbling(5))
    feed(op, *range(18))
    op.advance(12)
    assert op.add(y=w.tumbling(10)).since == {"y": 10}
    assert counts(op.finish(), "y") == {(10, 20): 8}


def test_a_window_that_reaches_into_dropped_slices_starts_later() -> None:
    op = operator(x=w.tumbling(5))
    feed(op, *range(18))
    op.advance(16)
    # Slices before 15 are gone: of the windows of 20, those from 0 on are not complete.
    assert op.add(y=w.tumbling(20)).since == {"y": 20}
    feed(op, *range(18, 45))
    assert counts(op.finish(), "y") == {(20, 40): 20, (40, 60): 5}


@pytest.mark.parametrize(
    "window",
    [
        w.session(3),
        w.session(3, max_length=10),
        w.count(2),
        w.punctuation(mt.col("v") == 0),
        w.last(2, every=5),
        w.slide_by_tuple(5, every=2),
        w.until(a.count(), 3),
        w.tumbling(5, measure="t"),
    ],
    ids=lambda window: window.describe(),
)
def test_windows_that_depend_on_tuples_start_behind_the_newest(window: Any) -> None:
    op = operator(x=w.tumbling(10))
    feed(op, 3, 17)
    added = op.add(y=window)
    assert added.since == {"y": 18}
    assert added.notes[0].startswith(f'"y" ({window.describe()}) starts at 18: what came before')
    feed(op, 16, 18, 19, 21)  # 16 is before its time: neither counted nor late
    table = op.finish()
    rows = [row for row in table.to_pylist() if row["window_name"] == "y"]
    assert rows
    assert min(row["window"]["start"] for row in rows) >= 14  # a range behind tuple 18 may begin before it
    assert op.stats().late["y"] == 0
    fresh = operator(y=window)
    feed(fresh, 18, 19, 21)
    assert counts(table, "y") == counts(fresh.finish(), "y")


def test_with_empty_windows_it_starts_behind_tuples_that_wait_to_be_judged() -> None:
    op = operator(one=w.tumbling(1))
    feed(op, 1)
    op.advance(13)
    feed(op, 7)  # too late for the others; whether for this one would be known only with its extent
    assert op.add(seven=w.tumbling(7, emit_empty=True)).since == {"seven": 14}
    assert op.add(plain=w.tumbling(7)).since == {"plain": 7}
    feed(op, 15, 30)
    found = op.finish()
    assert counts(found, "seven") == {(14, 21): 1, (21, 28): 0, (28, 35): 1}
    assert counts(found, "plain") == {(7, 14): 1, (14, 21): 1, (28, 35): 1}


def test_times_are_told_as_times() -> None:
    op = mt.windows(x=w.tumbling("1 hour")).aggregate(n=a.count()).on("ts").operator()
    noon = 1_714_564_800_000_000
    op.process({"ts": pa.array([noon, noon + 90_000_000], pa.timestamp("us"))})
    added = op.add(y=w.tumbling("1 minute"))
    assert added.since == {"y": noon + 120_000_000}
    assert "starts at 2024-05-01T12:02:00+00:00" in str(added)


def test_slices_of_stored_tuples_are_split_for_a_new_window() -> None:
    op = operator(lateness=8, x=w.tumbling(10), c=w.count(4))
    feed(op, *range(20))
    op.advance(19)
    before = op.stats()
    # The slice of 11 to 19 is cut at 12, 15 and 18; its tuples are stored from 11 on.
    assert op.add(y=w.tumbling(3)).since == {"y": 18}  # [15, 18) was complete at the watermark
    assert op.stats().lifts == before.lifts
    feed(op, *range(20, 30))
    table = op.finish()
    assert counts(table, "y") == {(18, 21): 3, (21, 24): 3, (24, 27): 3, (27, 30): 3}
    assert counts(table, "x") == {(10, 20): 10, (20, 30): 10}
    assert counts(table, "c")[(16, 20)] == 4


def test_a_new_window_begins_behind_the_watermark_but_not_before_stored_tuples() -> None:
    op = operator(lateness=8, x=w.tumbling(10), c=w.count(4))
    feed(op, *range(20))
    op.advance(19)
    assert op.add(y=w.tumbling(7)).since == {"y": 14}
    op.remove("y")
    assert op.add(z=w.tumbling(9)).since == {"z": 18}  # [9, 18) is complete
    assert op.add(s=w.sliding(16, every=1)).since == {"s": 10}  # the slice of 8 and 9 is final
    feed(op, 13)  # late, but not too late for the new windows
    table = op.finish()
    assert counts(table, "s")[(10, 26)] == 11
    assert counts(table, "s")[(13, 29)] == 8
    assert counts(table, "s")[(14, 30)] == 6


@pytest.mark.parametrize("lateness", [0, 8])
def test_a_window_that_was_removed_leaves_no_slices_behind(lateness: int) -> None:
    removed: dict[str, Any] = {"two": w.tumbling(2), "small": w.session(1), "c": w.count(3)}
    op = operator(lateness, x=w.tumbling(10), large=w.session(5), **removed)
    plain = operator(lateness, x=w.tumbling(10), large=w.session(5))
    for one in (op, plain):
        feed(one, *range(0, 60, 3))
        one.advance(25)
        feed(one, *range(1, 80, 4), 40, 41, 90)
    for name in removed:
        op.remove(name)
    plain.stats()  # drops what no window needs
    table, expected = op._engine.state.slices, plain._engine.state.slices
    assert table.first.tolist() == expected.first.tolist()
    assert table.n.tolist() == expected.n.tolist()
    assert op.finish().to_pylist() == plain.finish().to_pylist()


# What is served. ---------------------------------------------------------------------------------


def test_several_queries_at_once_and_one_after_the_other() -> None:
    op = operator(x=w.tumbling(10))
    feed(op, 1, 2)
    op.add(a=w.tumbling(10), b=w.sliding(20, every=10))
    feed(op, 11)
    op.add(c=w.tumbling(20))
    table = op.finish()
    assert counts(table, "a") == counts(table, "x") == {(0, 10): 2, (10, 20): 1}
    assert counts(table, "c") == {(0, 20): 3}


def test_a_removed_query_is_silent_and_the_others_go_on() -> None:
    op = operator(x=w.tumbling(10), y=w.tumbling(5), c=w.count(2))
    feed(op, 1, 7)
    op.remove("y")
    op.remove("c")
    feed(op, 8)
    assert set(op.finish()["window_name"].to_pylist()) == {"x"}
    assert set(op.stats().late) == {"x"}


def test_a_name_can_be_used_again_and_starts_anew() -> None:
    op = operator(x=w.tumbling(10), c=w.count(2), s=w.session(5))
    feed(op, 1, 2, 3)
    op.advance(3)
    op.remove("c")
    op.remove("s")
    added = op.add(c=w.count(2), s=w.session(5))
    assert added.since == {"c": 4, "s": 4}
    feed(op, 4, 5, 6)
    table = op.finish()
    assert counts(table, "c") == {(4, 6): 2}
    assert counts(table, "s") == {(4, 11): 3}


def test_columns_that_only_the_new_query_reads() -> None:
    op = operator(lateness=20, c=w.count(2))
    feed(op, 1, 2, 3)
    op.advance(2)
    op.add(p=w.punctuation(mt.col("v") == 5), m=w.tumbling(4, measure="v"))
    feed(op, 4, 5, 6)
    table = op.finish()
    assert counts(table, "p") == {(4, 5): 1, (5, 7): 2}
    assert counts(table, "m") == {(4, 7): 3}
    assert counts(table, "c") == {(1, 3): 2, (3, 5): 2, (5, 7): 2}


def test_buffered_records_come_before_the_new_query() -> None:
    op = operator(x=w.tumbling(10))
    op.process({"t": 5, "v": 1})
    assert op.add(c=w.count(1)).since == {"c": 6}
    op.process({"t": 6, "v": 1})
    assert counts(op.finish(), "c") == {(6, 7): 1}


@pytest.mark.parametrize("other", [w.last(2, every=5), w.until(a.count(), 2), w.session(3, max_length=5)])
def test_a_name_may_get_another_window_in_one_step(other: Any) -> None:
    op, fresh = (operator(lateness=10, c=w.count(5), p=w.count(3)) for _ in range(2))
    for one in (op, fresh):
        feed(one, 1, 2, 8)
        one.advance(5)
    op._engine.change(Change({"p": other}, remove=("p",)))
    fresh.remove("p")
    fresh.add(q=other)
    for one in (op, fresh):
        feed(one, 9, 10, 4)
    assert counts(op.finish(), "p") == counts(fresh.finish(), "q") != {}


# Early results. A transcript cannot tell of these: on Spark a new query holds nothing from before. ---


def shown(rows: list[Row]) -> list[tuple[Any, ...]]:
    return sorted((*row.keys, row.window_name, row.aggregates["n"], row.kind, row.revision) for row in rows)


def both(early: Any, *keys: str) -> tuple[EmbeddedEngine, OracleEngine]:
    query = mt.windows(fifty=w.tumbling(50)).aggregate(n=a.count()).by(*keys).on("t", early=early)
    schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    return EmbeddedEngine(query, schema), OracleEngine(query, schema)


def test_the_first_early_look_at_a_new_window_shows_all_that_it_holds() -> None:
    for engine in both(mt.each_batch(), "k"):
        engine.process([{"t": 1, "k": "a"}, {"t": 2, "k": "b"}])
        engine.advance(7)
        assert engine.add("hundred", w.tumbling(100), 0) == 0
        assert not engine.advance(8)
        first = engine.process([{"t": 12, "k": "a"}])
        assert shown(first) == [  # of the other window only what changed
            ("a", "fifty", 2, "early", 1),
            ("a", "hundred", 2, "early", 0),
            ("b", "hundred", 1, "early", 0),
        ]
        second = engine.process([{"t": 13, "k": "b"}])
        assert shown(second) == [("b", "fifty", 2, "early", 1), ("b", "hundred", 2, "early", 1)]
        assert not engine.process([])


def test_the_first_periodic_look_at_a_new_window_shows_all_that_it_holds() -> None:
    for engine in both(mt.every(10)):
        engine.advance(0)
        engine.process([{"t": 11}, {"t": 62}])
        assert len(engine.advance(10)) == 2
        assert engine.add("hundred", w.tumbling(100), 0) == 0
        assert not engine.advance(19)
        assert shown(engine.advance(20)) == [("hundred", 2, "early", 0)]
        assert not engine.advance(30)


# How the plan adapts. ----------------------------------------------------------------------------


def test_tuples_start_being_kept_and_are_dropped_again() -> None:
    op = operator(lateness=30, x=w.tumbling(10))
    feed(op, *range(20))
    assert op.stats().kept_tuples == 0
    op.add(c=w.count(3))
    assert op.stats().kept_tuples == 0  # what has come is sliced
    feed(op, *range(20, 30))
    assert op.stats().kept_tuples == 10
    op.advance(25)
    assert op.stats().kept_tuples == 10
    op.remove("c")
    assert op.stats().kept_tuples == 0
    assert counts(op.finish(), "x") == {(20, 30): 10}


def test_keys_that_came_since_the_last_watermark_are_no_obstacle() -> None:
    query = mt.windows(c=w.count(2), x=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t")
    op = query.operator()
    op.process({"t": [1, 2], "k": ["a", "b"]})
    op.advance(5)
    op.process({"t": [6, 7, 8], "k": ["c", "d", "a"]})
    assert op.stats().kept_tuples == 3
    op.add(p=w.count(1))
    assert op.stats().keys == 4
    rows = [(row["window_name"], row["k"], row["n"]) for row in op.finish().to_pylist()]
    assert rows == [("c", "a", 2), *(("x", k, n) for k, n in (("a", 2), ("b", 1), ("c", 1), ("d", 1)))]


@pytest.mark.parametrize(
    "window",
    [w.count(2), w.session(3, max_length=9), w.slide_by_tuple(5, every=1), w.last(2, every=5)],
    ids=str,
)
def test_the_last_query_that_keeps_tuples_may_go_when_keys_have_come(window: Any) -> None:
    query = mt.windows(x=window, ten=w.tumbling(10)).aggregate(n=a.count()).by("k")
    op = query.on("t", early=mt.every(5)).operator()
    op.process({"t": [1, 22], "k": ["a", "a"]})
    op.advance(20)  # also looks at tuples beyond the watermark
    op.process({"t": [23], "k": ["b"]})
    op.remove("x")
    rows = [(row["window_name"], row["k"], row["n"], row["revision"]) for row in op.finish().to_pylist()]
    assert rows == [("ten", "a", 1, 1), ("ten", "b", 1, 0)]


def test_tuples_are_dropped_only_with_the_last_query_that_needs_them() -> None:
    op = operator(lateness=30, x=w.tumbling(10), c=w.count(3), p=w.punctuation(mt.col("v") == 0))
    feed(op, *range(15))
    op.remove("c")
    assert op.stats().kept_tuples == 15
    op.remove("p")
    assert op.stats().kept_tuples == 0
    assert counts(op.finish(), "x") == {(0, 10): 10, (10, 20): 5}


def test_edges_get_finer_and_coarser_again() -> None:
    op = operator(x=w.tumbling(10))
    feed(op, *range(40))
    assert op.stats().slices == 4
    op.add(y=w.tumbling(2))
    feed(op, *range(40, 80))
    assert op.stats().slices == 4 + 20
    op.remove("y")
    assert op._engine.state.slices.n.tolist() == [10] * 8  # at once: no watermark has moved
    feed(op, *range(80, 120))
    assert op.stats().slices == 12
    assert counts(op.finish(), "x") == {(t, t + 10): 10 for t in range(0, 120, 10)}


def test_sessions_of_a_smaller_gap_join_in_and_leave() -> None:
    op = operator(large=w.session(20))
    feed(op, 0, 10)
    assert op.stats().slices == 1
    op.add(small=w.session(5))
    feed(op, 20, 30)
    assert op.stats().slices == 3
    op.remove("small")
    feed(op, 40)
    table = op.finish()
    assert counts(table, "large") == {(0, 60): 5}


def test_the_result_columns_follow_the_windows() -> None:
    op = operator(x=w.tumbling(10))
    feed(op, 1)
    op.add(c=w.count(2), m=w.tumbling(5, measure="v"))
    edges = [field.name for field in op.finish()["window"].type]
    assert edges == ["start", "end", "start_rank", "end_rank", "start_v", "end_v"]
    op.remove("m")
    edges = [field.name for field in op.finish()["window"].type]
    assert edges == ["start", "end", "start_rank", "end_rank"]


# What is refused. --------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [False, True], ids=["before any tuple", "later"])
def test_names_and_windows_that_make_no_sense(seen: bool) -> None:
    op = operator(minute=w.tumbling(10), visit=w.session(5))
    if seen:
        feed(op, 1)
    with pytest.raises(QueryError, match='there is a window "visit" already; choose another name'):
        op.add(fine=w.tumbling(5), visit=w.tumbling(5))
    with pytest.raises(
        QueryError, match=r'no window or aggregate "minit"; there are minute, visit, n\. Did you mean "min'
    ):
        op.remove("minit")
    with pytest.raises(QueryError, match='"y" must be a window: got 5'):
        op.add(y=5)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="did you forget to call it"):
        op.add(y=w.tumbling)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=r"lengths must be all durations.*or all integers"):
        op.add(y=w.tumbling("1 minute"))
    assert [q.name for q in op._engine.served.all] == ["minute", "visit"]
    op.remove("visit")
    with pytest.raises(QueryError, match='"minute" is the only window left'):
        op.remove("minute")
    feed(op, 2)
    assert counts(op.finish(), "minute") == {(0, 10): 2 if seen else 1}


def test_a_column_that_is_not_there_is_refused_when_it_is_known() -> None:
    op = operator(x=w.tumbling(10))
    feed(op, 1)
    with pytest.raises(DataError, match=r'no column "vv".*Did you mean "v"'):
        op.add(y=w.tumbling(5, measure="vv"))
    with pytest.raises(DataError, match="needs a condition"):
        op.add(y=w.punctuation("v"))
    assert counts(op.finish(), "x") == {(0, 10): 1}


@pytest.mark.parametrize("seen", [False, True], ids=["before any tuple", "later"])
def test_what_add_and_remove_do_not_take(seen: bool) -> None:
    op = operator(x=w.tumbling(10))
    if seen:
        feed(op, 1)
    for windows in [(), (w.tumbling(5),)]:
        with pytest.raises(QueryError, match=r"windows and aggregates need names: write \.add\(half="):
            op.add(*windows)
    with pytest.raises(QueryError, match=r'the windows and aggregates to remove: write \.remove\("min'):
        op.remove()
    assert [one.name for one in op._engine.served.all] == ["x"]


def test_several_windows_are_removed_at_once_or_none() -> None:
    op = operator(x=w.tumbling(10), y=w.tumbling(5), z=w.tumbling(20))
    with pytest.raises(QueryError, match='no window or aggregate "v"'):
        op.remove("y", "v")
    assert [one.name for one in op._engine.served.all] == ["x", "y", "z"]
    with pytest.raises(QueryError, match="x, y, z are the only windows left; end the stream instead"):
        op.remove("z", "y", "x")
    op.remove("y", "z")
    assert [one.name for one in op._engine.served.all] == ["x"]
