"""Watermarks by hand and from the data, streams in order, silence, and the end of the stream."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError
from muntin.slicing import step as step_module
from muntin.slicing.batch import Batch
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.state import State
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Window

sys.path.insert(0, str(Path(__file__).parent))
from stepping import brief, feed, query  # beside this file, not installed

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


def test_finish_without_any_tuple() -> None:
    op = query().operator()
    assert op.finish().num_rows == 0
    assert op.finish().num_rows == 0


AFTER: dict[str, Any] = {
    "process": lambda op: op.process({"t": [5]}),
    "a record": lambda op: op.process({"t": 5}),
    "an empty batch": lambda op: op.process({"t": []}),
    "advance": lambda op: op.advance(100),
    "add": lambda op: op.add(more=w.tumbling(20)),
}


@pytest.mark.parametrize("call", AFTER)
@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("options", [{}, {"in_order": True}, {"watermark_lag": 3}], ids=str)
def test_nothing_comes_after_the_end(call: str, restored: bool, options: Any) -> None:
    op = query().operator(**options)
    feed(op, 1)
    op.finish()
    if restored:
        op = Operator.restore(op.snapshot())
    before = op.snapshot()
    with pytest.raises(DataError, match=r"the stream has ended with finish\(\).*start a new stream"):
        AFTER[call](op)
    assert op.snapshot() == before


def test_after_the_end_the_rest_can_still_be_fetched() -> None:
    op = query(late="route", bad="route", idle_after="1 second").operator(clock=lambda: 0.0)
    feed(op, 1, None)
    op.advance(50)
    feed(op, 2)
    op.finish()
    assert op.stats().late == {"x": 1}
    assert op.take_late()["t"].to_pylist() == [2]
    assert op.take_bad().num_rows == 1
    assert op.poll().num_rows == 0
    assert op.flush().num_rows == 0


def test_an_error_leaves_the_stream_open() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(total=a.sum("v")).on("t").operator()
    op.process({"t": [1, 2], "v": [2**62, 2**62]})
    with pytest.raises(DataError, match="overflows"):
        op.finish()
    op.process({"t": [3], "v": [-(2**62)]})
    assert op.finish()["total"].to_pylist() == [2**62]


# In order. ---------------------------------------------------------------------------------------


def test_in_order_each_tuple_is_a_watermark() -> None:
    op = query(windows={"x": w.tumbling(10), "s": w.session(3), "c": w.count(2)}).operator(in_order=True)
    assert feed(op, 1) == []
    assert feed(op, 1, 9) == [("c", 1, 2, 2), ("s", 1, 4, 2)]
    assert feed(op, 10) == [("x", 0, 10, 3), ("c", 9, 11, 2)]  # a count window comes out with its last tuple
    assert feed(op, 10) == []
    assert brief(op.process({"t": 30})) == [("s", 9, 13, 3), ("x", 10, 20, 2), ("c", 10, 31, 2)]
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
    assert sorted(op.poll()["window_name"].to_pylist()) == ["c", "s", "x"]
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


def test_an_idle_stream_judges_the_tuples_that_wait() -> None:
    op, clock = idle(x=w.tumbling("10 seconds"))
    op.process(seconds(0))
    op.advance("1970-01-01T00:00:12")
    op.process(seconds(5, 11))  # both wait for the watermark to move; the second is the newest
    clock.now += 30
    assert op.poll()["n"].to_pylist() == [1]
    assert op.watermark == 20_000_000
    assert op.take_late()["ts"].cast(pa.int64()).to_pylist() == [5_000_000]


def test_an_idle_stream_updates_windows_that_have_come_out() -> None:
    clock = Clock()
    shape = mt.windows(x=w.tumbling("10 seconds")).aggregate(n=a.count())
    op = shape.on("ts", allowed_lateness="15 seconds", idle_after="30 seconds").operator(clock=clock)
    op.process(seconds(3, 15))
    clock.now += 30
    assert op.poll()["n"].to_pylist() == [1, 1]
    op.process(seconds(4))  # older than the lateness, in a window that has not expired
    clock.now += 30
    assert op.poll().to_arrow().select(["n", "kind"]).to_pylist() == [{"n": 2, "kind": "update"}]


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


# Quiet watermarks: no window begins or ends on the way to them. --------------------------------------


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The watermarks at which windows were looked for, by the compiled step or by the general route."""
    found: list[int] = []
    due_results, numeric_results = step_module.due_results, step_module.numeric_results

    def noting_compiled(
        plan: BoundPlan, state: State, batch: Batch | None, watermark: int, defer: bool = False
    ) -> Any:
        results = numeric_results(plan, state, batch, watermark, defer)
        if results is not None:
            found.append(watermark)
        return results

    def noting(plan: BoundPlan, state: State, before: int, closing: bool = False) -> Any:
        found.append(state.watermark)
        return due_results(plan, state, before, closing)

    monkeypatch.setattr(step_module, "due_results", noting)
    monkeypatch.setattr(step_module, "numeric_results", noting_compiled)
    return found


def test_a_quiet_watermark_costs_no_look_at_windows(looks: list[int]) -> None:
    query = mt.windows(ten=w.tumbling(10), slid=w.sliding(40, 20)).aggregate(n=a.count()).on("t")
    op = query.operator()
    rows = []
    for t in range(40):
        op.process({"t": [t]})
        rows += op.advance(t).to_pylist()
    assert [row["window"]["end"] for row in rows] == [10, 20, 20, 30]
    assert looks == [0, 10, 20, 30]
    assert op.watermark == 39


def test_a_late_tuple_is_judged_at_a_quiet_watermark() -> None:
    op = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t", late="route").operator()
    for t, watermark in ((12, 11), (13, 13), (5, 14)):
        op.process({"t": [t]})
        op.advance(watermark)
    assert op.take_late()["t"].to_pylist() == [5]


def test_a_late_tuple_that_waits_is_judged_at_the_watermark_that_a_record_makes() -> None:
    """It makes a session of its own, which none of the tuples in slices foretells."""
    query = mt.windows(visit=w.session(4)).aggregate(n=a.count()).by("k").on("t")
    op = query.operator(watermark_lag=10)
    for t, k in ((20, "a"), (9, "b")):
        assert op.process({"t": t, "k": k}).num_rows == 0
    table = op.process({"t": 30, "k": "a"})
    assert [(row["k"], row["window"]["start"], row["n"]) for row in table.to_pylist()] == [("b", 9, 1)]


def test_windows_of_a_watermark_that_failed_are_still_due() -> None:
    op = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).on("t").operator()
    op.process({"t": [1, 2], "v": [2**62, 2**62]})
    op.advance(3)
    for _ in range(2):
        with pytest.raises(DataError, match="does not fit"):
            op.advance(12)
    op.process({"t": [3], "v": [-(2**62)]})
    assert op.advance(12)["total"].to_pylist() == [2**62]


def test_a_window_added_in_the_quiet_comes_out_in_time() -> None:
    op = mt.windows(hundred=w.tumbling(100)).aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1]})
    op.advance(2)
    op.advance(5)
    op.add(ten=w.tumbling(10))
    op.process({"t": [11]})
    assert op.advance(20)["window_name"].to_pylist() == ["ten", "ten"]


@pytest.mark.parametrize("in_order", [False, True])
def test_a_small_step_that_overflows_names_its_window_or_skips_it(in_order: bool) -> None:
    """The compiled step hands it on, as it cannot tell which window failed."""
    query = mt.windows(ten=w.tumbling(10)).aggregate(x=a.sum("v")).on("t")
    tuples = pa.record_batch({"t": [1, 2, 11, 21], "v": [2**62, 2**62, 3, 1]})
    op = query.operator(in_order=in_order)
    with pytest.raises(DataError, match=r"does not fit into 64 bits \(at ten \[0, 10\)\)"):
        (op.process(tuples), op.process(tuples.slice(3)), op.advance(20))
    op = query.on("t", on_error="skip").operator(in_order=in_order)
    op.process(tuples.slice(0, 0))  # the next batch waits for the watermark
    results = mt.Results.concat([op.process(tuples), op.advance(20)])
    assert results["x"].to_pylist() == [None, 3]
    assert op.stats().errors == 1
