"""Keys that are gone give up their ids, and no result tells that they did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.slicing.key_compaction import LEAST_KEYS, compact, living
from muntin.testing.engines import EmbeddedEngine, Engine, Record
from muntin.testing.rows import Row, compare
from muntin.testing.scenarios import Scenario, play
from muntin.testing.strategies import scenarios
from muntin.windows.base import Window

FEWER = max(10, settings.default.max_examples // 4)
"""Each property below is about all windows; together they make up the number."""


def compact_now(op: Operator) -> None:
    """Forget all keys that are not alive."""
    engine = op._engine
    if engine.plan is not None:
        state = engine.state.draft()
        compact(engine.plan, state, force=True)
        engine.keep(engine.plan, state)


def living_keys(op: Operator) -> npt.NDArray[np.bool_]:
    """Which keys are alive."""
    assert op._engine.plan is not None
    return living(op._engine.plan, op._engine.state.draft())


class CompactingEngine(EmbeddedEngine):
    """Renumbers the keys after every step."""

    def process(self, rows: Sequence[Record]) -> list[Row]:
        return self._compacted(super().process(rows))

    def advance(self, watermark: int) -> list[Row]:
        return self._compacted(super().advance(watermark))

    def _compacted(self, rows: list[Row]) -> list[Row]:
        compact_now(self._operator)
        return rows

    def restored(self, data: bytes) -> CompactingEngine:
        engine = CompactingEngine(self._query, self._schema)
        engine._operator = super().restored(data)._operator
        return engine


def check_compacted(scenario: Scenario) -> None:
    """Every step gives the same rows with and without compaction."""
    plain: Engine = EmbeddedEngine(scenario.query, scenario.schema)
    compacting: Engine = CompactingEngine(scenario.query, scenario.schema)
    for number, action in enumerate(scenario.actions):
        if action.name == "snapshot":
            plain, compacting = plain.restored(plain.snapshot()), compacting.restored(compacting.snapshot())
        elif action.name == "add":
            since = plain.add(action.value, action.window, None)
            assert compacting.add(action.value, action.window, None) == since
        else:
            difference = compare(play(compacting, action), play(plain, action))
            assert not difference, f"step {number}, {action}\n{difference}"
        assert [r["id"] for _, r in compacting.take_late()] == [r["id"] for _, r in plain.take_late()]


@settings(max_examples=FEWER)
@given(scenarios())
def test_results_do_not_depend_on_when_keys_are_forgotten(scenario: Scenario) -> None:
    check_compacted(scenario)


@settings(max_examples=FEWER)
@given(scenarios(("session", "frames", "ranks", "time"), early=True))
def test_early_results_do_not_depend_on_it(scenario: Scenario) -> None:
    check_compacted(scenario)


@settings(max_examples=FEWER)
@given(scenarios(live=True, snapshots=True, wide=True))
def test_queries_that_come_and_go_do_not_depend_on_it(scenario: Scenario) -> None:
    check_compacted(scenario)


@settings(max_examples=FEWER)
@given(scenarios(live=True, snapshots=True, forget=True))
def test_the_lives_of_keys_do_not_depend_on_it(scenario: Scenario) -> None:
    check_compacted(scenario)


def churn(window: Window, keys: int = 4 * LEAST_KEYS, **on: object) -> Operator:
    """A stream in which each key has a few tuples of values 0 to 3 and is never seen again."""
    query = mt.windows(x=window).aggregate(n=a.count()).by("k").on("t", **on)
    op = query.operator()
    each = LEAST_KEYS // 2
    for first in range(0, keys, each):
        t = np.repeat(np.arange(first, first + each) * 10, 4) + np.tile(np.arange(4), each)
        op.process(
            {"t": t, "k": np.repeat(np.arange(first, first + each), 4), "v": np.tile(np.arange(4), each)}
        )
        op.advance(int(t[-1]) + 1)
    return op


@pytest.mark.parametrize(
    "window",
    [
        w.tumbling(5),
        w.sliding(20, every=5),
        w.cumulate(20, step=5),
        w.fixed_band(0, 50),
        w.session(5),
        w.session(5, max_length=50),
        w.threshold(mt.col("v") < 2),
        w.until(a.count(), 4),
        w.slide_by_tuple(5, every=1),
    ],
    ids=lambda window: window.describe(),
)
def test_keys_without_an_open_window_are_forgotten(window: Window) -> None:
    op = churn(window)
    # Never more than twice as many as were alive when it last looked; the last batch may be.
    assert len(op._engine.state.keys) <= 2 * LEAST_KEYS
    assert op.stats().keys <= 2 * LEAST_KEYS
    assert int(living_keys(op).sum()) <= 8


@pytest.mark.parametrize(
    "window",
    [
        w.count(3),
        w.count(4),  # full, and yet the next tuple is number 4
        w.punctuation(mt.col("v") == 0),
        w.delta("v", by=10),
        w.boundary("v", step=10),
        w.slide_by_tuple(5, every=2),
        w.last(2, every=10_000),
        w.tumbling(2, measure="v"),
        w.session(2, measure="v"),
        w.threshold(mt.col("v") < 2, measure="v"),
        w.tumbling(5, emit_empty=True),
    ],
    ids=lambda window: window.describe(),
)
def test_keys_that_a_window_needs_for_ever_stay(window: Window) -> None:
    op = churn(window, keys=2 * LEAST_KEYS)
    assert op.stats().keys == 2 * LEAST_KEYS
    assert living_keys(op).all()


def test_keys_of_windows_with_code_of_the_user_stay() -> None:
    op = churn(w.discretize(lambda record: (1, 1)), keys=LEAST_KEYS // 2)
    assert living_keys(op).all()


def test_a_key_that_comes_back_is_the_same_key() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).by("k", "j").on("t")
    op = query.operator()
    each = 2 * LEAST_KEYS
    for round_ in range(3):
        base = round_ * 100
        op.process({"t": [base] * each, "k": [f"k{i}" for i in range(each)], "j": list(range(each))})
        table = op.advance(base + 50)
        assert sorted(table["j"].to_pylist()) == list(range(each))
        assert all(k == f"k{j}" for k, j in zip(table["k"].to_pylist(), table["j"].to_pylist(), strict=True))
        assert op.stats().keys == 0


def test_rank_goes_on_when_a_key_of_a_count_window_comes_back() -> None:
    query = mt.windows(three=w.count(3)).aggregate(n=a.count()).by("k").on("t")
    op = query.operator()
    op.process({"t": [0, 1], "k": ["a", "a"]})
    for i in range(3):
        t = np.full(LEAST_KEYS, 10 + i)
        op.process({"t": t, "k": [f"{i}-{j}" for j in range(LEAST_KEYS)]})
        op.advance(11 + i)
    op.process({"t": [100], "k": ["a"]})
    (row,) = op.advance(101).to_pylist()
    assert row["window"] == {"start": 0, "end": 101, "start_rank": 0, "end_rank": 3}


def test_tuples_that_wait_to_be_judged_keep_their_key() -> None:
    query = (
        mt.windows(long=w.tumbling(10_000), short=w.tumbling(10))
        .aggregate(n=a.count())
        .by("k")
        .on("t", late="route")
    )
    op = query.operator()
    op.process({"t": np.arange(4 * LEAST_KEYS), "k": np.arange(4 * LEAST_KEYS)})
    op.advance(4 * LEAST_KEYS)
    op.process({"t": [5], "k": [-1]})
    compact_now(op)
    assert op.advance(4 * LEAST_KEYS + 1).num_rows == 0
    assert op.take_late().to_pylist() == [{"t": 5, "k": -1, "window_name": "short"}]
    rows = op.finish().to_pylist()
    assert {"k": -1, "n": 1} in [{"k": row["k"], "n": row["n"]} for row in rows]
