"""An error in the middle of a step leaves the operator as it was: nothing is lost or half done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError, UserCodeError
from muntin.slicing import tuple_needs, tuple_slicer
from muntin.slicing.key_lives import Lives
from muntin.slicing.partials import PartialSet
from muntin.testing.engines import EmbeddedEngine
from muntin.testing.rows import compare
from muntin.testing.scenarios import Scenario, play
from muntin.testing.strategies import scenarios
from muntin.windows.base import Window

BIG = 2**62


def batch(*rows: tuple[int, Any]) -> pa.Table:
    return pa.table({"t": [t for t, _ in rows], "v": [v for _, v in rows]})


@contextmanager
def unchanged(op: Operator, *errors: type[Exception]) -> Iterator[None]:
    """The block fails with one of the errors, and the whole state is what it was."""
    before, watermark = op.snapshot(), op.watermark
    state = op._engine.header
    with pytest.raises(errors):
        yield
    assert op.watermark == watermark
    assert op.snapshot() == before
    assert op._engine.header is state


class Mood:
    """Whether the user's functions fail right now."""

    bad = False


def moody(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fails while the mood is bad."""

    def call(*arguments: Any) -> Any:
        in_the_mood()
        return function(*arguments)

    return call


def in_the_mood() -> None:
    if Mood.bad:
        raise RuntimeError("not today")


@contextmanager
def bad_mood() -> Iterator[None]:
    Mood.bad = True
    try:
        yield
    finally:
        Mood.bad = False


def perform(op: Operator, step: Any) -> pa.Table:
    """None ends the stream, an integer is a watermark, a list holds rows."""
    if step is None:
        return op.finish()
    return op.advance(step) if isinstance(step, int) else op.process(batch(*step))


def check_moody(query: Any, plain: Operator, steps: list[Any]) -> int:
    """Each step fails first, changes nothing, and then gives what it gives without failures."""
    failing, failures = query.operator(), 0
    for step in steps:
        before, watermark = failing.snapshot(), failing.watermark
        try:
            with bad_mood():
                perform(failing, step)
        except UserCodeError:
            failures += 1
            assert failing.snapshot() == before
            assert failing.watermark == watermark
        else:
            failing = Operator.restore(before, query)  # no function was called: go back and do it again
        assert perform(failing, step).to_pylist() == perform(plain, step).to_pylist()
    return failures


def summed(lift: Any = None, combine: Any = None, lower: Any = None) -> a.Aggregate:
    plus = combine or (lambda x, y: x + y)
    return a.aggregate("v", lift=lift or int, combine=plus, lower=lower or (lambda x: x), type=pa.int64())


ROWS = [(1, 1), (4, 2), (12, 3), (7, 4), (23, 5), (18, 6)]
WINDOWS = {
    "tumbling": w.tumbling(10),
    "session": w.session(3),
    "count": w.count(2),
    "last": w.last(2, every=5),
    "punctuation": w.punctuation(mt.col("v") == 3),
}


def total(op: Operator) -> list[tuple[str, int, int, int]]:
    rows = op.finish().to_pylist()
    return [(r["window_name"], r["window"]["start"], r["window"]["end"], r["x"]) for r in rows]


# The user's aggregate. ---------------------------------------------------------------------------


STEPS = [ROWS[:3], 9, ROWS[3:], 15, [(14, 9)], 22, [(16, 7)], 26, None]


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS.keys())
@pytest.mark.parametrize("role", ["lift", "combine", "lower"])
@pytest.mark.parametrize("lateness", [0, 10])
def test_a_function_of_the_user_that_fails_now_and_then(window: Window, role: str, lateness: int) -> None:
    ways = {"lift": int, "combine": lambda x, y: x + y, "lower": lambda x: x}
    query = mt.windows(x=window).on("t", allowed_lateness=lateness)
    plain = query.aggregate(x=summed()).operator()
    failures = check_moody(query.aggregate(x=summed(**{role: moody(ways[role])})), plain, STEPS)
    assert failures >= (1 if role == "combine" else 2)


def test_an_invert_that_fails_names_the_key_and_the_time_of_the_slice() -> None:
    def invert(whole: list[int], part: list[int]) -> list[int]:
        raise ValueError("no way back")

    total = a.aggregate(
        "v", lift=lambda v: [v], combine=lambda p, q: sorted(p + q), lower=sum, invert=invert, type=pa.int64()
    )
    op = mt.windows(ten=w.count(10)).aggregate(x=total).by("k").on("t", allowed_lateness=500).operator()
    op.process({"k": ["a"] * 50 + ["b"] * 9, "t": [*range(0, 500, 10), *range(9)], "v": [1] * 59})
    op.advance(350)
    op.process({"k": ["a"], "t": [105], "v": [3]})  # the slice from 100 to 190 loses its last tuple
    before = op.snapshot()
    with pytest.raises(UserCodeError, match=r"invert\(\[1.*: no way back \(at t=100, k='a'\); repair"):
        op.advance(400)
    assert op.snapshot() == before


def test_a_batch_that_fails_can_be_repaired_and_given_again() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(x=summed(lift=lambda v: 10 // v)).on("t").operator()
    op.process(batch((1, 1)))
    with unchanged(op, UserCodeError):
        op.process(batch((2, 5), (3, 0)))
    op.process(batch((2, 5), (3, 10)))
    assert total(op) == [("x", 0, 10, 13)]


def test_the_first_batch_that_fails_binds_nothing() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(x=a.sum("v")).by("k").on("t").operator()
    for wrong in (
        {"t": [1], "v": ["a"], "k": [1]},
        {"t": [None], "v": [1], "k": [1]},
        {"t": [1.5], "v": [1], "k": [1]},
    ):
        with pytest.raises(DataError):
            op.process(wrong)
        assert op._engine.binding is None
        assert op.advance(-100).num_rows == 0
    op.process({"t": [1], "v": [2.5], "k": ["other types"]})
    assert op.finish()["x"].to_pylist() == [2.5]


# Overflow. ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [w.tumbling(10), w.session(9), w.count(3), w.last(3, every=10)], ids=str)
def test_a_sum_that_overflows_leaves_the_watermark_where_it_was(window: Window) -> None:
    op = mt.windows(x=window).aggregate(x=a.sum("v")).on("t", allowed_lateness=50).operator()
    op.process(batch((1, BIG), (2, BIG)))
    op.process(batch((4, 5), (12, 1), (31, 1)))
    with unchanged(op, DataError):
        op.advance(30)
    assert op.watermark < 0
    op.process(batch((3, -BIG)))  # what was missing; exact sums may pass the limit on the way
    assert op.advance(30).num_rows > 0
    assert op.watermark == 30


@pytest.mark.parametrize("threads", [1, 2])
def test_a_sum_that_overflows_names_the_key_and_the_window(threads: int) -> None:
    query = mt.windows(five=w.tumbling(5), visit=w.session(2)).aggregate(x=a.sum("v")).by("k").on("t")
    tuples = {"t": [1, 2, 8, 9], "k": ["a", "b", "b", "b"], "v": [BIG, BIG, BIG, BIG]}
    told = r"does not fit into 64 bits \(at k='b', five \[5, 10\)\); cast the column"
    with pytest.raises(DataError, match=told):
        query.run(tuples, threads=threads)
    times = pa.array(tuples["t"], pa.timestamp("s"))
    plain = mt.windows(visit=w.session("1 second")).aggregate(x=a.sum("v")).on("t")
    with pytest.raises(DataError, match=r"\(at visit \[1970-01-01T00:00:01\+00:00, 1970-01-01T00:00:03\+"):
        plain.run({"t": times, "v": tuples["v"]})


def test_one_query_that_overflows_can_be_removed() -> None:
    op = mt.windows(x=w.tumbling(10), y=w.tumbling(5)).aggregate(x=a.sum("v")).on("t").operator()
    op.process(batch((1, BIG), (7, BIG)))
    with unchanged(op, DataError):
        op.advance(10)
    op.remove("x")
    assert op.advance(10)["x"].to_pylist() == [BIG, BIG]


# Windows with the user's code. -------------------------------------------------------------------


class Fragile(w.ForwardContextFree):
    """A window per tuple."""

    columns = ("v",)

    def observe(self, state: Any, record: w.Record) -> tuple[Any, int, int]:
        in_the_mood()
        return (state or 0) + 1, 1, min(1, state or 0)


class Backward(w.ForwardContextAware):
    """Each tuple with the one before."""

    columns = ("v",)

    def observe(self, state: Any, record: w.Record) -> tuple[Any, list[tuple[int, int]]]:
        in_the_mood()
        return None, [(max(0, record.rank - 1), record.rank + 1)]

    def keep_rank(self, state: Any, rank: int) -> int:
        in_the_mood()
        return max(0, rank - 1)


class Decades(w.ContextFree):
    """Windows of 10."""

    def next_edge(self, time: int) -> int:
        in_the_mood()
        return time - time % 10 + 10

    def containing(self, time: int) -> list[tuple[int, int]]:
        in_the_mood()
        return [(time - time % 10, time - time % 10 + 10)]


@pytest.mark.parametrize(
    "window",
    [
        Fragile(),
        Backward(),
        Decades(),
        w.discretize(moody(lambda record: (1, 1))),
        w.trigger(moody(lambda buffer: True), lambda buffer: max(0, len(buffer) - 2)),
        w.until(summed(lift=moody(int)), 5),
    ],
    ids=["forward free", "forward aware", "free", "discretize", "trigger", "until"],
)
@pytest.mark.parametrize("lateness", [0, 10])
def test_a_window_of_the_user_that_fails_now_and_then(window: Window, lateness: int) -> None:
    query = mt.windows(x=window, t=w.tumbling(10)).aggregate(x=a.sum("v")).on("t", allowed_lateness=lateness)
    assert check_moody(query, query.operator(), STEPS) >= 2


def test_adding_and_removing_queries_is_whole_or_nothing() -> None:
    query = mt.windows(x=w.tumbling(10), c=w.count(2)).aggregate(x=summed(lift=moody(int)))
    op = query.on("t", allowed_lateness=5).operator()
    op.process(batch(*ROWS))
    with bad_mood(), unchanged(op, UserCodeError):
        op.remove("c")  # which turns the kept tuples into slices
    with unchanged(op, QueryError):
        op.add(y=w.tumbling(5), x=w.tumbling(7))
    with unchanged(op, DataError):
        op.add(y=w.tumbling(5), m=w.tumbling(7, measure="no such column"))
    assert [q.name for q in op._engine.served.all] == ["x", "c"]
    assert sum(r["x"] for r in op.finish().to_pylist() if r["window_name"] == "x") == 21


# Steps that are two steps inside. ----------------------------------------------------------------


def test_a_batch_whose_watermark_fails_is_not_taken() -> None:
    for options in ({"watermark_lag": 0}, {"in_order": True}):
        op = mt.windows(x=w.tumbling(10)).aggregate(x=a.sum("v")).on("t").operator(**options)
        op.process(batch((1, BIG)))
        with unchanged(op, DataError):
            op.process(batch((2, BIG), (15, 1)))
        assert op.process(batch((2, 1), (15, 1)))["x"].to_pylist() == [BIG + 1]


def test_a_batch_whose_early_results_fail_is_not_taken() -> None:
    query = mt.windows(x=w.tumbling(10), s=w.session(3)).aggregate(x=a.sum("v")).by("t")
    op = query.on("t", early=mt.each_batch(), allowed_lateness=5).operator()
    op.process(batch((1, BIG)))
    with unchanged(op, DataError):
        op.process(batch((1, BIG), (2, 1)))
    assert op.stats().keys == 1
    assert op.process(batch((1, 1), (2, 1)))["kind"].to_pylist() == ["early"] * 4


def test_late_tuples_are_judged_again_after_a_failed_watermark() -> None:
    query = mt.windows(x=w.tumbling(10)).aggregate(x=a.sum("v")).on("t", late="route")
    op = query.operator()
    op.process(batch((5, 1), (25, 1)))
    op.advance(20)
    op.process(batch((3, 7), (26, BIG), (27, BIG)))
    with unchanged(op, DataError):
        op.advance(40)
    assert op.take_late().num_rows == 0
    assert op.stats().late == {"x": 0}
    op.process(batch((28, -BIG)))
    assert op.advance(40)["x"].to_pylist() == [BIG + 1]
    assert op.take_late()["v"].to_pylist() == [7]
    assert op.stats().late == {"x": 1}


# Records that wait in the buffer. ----------------------------------------------------------------


def test_of_buffered_records_only_the_bad_one_is_left_out() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(x=summed(lift=lambda v: 10 // v)).on("t").operator()
    for t, v in [(1, 1), (2, 0), (3, 5), (4, 0), (5, 10)]:
        op.process({"t": t, "v": v})
    for _ in range(2):  # both records of value 0 tell of themselves
        with pytest.raises(UserCodeError):
            op.advance(10)
        assert op.watermark < 0
    assert op.advance(10)["x"].to_pylist() == [13]


def test_a_bad_record_does_not_decide_the_types() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(x=a.sum("v")).on("t").operator()
    for record in ({"t": 1, "v": None}, {"t": None, "v": 2.5}, {"t": 3, "v": 2.5}):
        op.process(record)
    with pytest.raises(DataError, match='"t" needs a value in every tuple: got null'):
        op.advance(10)
    assert op.advance(10)["x"].to_pylist() == [2.5]


def test_an_interrupt_loses_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(x=a.sum("v")).on("t").operator()
    op.process({"t": 1, "v": 2})
    op.process({"t": 2, "v": 3})

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PartialSet, "lift", interrupted)
        with pytest.raises(KeyboardInterrupt):
            op.advance(10)
    assert op.advance(10)["x"].to_pylist() == [5]


# Anything, anywhere. -----------------------------------------------------------------------------


class InjectedError(Exception):
    pass


@contextmanager
def failing_at(call: int) -> Iterator[None]:
    """The so-manieth call into lifting, combining, lowering or cutting fails."""
    calls = 0
    originals: list[tuple[Any, str]] = [(PartialSet, name) for name in ("lift", "reduce", "lower")]
    originals += [(tuple_slicer, "cut"), (tuple_needs, "cut"), (Lives, "cut")]

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call:
                raise InjectedError
            return function(*arguments, **named)

        return count

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in originals:
            patch.setattr(owner, name, wrapped(getattr(owner, name)))
        yield


@settings(max_examples=max(10, settings.default.max_examples // 4))
@given(
    st.sampled_from([False, False, True]).flatmap(lambda early: scenarios(early=early, items=40)),
    st.integers(1, 12),
)
def test_a_failure_anywhere_changes_nothing(scenario: Scenario, call: int) -> None:
    failing = EmbeddedEngine(scenario.query, scenario.schema)
    plain = EmbeddedEngine(scenario.query, scenario.schema)
    for number, action in enumerate(scenario.actions):
        before = failing.snapshot()
        try:
            with failing_at(call):
                play(failing, action)
        except InjectedError:
            after = failing.snapshot()
            assert after == before, f"step {number}, {action}: {_difference(before, after)}"
        else:
            failing = failing.restored(before)
        difference = compare(play(failing, action), play(plain, action))
        assert not difference, f"step {number}, {action}\n{difference}"


def _difference(before: bytes, after: bytes) -> str:
    from muntin.slicing.snapshots.archive import unpack

    (old, old_tables), (new, new_tables) = unpack(before), unpack(after)
    changed = [name for name in old | new if old.get(name) != new.get(name)]
    changed += [name for name in old_tables | new_tables if old_tables.get(name) != new_tables.get(name)]
    return json.dumps(changed)
