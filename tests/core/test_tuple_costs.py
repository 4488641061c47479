"""What windows that depend on the order of tuples cost: lifts, combines, inverts and tuples aggregated again.

All bounds are on counted work, in order and with a fifth of the tuples late. [scotty §5.2, §10.3; cutty §7]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.windows.tuple_driven import BLOCK_BITS

DELAY = 40
"""The most by which a late tuple is late; tuples have the times 0, 1, 2, ..."""
BLOCK = 2**BLOCK_BITS
SIZES = [100, 10_000, pytest.param(1_000_000, marks=pytest.mark.deep)]


class Work(NamedTuple):
    calls: int
    """How often the user's `lift` was called."""
    stats: Any


def run(window: Any, size: int, step: int, late: bool, aggregate: Any = None) -> Work:
    """A stream in steps of so many tuples, each with its watermark; `late`: a fifth of them is late."""
    calls = 0

    def lift(value: int) -> int:
        nonlocal calls
        calls += 1
        return value

    own = a.aggregate("v", lift=lift, combine=lambda p, q: p + q, type="int64", compile=False)
    lateness = DELAY if late else 0
    query = mt.windows(x=window).aggregate(x=aggregate or own).on("t", allowed_lateness=lateness)
    op = query.operator()
    random = np.random.default_rng(7)
    time = np.arange(size)
    if late:
        time = np.maximum(time - random.integers(1, DELAY, size) * (random.random(size) < 0.2), 0)
    calls = 0  # without the trial calls that find out the type of the partials
    for begin in range(0, size, step):
        part = time[begin : begin + step]
        op.process(pa.table({"t": part, "v": part % 7}))
        op.advance(begin + len(part) - 1)
    op.finish()
    return Work(calls, op.stats())


def turns(record: Any) -> tuple[int, int]:
    return int(record.rank % 20 == 0), int(record.rank >= 30 and (record.rank - 30) % 20 == 0)


WINDOWS = {
    "count": w.count(10),
    "sliding count": w.count(50, every=10),
    "threshold": w.threshold(mt.col("v") < 4),
    "delta": w.delta("v", by=3),
    "slide_by_tuple": w.slide_by_tuple(200, every=50),
    "last": w.last(30, every=20),
    "trigger": w.trigger(lambda b: b[-1].rank % 40 == 39, lambda b: max(0, len(b) - 90)),
    "discretize": w.discretize(turns),
}


def step_of(size: int) -> int:
    return max(1, size // 100)


@pytest.mark.parametrize("late", [False, True], ids=["in order", "late"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", WINDOWS)
def test_every_tuple_is_lifted_once(name: str, size: int, late: bool) -> None:
    calls, stats = run(WINDOWS[name], size, step_of(size), late)
    assert calls == size
    assert stats.lifts == size


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", WINDOWS)
def test_in_order_a_window_splits_a_slice_at_each_end_at_most(name: str, size: int) -> None:
    _, stats = run(WINDOWS[name], size, step_of(size), late=False, aggregate=a.max("v"))
    assert stats.splits <= 2 * stats.windows
    assert stats.recomputed_tuples <= 2 * BLOCK * stats.splits
    partials = 2
    assert stats.update_combines == partials * (size + stats.recomputed_tuples)
    if WINDOWS[name].context.value != "forward context aware":
        assert stats.splits == stats.recomputed_tuples == 0


def test_work_does_not_grow_with_the_tuples_that_are_stored() -> None:
    """4,001 lifts a tuple before: each step lifted all tuples that a window could look back to."""
    per_tuple = []
    for length in (100, 1_000, 10_000):
        _, stats = run(w.slide_by_tuple(length, every=50), 20_000, 100, late=False)
        per_tuple.append((stats.lifts + stats.recomputed_tuples) / 20_000)
    assert max(per_tuple) <= 3


@pytest.mark.parametrize("aggregate", [a.sum("v"), a.count(), a.max("v"), a.arg_max("t", by="v")], ids=str)
def test_a_late_tuple_moves_one_tuple_of_each_later_slice(aggregate: Any) -> None:
    """Of 20 slices of ten tuples the ten before the late tuple are not touched, and ten are updated."""
    op = mt.windows(x=w.count(10)).aggregate(x=aggregate).on("t", allowed_lateness=1_000).operator()
    op.process(pa.table({"t": np.arange(0, 400, 2), "v": np.arange(200) * 37 % 100}))
    op.advance(400)
    before = op.stats()
    assert (before.inverts, before.recomputed_tuples) == (0, 0)
    op.process({"t": [203], "v": [3]})
    op.advance(401)
    stats, partials = op.stats(), before.lifts // 200
    assert stats.lifts == 201 * partials
    assert stats.inverts == 10 * partials
    # One tuple joins and one leaves each of ten slices; an extreme that leaves is searched for again.
    assert stats.recomputed_tuples <= 2 * 10 + 3 * 10
    assert stats.updates == 10


def test_without_an_invert_only_the_slices_behind_a_late_tuple_are_aggregated_again() -> None:
    work = []
    for rank in (20, 100, 180):
        op = mt.windows(x=w.count(10)).aggregate(x=a.stddev("v")).on("t", allowed_lateness=1_000).operator()
        op.process(pa.table({"t": np.arange(0, 400, 2), "v": np.arange(200) * 37 % 100}))
        op.advance(400)
        op.process({"t": [2 * rank + 1], "v": [3]})
        op.advance(401)
        work.append(op.stats().recomputed_tuples)
    assert work == [200 - 20, 200 - 100, 200 - 180]


def test_a_late_tuple_of_a_frame_joins_its_slice_and_touches_no_other() -> None:
    op = mt.windows(x=w.threshold(mt.col("v") < 50)).aggregate(x=a.sum("v")).on("t", allowed_lateness=1_000)
    op = op.operator()
    op.process(pa.table({"t": np.arange(0, 400, 2), "v": np.arange(200) % 100}))
    op.advance(400)
    op.process({"t": [41], "v": [3]})
    op.advance(401)
    assert op.stats().recomputed_tuples == 0
    assert op.stats().updates == 1


def test_slices_of_stored_tuples_are_short_where_windows_look_back() -> None:
    op = mt.windows(x=w.last(5_000, every=10_000)).aggregate(x=a.sum("v")).on("t").operator()
    op.process(pa.table({"t": np.arange(9_000), "v": np.arange(9_000)}))
    op.advance(8_999)
    stats = op.stats()
    assert stats.kept_tuples / (4 * BLOCK) <= stats.slices <= stats.kept_tuples / (BLOCK / 4)


@pytest.mark.parametrize(
    ("aggregate", "type", "value"),
    [(a.max_count("v"), pa.uint64(), 0), (a.min_count("v"), pa.int64(), 2**63 - 1)],
    ids=str,
)
def test_an_extreme_that_equals_its_identity_leaves_a_slice(aggregate: Any, type: Any, value: int) -> None:
    op = mt.windows(c=w.count(8)).aggregate(x=aggregate).on("t", allowed_lateness=100).operator()
    op.process(pa.table({"t": list(range(1, 9)), "v": pa.array([value] * 8, type)}))
    op.advance(10)
    op.process(pa.table({"t": [0], "v": pa.array([None], type)}))
    assert op.advance(11)["x"].to_pylist() == [7]


def test_slices_taken_back_do_not_outlive_a_change_of_types() -> None:
    aggregates = {"f": a.first("v"), "x": a.max("v")}
    op = mt.windows(c=w.count(3)).aggregate(**aggregates).on("t", early=mt.each_batch()).operator()
    op.process(pa.table({"t": list(range(20)), "v": pa.nulls(20)}))
    op.advance(4)
    op.add(z=w.tumbling(5))
    op.process(pa.table({"t": pa.array([], pa.int64()), "v": pa.array([], pa.string())}))
    assert len(op.finish()) == 5 + 3  # the other full count windows, and those of the added window
