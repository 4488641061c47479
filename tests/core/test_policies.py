"""Watermarks, lateness, bad tuples, silence and early results: what the user can choose."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Window


def query(*, windows: dict[str, Window] | None = None, **on: Any) -> Any:
    return mt.windows(**(windows or {"x": w.tumbling(10)})).aggregate(n=a.count()).on("t", **on)


def brief(table: pa.Table) -> list[tuple[Any, ...]]:
    """(query, start, end, n, kind, revision) of each row; kind and revision only where not final 0."""
    rows = []
    for row in table.to_pylist():
        told = () if (row["kind"], row["revision"]) == ("final", 0) else (row["kind"], row["revision"])
        rows.append((row["query"], row["window"]["start"], row["window"]["end"], row["n"], *told))
    return rows


def feed(op: Operator, *times: int | None) -> list[tuple[Any, ...]]:
    return brief(op.process({"t": pa.array(times, pa.int64())}))


# Watermarks from the data. -----------------------------------------------------------------------


def test_watermark_lag_follows_the_newest_tuple() -> None:
    op = query().operator(watermark_lag=3)
    assert feed(op, 1, 5, 12) == []
    assert op.watermark == 9
    assert feed(op, 13) == [("x", 0, 10, 2)]
    assert op.watermark == 10
    assert feed(op, 11) == []  # older, and in time: the watermark stays
    assert op.watermark == 10
    assert feed(op, 27) == [("x", 10, 20, 3)]
    assert brief(op.finish()) == [("x", 20, 30, 1)]


def test_watermark_lag_of_single_records() -> None:
    op = query().operator(watermark_lag=0)
    results = [brief(op.process({"t": t})) for t in (1, 5, 12, 30)]
    assert results == [[], [], [("x", 0, 10, 2)], [("x", 10, 20, 1)]]


def test_watermark_lag_may_be_a_duration() -> None:
    shape = mt.windows(x=w.tumbling("1 minute")).aggregate(n=a.count()).on("ts")
    op = shape.operator(watermark_lag="10 seconds")
    second = 1_000_000
    op.process({"ts": pa.array([59 * second, 69 * second], pa.timestamp("us"))})
    assert op.watermark == 59 * second
    assert op.process({"ts": pa.array([70 * second], pa.timestamp("us"))}).num_rows == 1


def test_a_watermark_by_hand_may_go_ahead_of_the_lag() -> None:
    op = query(late="route").operator(watermark_lag=5)
    feed(op, 12)
    assert brief(op.advance(20)) == [("x", 10, 20, 1)]
    assert feed(op, 22) == []
    assert op.watermark == 20


@pytest.mark.parametrize(
    ("lag", "words"),
    [
        (-1, "watermark_lag must not be negative"),
        ("soon", "watermark_lag"),
        ("10 seconds", "lengths must be integers on the integer time column"),
    ],
)
def test_a_lag_that_makes_no_sense(lag: object, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        feed(query().operator(watermark_lag=lag), 1)


def test_watermarks_never_go_back() -> None:
    op = query().operator()
    feed(op, 1, 15)
    assert op.watermark == NEG_INF
    assert brief(op.advance(12)) == [("x", 0, 10, 1)]
    for lower in (12, 5, -(2**62)):
        assert op.advance(lower).num_rows == 0
        assert op.watermark == 12


def test_advance_before_any_tuple() -> None:
    op = query(late="route").operator()
    assert op.advance(5).num_rows == 0
    assert op.advance(20).num_rows == 0
    assert op.watermark == 20
    feed(op, 3, 19, 20)
    assert brief(op.advance(30)) == [("x", 20, 30, 1)]
    assert op.take_late()["t"].to_pylist() == [3, 19]


@pytest.mark.parametrize("wrong", [None, 2.5, "soon", 2**63, -(2**62) - 1, [1], True], ids=repr)
def test_a_watermark_that_is_no_time(wrong: object) -> None:
    op = query().operator()
    feed(op, 1)
    with pytest.raises(DataError):
        op.advance(wrong)
    assert op.watermark == NEG_INF


# The end of the stream. --------------------------------------------------------------------------


def test_finish_twice_gives_nothing_more() -> None:
    op = query(
        windows={"x": w.tumbling(10), "s": w.session(3), "c": w.count(1), "l": w.last(2, every=4)}
    ).operator()
    feed(op, 1)
    assert len(brief(op.finish())) == 4
    assert op.finish().num_rows == 0
    assert op.watermark == INF


def test_tuples_after_the_end_are_late() -> None:
    windows = {"x": w.tumbling(10), "s": w.session(3), "c": w.count(1)}
    op = query(windows=windows, late="route", allowed_lateness=100).operator()
    feed(op, 1)
    op.finish()
    assert feed(op, 5, 500) == []
    assert op.finish().num_rows == 0
    assert op.stats().late == {"x": 2, "s": 2, "c": 2}
    assert op.take_late().num_rows == 6


def test_finish_without_any_tuple() -> None:
    op = query().operator()
    assert op.finish().num_rows == 0
    assert op.finish().num_rows == 0


def test_advance_after_the_end_changes_nothing() -> None:
    op = query().operator()
    feed(op, 1)
    op.finish()
    assert op.advance(100).num_rows == 0
    assert op.watermark == INF


# In order. ---------------------------------------------------------------------------------------


def test_in_order_each_tuple_is_a_watermark() -> None:
    op = query(windows={"x": w.tumbling(10), "s": w.session(3), "c": w.count(2)}).operator(in_order=True)
    assert feed(op, 1) == []
    assert feed(op, 1, 9) == [("c", 1, 2, 2), ("s", 1, 4, 2)]
    assert feed(op, 10) == [("x", 0, 10, 3)]
    assert feed(op, 10) == []
    assert brief(op.process({"t": 30})) == [("c", 9, 11, 2), ("s", 9, 13, 3), ("x", 10, 20, 2)]
    assert op.watermark == 30


def test_a_tuple_out_of_order_is_an_error_that_changes_nothing() -> None:
    op = query().by("k").operator(in_order=True)
    op.process({"t": [1, 5], "k": ["a", "a"]})
    before = op.snapshot()
    for times in ([4], [6, 5], [7, 8, 3]):
        with pytest.raises(
            DataError, match=r"declared in order.*time \d after \d.*sort the input, or leave in_order"
        ):
            op.process({"t": times, "k": ["new"] * len(times)})
        assert op.snapshot() == before
    op.process({"t": [5, 12], "k": ["a", "b"]})
    assert op.finish()["n"].to_pylist() == [1]
    assert op.stats().keys <= 2


def test_a_record_out_of_order_is_left_out() -> None:
    op = query().operator(in_order=True)
    op.process({"t": 5})
    with pytest.raises(DataError, match="time 4 after 5"):
        op.process({"t": 4})
    assert brief(op.process({"t": 12})) == [("x", 0, 10, 1)]


def test_in_order_and_a_lag_contradict_each_other() -> None:
    with pytest.raises(QueryError, match="leave watermark_lag out"):
        query().operator(in_order=True, watermark_lag=1)


# Late tuples. ------------------------------------------------------------------------------------

LONG_AND_SHORT = {"long": w.tumbling(100), "short": w.tumbling(10), "s": w.session(5), "c": w.count(2)}


@pytest.mark.parametrize("late", ["drop", "route"])
def test_late_tuples_are_counted_per_query_and_routed_if_asked(late: str) -> None:
    op = query(windows=LONG_AND_SHORT, late=late).operator()
    feed(op, 1, 50)
    op.advance(40)
    feed(op, 3, 38, 45)
    assert op.stats().pending == 2
    op.advance(41)
    # 38 lies 12 before the session of 50, which lives; its own is over at 43. 3 is too late for all
    # but the long window.
    assert op.stats().late == {"long": 0, "short": 2, "s": 1, "c": 2}
    assert op.stats().pending == 0
    routed = op.take_late()
    expected = [(3, "short"), (38, "short"), (3, "s"), (3, "c"), (38, "c")]
    assert [(row["t"], row["query"]) for row in routed.to_pylist()] == (expected if late == "route" else [])
    assert op.take_late().num_rows == 0
    assert routed.column_names == ["t", "query"]
    assert next(row for row in brief(op.finish()) if row[0] == "long")[3] == 5


def test_late_tuples_come_out_whole() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t", late="route").operator()
    op.process({"t": [50], "k": ["a"], "other": ["kept"], "v": [1.5]})
    op.advance(40)
    op.process({"t": [3], "k": ["b"], "other": ["also kept"], "v": [None]})
    op.advance(40)
    assert op.take_late().to_pylist() == [{"t": 3, "k": "b", "other": "also kept", "v": None, "query": "x"}]


def test_columns_that_no_query_reads_may_differ_among_late_and_bad_tuples() -> None:
    op = query(late="route", bad="route").operator()
    op.process({"t": [100], "v": [1]})
    op.advance(50)
    for extra in (
        {},
        {"x": ["text"]},
        {"x": [7]},
        {"x": [[1.5]]},
        {"v": [3]},
        {"y": [None]},
    ):
        op.process({"t": [1, None], "v": [1, 2]} | {name: [values[0]] * 2 for name, values in extra.items()})
    op.advance(60)
    late = op.take_late()
    assert late["x"].to_pylist() == [None, "text", "7", "[1.5]", None, None]
    assert late["v"].to_pylist() == [1, 1, 1, 1, 3, 1]
    assert late.column_names[-1] == "query"
    assert op.take_bad()["x"].to_pylist() == [None, "text", "7", "[1.5]", None, None]


def test_a_tuple_in_no_window_is_not_late() -> None:
    op = query(windows={"x": w.sliding(2, every=10), "b": w.fixed_band(0, 5)}, late="route").operator()
    op.advance(100)
    feed(op, 7, 105)
    op.advance(200)
    assert op.stats().late == {"x": 0, "b": 0}


def test_allowed_lateness_gives_updates_instead() -> None:
    op = query(allowed_lateness=15).operator()
    feed(op, 1)
    assert brief(op.advance(12)) == [("x", 0, 10, 1)]
    feed(op, 2)
    assert brief(op.advance(12)) == [("x", 0, 10, 2, "update", 1)]
    feed(op, 3)
    assert brief(op.advance(24)) == [("x", 0, 10, 3, "update", 2)]
    feed(op, 4)
    assert brief(op.advance(25)) == [("x", 0, 10, 4, "update", 3)]
    feed(op, 5)
    assert op.advance(26).num_rows == 0
    assert op.stats().late == {"x": 1}


# Bad tuples. -------------------------------------------------------------------------------------

MEASURED = {"x": w.tumbling(10), "m": w.tumbling(10, measure="m")}
GOOD = {"t": [1, 2], "m": [1.0, 2.0], "id": [0, 1]}
BAD = [
    ({"t": [3, None], "m": [3.0, 4.0], "id": [2, 3]}, 3),
    ({"t": [3, 4], "m": [None, 4.0], "id": [4, 5]}, 4),
    ({"t": [3, 4], "m": [float("nan"), 4.0], "id": [6, 7]}, 6),
    ({"t": [3, 4], "m": [3.0, float("inf")], "id": [8, 9]}, 9),
]


def test_bad_tuples_fail_before_anything_changes() -> None:
    op = query(windows=MEASURED).operator()
    op.process(GOOD)
    before = op.snapshot()
    for wrong, number in BAD:
        told = (
            rf'the column "(t|m)" (needs a value|must lie within).*: got (null|nan|inf) in row {number % 2}, '
            rf".*'id': {number}.*1 of 2 tuples are bad.*repair it, or choose bad=\"skip\" or bad=\"route\""
        )
        with pytest.raises(DataError, match=told):
            op.process(wrong)
        assert op.snapshot() == before
    op.process({"t": [3], "m": [3.0], "id": [9]})
    assert ("x", 0, 10, 3) in brief(op.finish())


@pytest.mark.parametrize("policy", ["skip", "route"])
def test_bad_tuples_are_left_out_counted_and_told(policy: str, caplog: pytest.LogCaptureFixture) -> None:
    op = query(windows=MEASURED, bad=policy).operator()
    op.process(GOOD)
    with caplog.at_level(logging.WARNING, "muntin"):
        for wrong, _ in BAD:
            op.process(wrong)
    assert len(caplog.records) == len(BAD)
    assert "1 bad tuples" in caplog.records[0].getMessage()
    assert "'id': 3" in caplog.records[0].getMessage()
    assert op.stats().bad == len(BAD)
    assert op.stats().tuples == 2 + len(BAD)
    routed = op.take_bad()
    assert [row["id"] for row in routed.to_pylist()] == ([row for _, row in BAD] if policy == "route" else [])
    assert op.take_bad().num_rows == 0
    assert ("x", 0, 10, 2 + len(BAD)) in brief(op.finish())


def test_times_out_of_range_are_bad_too() -> None:
    op = query(bad="route").operator()
    feed(op, 1, 2**62 + 1, -(2**62) - 1)
    assert op.take_bad()["t"].to_pylist() == [2**62 + 1, -(2**62) - 1]
    assert brief(op.finish()) == [("x", 0, 10, 1)]


def test_a_batch_of_bad_tuples_only() -> None:
    op = query(bad="skip").operator()
    assert feed(op, None, None) == []
    assert feed(op, 1) == []
    assert brief(op.finish()) == [("x", 0, 10, 1)]
    assert op.stats().bad == 2


@pytest.mark.parametrize(
    ("window", "column"),
    [
        (w.tumbling(5, measure="v"), ["a"]),
        (w.session(5, measure="v"), ["a"]),
        (w.delta("v", by=1), ["a"]),
        (w.boundary("v", step=1), [b"a"]),
        (w.until(a.sum("v"), 5), ["a"]),
        (w.punctuation("v"), [1]),
        (w.threshold("v"), [1.0]),
    ],
    ids=lambda value: value.describe() if isinstance(value, Window) else "",
)
def test_a_type_that_a_window_cannot_read_is_refused_at_the_door(window: Window, column: list[Any]) -> None:
    op = query(windows={"x": window}).operator()
    with pytest.raises(DataError, match=r"needs a (column of numbers|condition)"):
        op.process({"t": [1], "v": column})
    assert op.stats().tuples == 0


# Silence. ----------------------------------------------------------------------------------------


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def idle(**windows: Window) -> tuple[Operator, Clock]:
    clock = Clock()
    shape = mt.windows(**windows).aggregate(n=a.count()).on("ts", idle_after="30 seconds", late="route")
    return shape.operator(clock=clock), clock


def seconds(*times: int) -> dict[str, pa.Array]:
    return {"ts": pa.array([t * 1_000_000 for t in times], pa.timestamp("us"))}


def test_an_idle_stream_closes_its_windows() -> None:
    op, clock = idle(x=w.tumbling("1 minute"), s=w.session("20 seconds"), c=w.session("20 seconds", "1 hour"))
    op.process(seconds(5, 10))
    for later in (0, 29.9):
        clock.now = 1_000 + later
        assert op.poll().num_rows == 0
    clock.now = 1_030
    assert sorted(op.poll()["query"].to_pylist()) == ["c", "s", "x"]
    assert op.watermark == 60_000_000
    clock.now = 2_000
    assert op.poll().num_rows == 0  # nothing new to close


def test_every_tuple_puts_the_silence_off() -> None:
    op, clock = idle(x=w.tumbling("1 minute"))
    op.process(seconds(5))
    for _ in range(5):
        clock.now += 20
        op.process({"ts": pa.scalar(6_000_000, pa.timestamp("us")).as_py()})
        assert op.poll().num_rows == 0
    clock.now += 30
    assert op.poll()["n"].to_pylist() == [6]


def test_a_stream_goes_on_after_a_silence() -> None:
    op, clock = idle(x=w.tumbling("1 minute"))
    op.process(seconds(5))
    clock.now += 30
    assert op.poll()["n"].to_pylist() == [1]
    op.process(seconds(59, 61))  # the first comes too late now
    clock.now += 30
    assert op.poll()["n"].to_pylist() == [1]
    assert op.take_late().num_rows == 1


def test_endless_windows_stop_at_their_first_edge_after_the_newest_tuple() -> None:
    op, clock = idle(l=w.landmark("1970-01-01", every="1 minute"), n=w.last(3, every="10 seconds"))
    op.process(seconds(5, 15))
    clock.now += 30
    ends = [row["window"]["end"].second + 60 * row["window"]["end"].minute for row in op.poll().to_pylist()]
    assert ends == [10, 20, 30, 40, 50, 60, 60]  # up to the landmark's next edge


def test_poll_without_idle_after_or_without_tuples_does_nothing() -> None:
    clock = Clock()
    op = query().operator(clock=clock)
    feed(op, 1)
    clock.now += 10_000
    assert op.poll().num_rows == 0
    op, clock = idle(x=w.tumbling("1 minute"))
    clock.now += 10_000
    assert op.poll().num_rows == 0
    assert op.watermark == NEG_INF


def test_the_clock_of_an_operator_starts_when_it_is_made_or_restored() -> None:
    op, clock = idle(x=w.tumbling("1 minute"))
    op.process(seconds(5))
    clock.now += 29
    again = Operator.restore(op.snapshot(), clock=clock)
    clock.now += 29
    assert again.poll().num_rows == 0
    clock.now += 1
    assert again.poll().num_rows == 1


# Empty and partial windows. ----------------------------------------------------------------------


def test_empty_windows_between_the_first_and_the_last_tuple() -> None:
    shape = mt.windows(x=w.tumbling(10, emit_empty=True)).aggregate(
        n=a.count(), total=a.sum("t"), all=a.collect("t")
    )
    op = shape.by("k").on("t").operator()
    op.process({"t": [5, 35, 12], "k": ["a", "a", "b"]})
    rows = op.advance(30).to_pylist()
    assert [(r["k"], r["window"]["start"], r["n"]) for r in rows] == [
        ("a", 0, 1),
        ("a", 10, 0),
        ("b", 10, 1),
        ("a", 20, 0),
    ]
    empty = rows[1]
    assert (empty["total"], empty["all"]) == (None, [])
    op.process({"t": [52], "k": ["b"]})
    rows = op.finish().to_pylist()
    assert [(r["k"], r["window"]["start"], r["n"]) for r in rows] == [
        ("b", 20, 0),
        ("a", 30, 1),
        ("b", 30, 0),
        ("b", 40, 0),
        ("b", 50, 1),
    ]


def test_windows_without_tuples_are_silent_otherwise() -> None:
    op = query().operator()
    feed(op, 5, 35)
    assert brief(op.finish()) == [("x", 0, 10, 1), ("x", 30, 40, 1)]


def test_partial_count_windows_only_if_asked_and_only_at_the_end() -> None:
    windows = {"silent": w.count(3), "loud": w.count(3, emit_partial=True)}
    op = query(windows=windows).operator()
    feed(op, 1, 2, 3, 4, 5)
    assert sorted(brief(op.advance(10))) == [("loud", 1, 4, 3), ("silent", 1, 4, 3)]
    (row,) = op.finish().to_pylist()
    assert (row["query"], row["n"]) == ("loud", 2)
    assert row["window"] == {"start": 4, "end": 6, "start_rank": 3, "end_rank": 6}


# Early results. ----------------------------------------------------------------------------------


def test_early_results_after_each_batch_that_changed_a_window() -> None:
    op = query(early=mt.each_batch()).operator()
    assert feed(op, 1, 12) == [("x", 0, 10, 1, "early", 0), ("x", 10, 20, 1, "early", 0)]
    assert feed(op, 2) == [("x", 0, 10, 2, "early", 1)]
    assert feed(op) == []
    assert brief(op.process({"t": 13})) == [("x", 10, 20, 2, "early", 1)]
    assert brief(op.advance(10)) == [("x", 0, 10, 2, "final", 2)]
    assert brief(op.finish()) == [("x", 10, 20, 2, "final", 2)]


def test_early_results_when_the_watermark_passes_a_multiple_of_the_period() -> None:
    op = query(windows={"x": w.tumbling(100)}, early=mt.every(10)).operator()
    feed(op, 1)
    assert brief(op.advance(5)) == [("x", 0, 100, 1, "early", 0)]  # the first watermark passes many
    feed(op, 7)
    assert brief(op.advance(9)) == []
    assert brief(op.advance(10)) == [("x", 0, 100, 2, "early", 1)]
    assert brief(op.advance(25)) == []  # nothing changed
    feed(op, 30, 31)
    assert brief(op.advance(30)) == [("x", 0, 100, 4, "early", 2)]
    assert brief(op.advance(100)) == [("x", 0, 100, 4, "final", 3)]


def test_early_sessions_are_retracted_when_they_grow() -> None:
    op = query(windows={"s": w.session(5)}, early=mt.each_batch()).operator()
    assert feed(op, 1, 10) == [("s", 1, 6, 1, "early", 0), ("s", 10, 15, 1, "early", 0)]
    assert feed(op, 6) == [
        ("s", 1, 6, 1, "retract", 1),
        ("s", 10, 15, 1, "retract", 1),
        ("s", 1, 15, 3, "early", 0),
    ]
    assert brief(op.finish()) == [("s", 1, 15, 3, "final", 1)]


@pytest.mark.parametrize("lag", [None, 0])
def test_tuples_before_the_first_time_are_set_aside_as_well(lag: int | None) -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count())
    op = shape.on("t", bad="route").operator(watermark_lag=lag)
    op.process([{"t": None, "id": 0}])
    op.process([{"t": 3, "id": 1}, {"t": None, "id": 2}])
    assert op.finish()["n"].to_pylist() == [1]
    assert op.take_bad()["id"].to_pylist() == [0, 2]
    assert op.stats().bad == 2
    with pytest.raises(DataError, match=r'"t" needs a value in every tuple: got null in row 0, .*0}; repair'):
        shape.on("t").run([{"t": None, "id": 0}])


def test_early_results_of_a_stream_in_order() -> None:
    op = query(early=mt.each_batch()).operator(in_order=True)
    assert feed(op, 1, 2) == [("x", 0, 10, 2, "early", 0)]
    assert feed(op, 5, 12) == [
        ("x", 0, 10, 3, "early", 1),
        ("x", 10, 20, 1, "early", 0),
        ("x", 0, 10, 3, "final", 2),
    ]
