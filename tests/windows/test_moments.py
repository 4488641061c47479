"""User windows in time: moments, edges given as times, errors of the user's code."""

from __future__ import annotations

import random
from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w


class Visits(w.ForwardContextFree):
    """Sessions with a gap of 5."""

    def observe(self, state: Any, record: Any) -> tuple[Any, Any, Any]:
        return record.time, int(state is None), 0

    def next_moment(self, state: Any) -> Any:
        return None if state is None else state + 6

    def at_moment(self, state: Any, moment: w.Moment) -> tuple[Any, Any, Any]:
        return None, 0, [state + 5]


class Glances(w.ForwardContextAware):
    """At every multiple of 10 the last three records."""

    def observe(self, state: Any, record: Any) -> tuple[Any, Any]:
        return state or record.time // 10 * 10 + 10, []

    def next_moment(self, state: Any) -> Any:
        return state

    def at_moment(self, state: Any, moment: w.Moment) -> tuple[Any, Any]:
        return state + 10, [(max(0, moment.rank - 3), moment.rank)]

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 3)


def query(window: Any, **policies: Any) -> mt.Query:
    return mt.windows(x=window).aggregate(ids=a.collect("id")).on("t", **policies)


def rows(results: mt.Results) -> list[tuple[Any, ...]]:
    return [
        (row["window"]["start"], row["window"]["end"], row["kind"], row["revision"], tuple(row["ids"]))
        for row in results.to_pylist()
    ]


@pytest.mark.parametrize(
    ("mine", "built_in"), [(Visits(), w.session(5)), (Glances(), w.last(3, every=10))], ids=["visits", "last"]
)
@pytest.mark.parametrize("disorder", [0, 8])
def test_a_class_with_moments_equals_the_built_in_window(mine: Any, built_in: Any, disorder: int) -> None:
    rng = random.Random(disorder)
    times = sorted((rng.randrange(400) for _ in range(120)), key=lambda time: time + rng.randint(0, disorder))
    mine_op, op = query(mine).operator(), query(built_in).operator()
    for number, time in enumerate(times):
        for each in (mine_op, op):
            each.process({"t": time, "id": number})
        if number % 3 == 2:
            watermark = max(times[: number + 1]) - disorder
            assert rows(mine_op.advance(watermark)) == rows(op.advance(watermark))
        if number % 40 == 39:
            mine_op = mt.Operator.restore(mine_op.snapshot(), query(mine))
    assert rows(mine_op.finish()) == rows(op.finish())


def test_an_idle_stream_closes_the_sessions_of_a_class() -> None:
    now = [0.0]
    operator = query(Visits(), idle_after="5 seconds").operator(clock=lambda: now[0])
    operator.process({"t": [1, 4], "id": [1, 2]})
    now[0] = 6.0
    assert rows(operator.poll()) == [(1, 9, "final", 0, (1, 2))]


def test_a_key_is_served_without_records() -> None:
    operator = mt.windows(x=Visits()).aggregate(n=a.count()).by("k").on("t").operator()
    operator.process({"t": [1, 3, 90], "k": ["a", "b", "b"]})
    found = operator.advance(50).to_pylist()
    assert [(row["k"], row["window"]["end"]) for row in found] == [("a", 6), ("b", 8)]


def test_times_of_starts_and_ends() -> None:
    class Hours(w.ForwardContextFree):
        """The hour of each mark, up to the record before the next one."""

        def initial_state(self) -> Any:
            return 0

        def observe(self, state: Any, record: Any) -> tuple[Any, Any, Any]:
            if record["id"] % 3:
                return record.time, 0, 0
            return record.time, [record.time // 10 * 10], [state + 1] if record.rank else 0

    found = query(Hours()).run({"t": [12, 13, 18, 25, 31], "id": [0, 1, 2, 3, 4]})
    assert [row[:2] for row in rows(found)] == [(10, 19), (20, 32)]


class Broken(w.ForwardContextFree):
    """Answers as it is told to."""

    def __init__(self, observe: Any = (1, 1, 0), moment: Any = None, at_moment: Any = (None, 0, 0)) -> None:
        self.answers = (observe, moment, at_moment)

    def observe(self, state: Any, record: Any) -> Any:
        return self.answers[0] if record.rank == 0 else (1, 0, [record.time + 1])

    def next_moment(self, state: Any) -> Any:
        return self.answers[1]

    def at_moment(self, state: Any, moment: w.Moment) -> Any:
        return self.answers[2]


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (Broken(), r"times of windows that end must lie from 1 to 3: got \[4\] for Record"),
        (Broken(observe=(1, [5], 0)), r"times of windows that begin must lie up to 1: got \[5\]"),
        (Broken(observe=(1, [0.5], 0)), "time of windows that begin must be an integer: got 0.5"),
        (Broken(moment=2, at_moment=(None, 0, 0)), r"after the last moment \(2\), below 2\*\*62: got 2"),
        (Broken(moment="soon"), "time that next_moment gives must be an integer: got 'soon'"),
        (Broken(moment=2, at_moment=None), "at_moment failed on Moment"),
        (Broken(moment=2, at_moment=(1, -1, 0)), "number of windows that begin must be 0, 1, 2"),
    ],
)
def test_answers_that_make_no_windows(window: Any, message: str) -> None:
    with pytest.raises(mt.MuntinError, match=message):
        query(window).run({"t": [1, 3], "id": [1, 2]})


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ((0, 1, 2), r"as \(begin, end\), or as \(begin, end, start, stop\): got \(0, 1, 2\)"),
        ((0, 1, 3, 4), "must start at 1 or before, and end from 1 to 4"),
        ((0, 1, 1, 9), "must start at 1 or before, and end from 1 to 4"),
        ((0, 3), r"must have ranks of records that were seen: got \[0, 3\)"),
    ],
)
def test_windows_that_a_class_cannot_reveal(edges: tuple[int, ...], message: str) -> None:
    class Revealed(w.ForwardContextAware):
        def observe(self, state: Any, record: Any) -> tuple[Any, Any]:
            return state, [edges] if record.rank == 1 else []

    with pytest.raises(mt.MuntinError, match=message):
        query(Revealed()).run({"t": [1, 3], "id": [1, 2]})


def test_edges_in_time_of_a_revealed_window() -> None:
    class Revealed(w.ForwardContextAware):
        def observe(self, state: Any, record: Any) -> tuple[Any, Any]:
            return state, [(0, 1, -5, 2)] if record.rank == 1 else []

    assert rows(query(Revealed()).run({"t": [1, 3], "id": [1, 2]})) == [(-5, 2, "final", 0, (1,))]


def test_a_moment_that_fails_is_skipped_if_errors_are() -> None:
    broken = Broken(moment=2, at_moment=None)
    operator = query(broken, on_error="skip").operator()
    operator.process({"t": [1], "id": [1]})
    operator.advance(5)
    assert operator.stats().errors == 1
    assert rows(operator.finish()) == [(1, 2, "final", 0, (1,))]
