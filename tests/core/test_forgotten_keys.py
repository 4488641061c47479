"""forget_keys_after: memory stays bounded while keys come and go, and no result depends on how it was run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.slicing.key_compaction import LEAST_KEYS
from muntin.testing.engines import EmbeddedEngine
from muntin.testing.scenarios import Scenario, play
from muntin.testing.strategies import scenarios
from muntin.timeline import NEG_INF
from muntin.windows.base import Window

HOLDING = [
    w.count(10),
    w.count(4),
    w.count(10, every=3, emit_partial=True),
    w.last(3, every=25),
    w.last(3, every=2_000),
    w.slide_by_tuple(5, every=2),
    w.punctuation(mt.col("v") == 0),
    w.threshold(mt.col("v") < 9),
    w.delta("v", by=10),
    w.boundary("v", step=10),
    w.until(a.count(), 9),
    w.tumbling(2, measure="v"),
    w.session(2, measure="v"),
    w.threshold(mt.col("v") < 2, measure="v"),
    w.tumbling(5, emit_empty=True),
    w.sliding(40, every=5, emit_empty=True),
    w.discretize(lambda record: (1, 0)),
    w.trigger(lambda buffer: len(buffer) == 3, lambda buffer: 0),
]
"""Windows that hold every key for ever."""
KEYS, STEP = 100, 10


def churned(window: Window, steps: int, **on: Any) -> Operator:
    """In each step there are 100 new keys with four tuples each, which are never seen again."""
    query = mt.windows(x=window, minute=w.tumbling(60)).aggregate(n=a.count()).by("k").on("t", **on)
    op = query.operator()
    for step in range(steps):
        keys = np.arange(step * KEYS, (step + 1) * KEYS)
        t = np.repeat(step * STEP + np.arange(KEYS) % STEP, 4)
        op.process({"t": t, "k": np.repeat(keys, 4), "v": np.tile(np.arange(4), KEYS)})
        op.advance(step * STEP)
    return op


@pytest.mark.parametrize("lateness", [0, 30])
@pytest.mark.parametrize("window", HOLDING, ids=lambda window: window.describe())
def test_memory_stays_bounded_while_keys_come_and_go(window: Window, lateness: int) -> None:
    steps = 60 if window.wants_records else 120
    alive = KEYS * (100 + lateness + 60) // STEP
    op = churned(window, steps, forget_keys_after=100, allowed_lateness=lateness)
    half = churned(window, steps // 2, forget_keys_after=100, allowed_lateness=lateness).stats()
    stats = op.stats()
    assert stats.keys <= max(2 * LEAST_KEYS, 3 * alive)
    assert stats.slices <= 5 * alive
    assert stats.kept_tuples <= 5 * alive
    assert stats.state_bytes <= 2 * half.state_bytes


@pytest.mark.parametrize(
    "window",
    [w.count(10), w.last(3, every=25), w.punctuation(mt.col("v") == 0), w.tumbling(5, emit_empty=True)],
)
def test_without_it_memory_grows_with_the_keys(window: Window) -> None:
    half, stats = churned(window, 20).stats(), churned(window, 40).stats()
    assert (half.keys, stats.keys) == (20 * KEYS, 40 * KEYS)
    assert stats.state_bytes > 1.7 * half.state_bytes


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(scenarios(("ranks", "frames", "measures", "time"), lateness=(0,), forget=True))
def test_one_batch_gives_what_a_stream_gives(scenario: Scenario) -> None:
    """Where no tuple comes behind the watermark: lives follow from the times of the tuples alone.

    One behind it need not be late: an endless window still counts it, but those that ended are out.
    """
    rows = [row for action in scenario.actions if action.name == "process" for row in action.value]
    stream, batch = (EmbeddedEngine(scenario.query, scenario.schema) for _ in range(2))
    found, watermark = [], NEG_INF
    for action in scenario.actions:
        if action.name == "advance":
            watermark = max(watermark, action.value)
        if action.name == "process" and any(row["t"] < watermark for row in action.value):
            return
        if action.name != "finish":
            found += play(stream, action)
    found += stream.finish()
    assert not stream.take_late()
    whole = [*batch.process(rows), *batch.finish()]
    shown = {str(row) for row in found}
    # Empty windows, and the last tuples every so often, also come out behind the newest tuple.
    assert {str(row) for row in whole} <= shown


def test_a_key_that_comes_back_after_it_was_dropped_begins_anew() -> None:
    query = mt.windows(c=w.count(2)).aggregate(n=a.count()).by("k").on("t", forget_keys_after=10)
    op = query.operator()
    op.process({"t": [0], "k": [0]})
    for step in range(1, 40):
        op.process({"t": np.full(200, 100 * step), "k": np.arange(200) + 200 * step})
        op.advance(100 * step)
    assert op.stats().keys <= 2 * LEAST_KEYS  # 0 is not among them
    op.process({"t": [4_000, 4_001], "k": [0, 0]})
    (row,) = op.advance(4_010).to_pylist()
    assert row["window"] == {"start": 4_000, "end": 4_002, "start_rank": 0, "end_rank": 2}
