"""One tuple, or one window, that cannot be computed does not stop a stream: there is always a way on."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, MuntinError, UserCodeError
from muntin.query_file import loads
from muntin.windows.base import Window

BIG = 2**62

WINDOWS: dict[str, Window] = {
    "tumbling": w.tumbling(10),
    "session": w.session(3),
    "count": w.count(2, emit_partial=True),
    "last": w.last(2, every=10),
    "punctuation": w.punctuation(mt.col("v") == 4),
    "threshold": w.threshold(mt.col("v") > -10),
    "discretize": w.discretize(lambda record: (record.rank % 2 == 0, record.rank % 2 == 0)),
    "until": w.until(a.aggregate("v", lift=lambda v: 12 // v, combine=lambda x, y: x + y), 1000),
}


def divided(**options: Any) -> a.Aggregate:
    """Its lift refuses 0."""
    return a.aggregate("v", lift=lambda v: 12 // v, combine=lambda x, y: x + y, name="divided", **options)


AGGREGATES: dict[str, a.Aggregate] = {
    "interpreted": divided(compile=False),
    "compiled": divided(compile=True),
    "in order": divided(compile=False, commutative=False),
    "in order, compiled": divided(compile=True, commutative=False),
}
GOOD = [(1, 1), (2, 2), (8, 3), (12, 4), (14, 6)]
POISON = [(1, 1), (3, 0), (2, 2), (8, 3), (9, 0), (12, 4), (14, 6)]


def table(rows: list[tuple[int, int]]) -> pa.Table:
    return pa.table(
        {"t": [t for t, _ in rows], "k": ["ab"[t % 2] for t, _ in rows], "v": [v for _, v in rows]}
    )


def query(window: Window, aggregate: a.Aggregate, bad: str) -> mt.Query:
    shape = mt.windows(x=window).aggregate(n=a.count(), x=aggregate).by("k")
    return shape.on("t", bad=bad)  # type: ignore[arg-type]  # one of the three


@pytest.fixture(params=AGGREGATES.values(), ids=AGGREGATES)
def aggregate(request: pytest.FixtureRequest) -> a.Aggregate:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=WINDOWS.values(), ids=WINDOWS)
def window(request: pytest.FixtureRequest) -> Window:
    return request.param  # type: ignore[no-any-return]


def by_window(op: Operator) -> list[dict[str, Any]]:
    """All results of what is in, and of a watermark on the way to the end."""
    rows = [*op.advance(10).to_pylist(), *op.finish().to_pylist()]
    return sorted(rows, key=lambda row: (row["k"], *row["window"].values()))


def undisturbed(query: mt.Query) -> list[dict[str, Any]]:
    op = query.operator()
    op.process(table(GOOD))
    return by_window(op)


# A lift that refuses a tuple. ----------------------------------------------------------------------


def test_a_refused_tuple_fails_at_once_and_leaves_no_trace(window: Window, aggregate: a.Aggregate) -> None:
    expected = undisturbed(query(window, aggregate, "fail"))
    op = query(window, aggregate, "fail").operator()
    op.process(table(GOOD[:2]))
    before = op.snapshot()
    with pytest.raises(UserCodeError, match=r"lift\(0\) failed: .*\(at t=9, k='b'\).*bad=\"skip\"") as error:
        op.process(table([(8, 3), (9, 0), (12, 4)]))
    assert 'repair it, or choose bad="skip" or bad="route"' in str(error.value)
    assert op.snapshot() == before
    op.process(table(GOOD[2:]))
    assert by_window(op) == expected


def test_refused_tuples_are_routed(window: Window, aggregate: a.Aggregate) -> None:
    expected = undisturbed(query(window, aggregate, "route"))
    op = query(window, aggregate, "route").operator()
    op.process(table(POISON))
    assert by_window(op) == expected
    routed = op.take_bad().to_pylist()
    assert [(row["t"], row["v"]) for row in routed] == [(3, 0), (9, 0)]
    for row in routed:
        assert row["reason"].startswith('user-defined aggregate "')
        assert "lift(0) failed: ZeroDivisionError" in row["reason"]
        assert "bad=" not in row["reason"]
    assert op.stats().bad == 2


def test_refused_tuples_are_skipped(
    window: Window, aggregate: a.Aggregate, caplog: pytest.LogCaptureFixture
) -> None:
    op = query(window, aggregate, "skip").operator()
    with caplog.at_level(logging.WARNING, "muntin"):
        op.process(table(POISON))
        op.process(table([(15, 0)]))
    assert "2 bad tuples: user-defined aggregate" in caplog.text
    expected = undisturbed(query(window, aggregate, "skip"))
    assert by_window(op) == expected
    assert op.stats().bad == 3
    assert op.take_bad().num_rows == 0


def test_refused_tuples_bring_no_keys_and_records_are_judged_one_by_one() -> None:
    for bad, way in (("skip", table([(3, 0)])), ("skip", {"t": 3, "k": "b", "v": 0})):
        op = query(w.count(2), divided(), bad).operator()
        op.process(table([(2, 1)]))
        op.process(way)
        op.flush()
        assert (op.stats().bad, op.stats().keys, op.stats().tuples) == (1, 1, 1)
    op = query(w.count(1), divided(), "fail").operator()
    for t, v in POISON:
        op.process({"t": t, "k": "a", "v": v})
    for _ in range(2):
        with pytest.raises(UserCodeError, match=r"lift\(0\) failed"):
            op.advance(20)
    assert op.advance(20)["x"].to_pylist() == [12, 6, 4, 3, 2]


def test_only_tuples_that_pass_the_filter_are_judged() -> None:
    shape = mt.windows(x=w.count(1)).aggregate(x=divided(filter=mt.col("v") != 0))
    assert shape.on("t").run(table(POISON))["x"].to_pylist() == [12, 6, None, 4, None, 3, 2]


def test_late_tuples_are_judged_as_well() -> None:
    op = query(w.count(2), divided(), "route").operator()
    op.process(table([(20, 1)]))
    op.advance(15)
    op.process(table([(3, 0), (4, 0), (5, 1)]))
    op.advance(16)
    assert op.take_bad()["t"].to_pylist() == [3, 4]
    assert op.stats().late == {"x": 1}


def test_bad_tuples_of_two_aggregates_count_once() -> None:
    shape = mt.windows(x=w.count(2)).aggregate(
        x=divided(), y=a.aggregate("v", lift=lambda v: 1 / (v - 2) / v, combine=min)
    )
    op = shape.on("t", bad="route").operator()
    op.process(table(POISON))
    routed = op.take_bad()
    assert routed["t"].to_pylist() == [3, 2, 9]
    assert ["divided" in reason for reason in routed["reason"].to_pylist()] == [True, False, True]


# Expressions that fail on a value. -----------------------------------------------------------------


@pytest.mark.parametrize("window", [w.tumbling(10), w.count(2, emit_partial=True)], ids=str)
@pytest.mark.parametrize(
    ("expression", "wrong", "why"),
    [(mt.col("t") / mt.col("v"), 0, "divide by zero"), (mt.col("v") * BIG, 5, "overflow")],
    ids=["division", "overflow"],
)
def test_a_tuple_for_which_an_expression_fails_is_bad(
    window: Window, expression: Any, wrong: int, why: str
) -> None:
    good = [(1, 1), (12, 1), (13, 1)]
    shape = mt.windows(x=window).aggregate(x=a.max(expression), n=a.count()).by("k")
    expected = shape.on("t").run(table(good)).to_pylist()
    op = shape.on("t", bad="route").operator()
    op.process(table([(1, 1), (2, wrong), (12, 1), (5, wrong), (13, 1)]))
    assert op.finish().to_pylist() == expected
    routed = op.take_bad().to_pylist()
    assert [(row["t"], row["v"]) for row in routed] == [(2, wrong), (5, wrong)]
    assert all(row["reason"].startswith('cannot compute "') and why in row["reason"] for row in routed)
    assert op.stats().bad == 2

    failing = shape.on("t").operator()
    failing.process(table(good[:1]))
    before = failing.snapshot()
    with pytest.raises(DataError, match=rf"{why}.* in row 1, {{'t': 2.*bad=\"skip\" or bad=\"route\""):
        failing.process(table([(12, 1), (2, wrong), (13, 1)]))
    assert failing.snapshot() == before
    failing.process(table(good[1:]))
    assert failing.finish().to_pylist() == expected


def test_an_expression_of_wrong_types_fails_whatever_the_policy_is() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(x=a.max(mt.col("k") * 2))
    with pytest.raises(DataError, match=r'"\*" does not take string'):
        shape.on("t", bad="skip").run(table(GOOD))


# Values that cannot be computed. -------------------------------------------------------------------


def plus(x: int, y: int) -> int:
    return x + y


WIDE = [(1, 6 * 10**18), (3, 6 * 10**18), (2, 5), (14, 7), (11, 8)]
TOO_BIG, FOUR = [(1, BIG), (3, BIG), (2, 5), (14, 7), (11, 8)], [(1, 1), (3, 3), (2, 5), (14, 7), (11, 8)]
VALUES: dict[str, tuple[a.Aggregate, list[tuple[int, int]]]] = {
    "sum": (a.sum("v"), TOO_BIG),
    "decimal": (a.sum(mt.col("v").cast(pa.decimal128(38, 19))), WIDE),
    "lower": (a.aggregate("v", lift=int, combine=plus, lower=lambda p: 9 // (p - 4), type=pa.int64()), FOUR),
    "result": (a.aggregate("v", lift=int, combine=plus, type=pa.int64(), compile=False), TOO_BIG),
}
EXPECTED = [("b", 0), ("a", 0), ("b", 10), ("a", 10)]


@pytest.mark.parametrize(("aggregate", "rows"), VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("kept", [False, True], ids=["slices", "kept tuples"])
def test_a_value_that_cannot_be_computed_is_null(
    aggregate: a.Aggregate, rows: list[tuple[int, int]], kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    more = {"two": w.count(2)} if kept else {}
    shape = mt.windows(ten=w.tumbling(10), **more).aggregate(n=a.count(), x=aggregate, y=a.max("v")).by("k")
    strict, lenient = shape.on("t"), shape.on("t", on_error="skip")
    op = strict.operator()
    op.process(table(rows))
    before = op.snapshot()
    for _ in range(2):
        with pytest.raises(MuntinError, match=r"\(at k='b', (ten|two) \[.*on_error=\"skip\""):
            op.advance(10)
        assert op.snapshot() == before
    # The way on: the same state with the other policy.
    for skips_errors in (Operator.restore(before, lenient), lenient.operator()):
        if skips_errors.stats().tuples == 0:
            skips_errors.process(table(rows))
        with caplog.at_level(logging.WARNING, "muntin"):
            found = [*skips_errors.advance(10).to_pylist(), *skips_errors.finish().to_pylist()]
        ten = [row for row in found if row["window_name"] == "ten"]
        assert [(row["k"], row["window"]["start"]) for row in ten] == EXPECTED
        assert [row["x"] is None for row in ten] == [True, False, False, False]
        assert [row["n"] for row in ten] == [2, 1, 1, 1]
        assert all(row["y"] is not None for row in found)
        assert skips_errors.stats().errors == sum(row["x"] is None for row in found)
        assert "at k='b', ten [0, 10)" in caplog.text


def test_the_window_is_emitted_again_when_a_late_tuple_makes_it_computable() -> None:
    shape = mt.windows(ten=w.tumbling(10), s=w.session(3)).aggregate(x=a.sum("v"))
    op = shape.on("t", allowed_lateness=20, on_error="skip").operator()
    op.process(table([(1, BIG), (2, BIG), (4, 5)]))
    assert op.advance(15)["x"].to_pylist() == [None, None]
    op.process(table([(3, -BIG)]))
    rows = op.advance(16).to_pylist()
    assert [(row["window_name"], row["x"], row["kind"]) for row in rows] == [
        ("s", BIG + 5, "update"),
        ("ten", BIG + 5, "update"),
    ]
    assert op.stats().errors == 2


def test_a_combine_that_fails_costs_only_the_windows_that_need_it() -> None:
    def combine(x: int, y: int) -> int:
        if x + y > 100:
            raise ArithmeticError("too much")
        return x + y

    aggregate = a.aggregate("v", lift=int, combine=combine, compile=False)
    shape = mt.windows(ten=w.tumbling(10), all=w.tumbling(1000), two=w.count(2)).aggregate(
        x=aggregate, n=a.count()
    )
    rows = [(1, 60), (2, 1), (13, 60), (14, 2), (25, 1), (36, 3)]
    op = shape.on("t", on_error="skip", allowed_lateness=5).operator()
    found = []
    for row in rows:
        op.process(table([row]))
        op = Operator.restore(op.snapshot(), shape.on("t", on_error="skip", allowed_lateness=5))
        found += op.advance(row[0]).to_pylist()
    found += op.finish().to_pylist()
    values = {(row["window_name"], row["window"]["start"]): (row["x"], row["n"]) for row in found}
    assert values == {
        ("ten", 0): (61, 2),
        ("ten", 10): (62, 2),
        ("ten", 20): (1, 1),
        ("ten", 30): (3, 1),
        ("all", 0): (None, 6),
        ("two", 1): (61, 2),
        ("two", 13): (62, 2),
        ("two", 25): (4, 2),
    }


def test_a_stream_that_is_stuck_can_lose_the_window_that_it_is_stuck_in() -> None:
    for window in (w.tumbling(10), w.count(2)):
        op = mt.windows(x=window, y=w.tumbling(2)).aggregate(x=a.sum("v")).on("t").operator()
        op.process(table([(1, BIG), (7, BIG), (8, 1)]))
        with pytest.raises(DataError, match="overflows"):
            op.advance(10)
        op.remove("x")
        assert op.advance(10)["x"].to_pylist() == [BIG, BIG, 1]


# Windows of the user. ------------------------------------------------------------------------------


class Starts(w.ForwardContextFree):
    """A window per tuple; 0 is refused, and the state is spoiled before."""

    columns = ("v",)

    def initial_state(self) -> Any:
        return []

    def observe(self, state: Any, record: w.Record) -> tuple[Any, int, int]:
        state.append(record["v"])
        return state, 12 // record["v"] > 0, len(state) > 1


class Pairs(w.ForwardContextAware):
    """Each tuple with the one before."""

    columns = ("v",)

    def observe(self, state: Any, record: w.Record) -> tuple[Any, list[tuple[int, int]]]:
        return None, [(max(0, record.rank - 1), record.rank + 12 // record["v"] // 12 + (record["v"] != 1))]

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 1)


class Forgetful(Pairs):
    """Which tuples it still needs is unknown."""

    def observe(self, state: Any, record: w.Record) -> tuple[Any, list[tuple[int, int]]]:
        return None, [(max(0, record.rank - 1), record.rank + 1)]

    def keep_rank(self, state: Any, rank: int) -> int:
        raise LookupError(rank)


def test_a_window_that_does_not_say_what_it_needs_keeps_everything() -> None:
    shape = mt.windows(mine=Forgetful()).aggregate(x=a.sum("v"))
    with pytest.raises(
        UserCodeError, match=r'keep_rank failed.*remove the window "mine", or choose on_error'
    ):
        shape.on("t").run(table(GOOD))
    op = shape.on("t", on_error="skip").operator()
    op.process(table(GOOD))
    assert [*op.advance(10)["x"].to_pylist(), *op.finish()["x"].to_pylist()] == [1, 3, 5, 7, 10]
    assert op.stats().errors > 0


USER_WINDOWS: dict[str, Window] = {
    "forward free": Starts(),
    "forward aware": Pairs(),
    "discretize": w.discretize(lambda record: (12 // record["v"] > 0, record.rank > 0), columns="v"),
    "trigger": w.trigger(lambda b: 12 // b[-1]["v"] > 0, lambda b: max(0, len(b) - 2), columns="v"),
    "evict": w.trigger(lambda b: b[-1]["v"] > 0, lambda b: max(0, len(b) - 12 // b[-1]["v"]), columns="v"),
}


@pytest.mark.parametrize("window", USER_WINDOWS.values(), ids=USER_WINDOWS)
def test_a_window_of_the_user_that_fails_on_a_record(window: Window) -> None:
    shape = mt.windows(mine=window, ten=w.tumbling(10)).aggregate(n=a.count(), x=a.sum("v"))
    op = shape.on("t").operator()
    op.process(table(POISON))
    for call in (lambda: op.advance(10), op.finish):
        with pytest.raises(UserCodeError, match=r"failed on .*'v': 0.*remove the window \"mine\""):
            call()
    # One way on is to do without the window,
    data = op.snapshot()
    op.remove("mine")
    assert op.finish()["x"].to_pylist() == [6, 10]
    # another to let it overlook what it cannot read.
    lenient = Operator.restore(data, shape.on("t", on_error="skip"))
    found = [*lenient.advance(10).to_pylist(), *lenient.finish().to_pylist()]
    assert [row["x"] for row in found if row["window_name"] == "ten"] == [6, 10]
    mine = [(row["n"], row["x"]) for row in found if row["window_name"] == "mine"]
    assert len(mine) >= 5
    assert lenient.stats().errors >= 2


def test_a_window_that_overlooks_a_record_keeps_it() -> None:
    shape = mt.windows(mine=USER_WINDOWS["discretize"]).aggregate(n=a.count(), x=a.sum("v"))
    found = shape.on("t", on_error="skip").run(table(POISON)).to_pylist()
    assert [(row["window"]["start"], row["n"], row["x"]) for row in found] == [
        (1, 1, 1),
        (2, 2, 2),
        (8, 2, 3),
        (12, 1, 4),
        (14, 1, 6),
    ]


class Broken(w.ContextFree):
    """Windows of 10 that have no edge after 100."""

    def next_edge(self, time: int) -> int:
        if time >= 100:
            raise LookupError("no edge")
        return time - time % 10 + 10

    def containing(self, time: int) -> list[tuple[int, int]]:
        return [(time - time % 10, time - time % 10 + 10)]


def test_a_context_free_window_that_fails_can_be_removed() -> None:
    op = mt.windows(mine=Broken(), ten=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
    op.process(table([(95, 1)]))
    with pytest.raises(UserCodeError, match=r"next_edge failed on 1.*LookupError: no edge"):
        op.process(table([(105, 1), (115, 1)]))
    with pytest.raises(UserCodeError, match="next_edge failed"):
        op.advance(110)
    op.remove("mine")
    op.process(table([(105, 1)]))
    assert op.finish()["n"].to_pylist() == [1, 1]


def test_the_policy_is_part_of_the_query() -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(x=a.sum("v"))
    strict, lenient = shape.on("t"), shape.on("t", on_error="skip")
    assert repr(lenient).endswith(".on('t', on_error='skip')")
    assert strict != lenient
    assert loads(lenient.to_toml()) == lenient
    with pytest.raises(mt.errors.QueryError, match=r'on_error must be "fail" or "skip": got .null.'):
        shape.on("t", on_error="null")  # type: ignore[arg-type]
