"""The stores in the operator: what they cost in combines, and when what they keep must not be trusted."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError
from muntin.planning.plan import STORES
from muntin.planning.rules import PERSISTENT_FROM_IN_PYTHON as PERSISTENT_FROM
from muntin.slicing.combining.finger_trees import APART, counterparts, places

SLICES = 600  # sliding 60 s by 100 ms
COUNT = {"n": a.count()}  # a single partial, which every store can serve


def sliding(slices: int = SLICES, aggregates: dict[str, Any] | None = None, **on: Any) -> Any:
    return mt.windows(x=w.sliding(slices, every=1)).aggregate(**(aggregates or COUNT)).on("t", **on)


def ticks(start: int, end: int, keys: int = 1) -> pa.Table:
    time = np.repeat(np.arange(start, end), keys)
    return pa.table({"t": time, "k": np.tile(np.arange(keys), end - start), "v": (7 * time) % 101})


def combines(op: Any) -> int:
    return int(op._engine.state.metrics.merge_combines)


def at_once(store: str, slices: int) -> float:
    """Combines per window where one watermark completes 1,500 of them."""
    op = sliding(slices).operator(store=store)
    op.process(ticks(0, slices + 1_500))
    op.advance(slices)
    before = combines(op)
    assert op.advance(slices + 1_500).num_rows == 1_500
    return (combines(op) - before) / 1_500


AT_ONCE = {
    "lazy": lambda n: n,
    "prefix": lambda n: 2.5,
    "two_stacks": lambda n: 6,
    "daba": lambda n: 8,
    "flatfat": lambda n: 2 * math.log2(n) + 2,
    "fiba": lambda n: 6 * math.log2(n),
}


@pytest.mark.parametrize("store", STORES)
def test_combines_per_window_when_many_end_at_once(store: str) -> None:
    for slices in (64, SLICES):
        assert at_once(store, slices) <= AT_ONCE[store](slices)


def one_by_one(store: str, slices: int, rounds: int) -> list[int]:
    """Combines at each of many watermarks that complete one window each."""
    op = sliding(slices).operator(store=store)
    op.process(ticks(0, slices))
    op.advance(slices)
    found = []
    for t in range(slices, slices + rounds):
        op.process(ticks(t, t + 1))
        before = combines(op)
        op.advance(t + 1)
        found.append(combines(op) - before)
    return found


@pytest.mark.parametrize(
    ("store", "average", "most"),
    [("two_stacks", 6, 2 * 256), ("daba", 4.5, 6), ("fiba", 10, 128), ("flatfat", 20, 512)],
)
def test_combines_at_frequent_watermarks_do_not_depend_on_the_window(
    store: str, average: float, most: int
) -> None:
    for slices in (64, 256):
        found = one_by_one(store, slices, 260)  # past the flip of two stacks
        assert np.mean(found) <= average
        assert max(found) <= most


@pytest.mark.parametrize("store", ["lazy", "prefix"])
def test_stores_that_keep_nothing_pay_for_all_slices_at_each_watermark(store: str) -> None:
    assert all(SLICES - 1 <= found <= SLICES + 1 for found in one_by_one(store, SLICES, 10))


def test_a_planned_tree_stands_only_where_few_windows_end() -> None:
    most = a.aggregate("v", lift=lambda v: [v], combine=max, name="most")
    op = sliding(PERSISTENT_FROM, {"most": most}).operator()
    costs, done = [], 0
    for now in (PERSISTENT_FROM, PERSISTENT_FROM + 500, *range(PERSISTENT_FROM + 501, PERSISTENT_FROM + 511)):
        op.process(ticks(done, now))
        before, done = combines(op), now
        op.advance(now)
        costs.append(combines(op) - before)
    assert costs[1] / 500 <= PERSISTENT_FROM / 500 + 2 * math.log2(PERSISTENT_FROM), "a tree for all"
    assert costs[2] <= 4 * PERSISTENT_FROM, "the tree that stands from here on"
    assert max(costs[3:]) <= 10 * math.log2(PERSISTENT_FROM)


@pytest.mark.parametrize(("store", "factor"), [("fiba", 14), ("flatfat", 4)])
def test_late_tuples_cost_the_logarithm_in_a_tree(store: str, factor: float) -> None:
    slices, rng = 4_096, np.random.default_rng(4)
    query = sliding(slices, {"most": a.max("v")}, allowed_lateness=slices)
    ops = [query.operator(store=each) for each in (store, "lazy")]
    costs = []
    for t in range(0, 2 * slices, slices):
        for op in ops:
            op.process(ticks(t, t + slices))
            op.advance(t + slices)
    for t in rng.integers(slices // 2, 2 * slices - 2, 20).tolist():
        late = {"t": [t], "k": [0], "v": [200 + t % 7]}
        results, before = [], combines(ops[0])
        for op in ops:
            op.process(late)
            results.append(op.advance(2 * slices))
        assert results[0] == results[1]
        windows = max(1, results[0].num_rows)
        costs.append((combines(ops[0]) - before) / 2 / windows)  # two partials
    assert max(costs) <= factor * math.log2(slices)


def started(query: Any, slices: int, **options: Any) -> Any:
    """An operator that has taken so many slices in, none of which has completed a window."""
    op = query.operator(**options)
    op.process(ticks(0, slices))
    op.flush()
    op._engine.state.watermark = slices - 1
    return op


@pytest.mark.parametrize("slices", [1_000, 10_000, 100_000])
def test_windows_of_many_lengths_share_a_tree(slices: int) -> None:
    """About 1,000 windows of different lengths end with each slice. [fiba Theorem 7]"""
    lengths = np.unique(np.geomspace(10, slices, 1_000).astype(int)).tolist()
    query = mt.windows(**{f"w{n}": w.sliding(n, every=1) for n in lengths})
    op = started(query.aggregate(most=a.max("v")).on("t"), slices, store="flatfat")
    op.advance(slices)
    for t in range(slices, slices + 3):
        op.process(ticks(t, t + 1))
        before = combines(op)
        assert op.advance(t + 1).num_rows == len(lengths)
        assert (combines(op) - before) / 2 / len(lengths) <= 2 * math.log2(slices)


def test_a_window_of_very_many_slices_costs_what_one_of_few_costs() -> None:
    """20 watermarks of one window each: 100 times the slices are 7 combines more, not 99,000."""
    costs = []
    for slices in (1_000, 100_000):
        op = started(sliding(slices, {"most": a.max("v")}), slices, store="flatfat")
        op.advance(slices)
        before = combines(op)
        for t in range(slices, slices + 20):
            op.process(ticks(t, t + 1))
            op.advance(t + 1)
        costs.append((combines(op) - before) / 20 / 2)
    assert costs[0] <= 2 * math.log2(1_000) + 2
    assert costs[1] <= 2 * math.log2(100_000) + 2


@pytest.mark.parametrize("lateness", [0, 400])
def test_trees_of_many_keys_follow_late_slices_and_keys_that_come_and_go(lateness: int) -> None:
    """Late tuples land in slices, between slices and before all of a key; keys fall silent and return."""
    aggregates = {"n": a.count(), "x": a.sum("v"), "low": a.min("v"), "most": a.max("v"), "mean": a.mean("f")}
    query = mt.windows(x=w.sliding(300, every=2), y=w.tumbling(50), z=w.session(9))
    shape = query.aggregate(**aggregates).by("k").on("t", allowed_lateness=lateness)
    ops = [shape.operator(store=store) for store in ("flatfat", "lazy")]
    rng = np.random.default_rng(lateness)
    for now in range(0, 3_000, 60):
        keys = rng.integers(now // 20, now // 20 + 40, 80) % 90
        times = now + rng.integers(-350 if lateness else 0, 60, 80)
        values = rng.integers(-(2**55), 2**55, 80)
        rows = {"t": times, "k": keys, "v": values, "f": values / 7}
        results = []
        for op in ops:
            op.process(pa.table(rows))
            results.append(op.advance(now + 20))
        left, right = (sorted(map(str, r.to_pylist())) for r in results)
        assert left == right
    assert ops[0]._engine.state.combiner(ops[0]._engine.plan).nbytes > 0


def test_a_planned_walk_counts_what_a_watermark_needs() -> None:
    """A session over the slices of short windows: the plan does not know how many it has."""
    slices = 40_000
    query = mt.windows(short=w.tumbling(1), visit=w.session(5)).aggregate(x=a.sum("v"))
    query = query.on("t", early=mt.each_batch())
    assert query.explain(schema=pa.schema([("t", pa.int64()), ("v", pa.int64())])).plan.store == "lazy"
    op, lazy = query.operator(), query.operator(store="lazy")
    costs, before = [], 0
    for done, now in pairwise([0, slices, *range(slices + 1, slices + 13)]):
        rows, expected = (each.process(ticks(done, now)).to_pylist()[-3:] for each in (op, lazy))
        assert rows == expected
        costs.append((combines(op) - before) / 2)
        before = combines(op)
    assert costs[1] >= slices - 10, "one walk costs less than to compare all slices once"
    assert max(costs[-4:]) <= 4 * math.log2(slices), "many walks do not"


def test_sums_beyond_the_room_of_a_tree_name_their_window() -> None:
    op = sliding(4, {"x": a.sum("v")}).operator(store="flatfat")
    op.process({"t": [0, 1, 2, 3], "v": [2**63 - 1] * 4})
    with pytest.raises(DataError, match="overflows"):
        op.advance(4)


WORDS = a.aggregate("v", lift=str, combine=lambda p, q: p + q, commutative=False, name="words")


@pytest.mark.parametrize("store", [s for s in STORES if s != "prefix"])
def test_slices_are_combined_in_their_order(store: str) -> None:
    op = sliding(50, {"words": WORDS}).operator(in_order=True, store=store)
    rows = [row for n in (1, 170, 29) for row in op.process(ticks(*span(op, n))).to_pylist()]
    for row in rows:
        start, end = row["window"]["start"], row["window"]["end"]
        assert row["words"] == "".join(str(7 * t % 101) for t in range(max(0, start), end))
    assert len(rows) == 199


def span(op: Any, n: int) -> tuple[int, int]:
    done = op.stats().tuples
    return done, done + n


@pytest.mark.parametrize("store", STORES)
def test_a_store_forgets_the_slices_of_a_step_that_was_taken_back(store: str) -> None:
    op = sliding(10, {"total": a.sum("v")}).operator(in_order=True, store=store)
    op.process({"t": list(range(20)), "v": [1] * 20})
    with pytest.raises(DataError, match="overflow"):
        op.process({"t": [20, 21, 22], "v": [2**63 - 1, 1, 1]})
    # The same times and as many tuples, so slices that look the same but for what is in them.
    rows = op.process({"t": [20, 21, 22], "v": [5, 1, 1]}).to_pylist()
    assert [row["total"] for row in rows] == [10, 14, 14]


@pytest.mark.parametrize("store", STORES)
def test_a_slice_that_begins_where_a_folded_one_did(store: str) -> None:
    windows = {"short": w.tumbling(3), "long": w.tumbling(100)}
    op = mt.windows(**windows).aggregate(total=a.sum("v")).on("t").operator(store=store)
    op.process({"t": [0, 4, 8], "v": [1, 2, 3]})
    op.advance(9)
    op.stats()  # folds the slices that only the long window needs
    op.process({"t": [4], "v": [10]})  # too late for the short one
    assert [row["total"] for row in op.advance(100).to_pylist()] == [16]


def test_keys_that_come_and_go() -> None:
    query = mt.windows(x=w.sliding(5, every=1)).aggregate(most=a.max("v")).by("k").on("t")
    ops = [query.operator(store=store) for store in ("fiba", "daba", "lazy")]
    for t in range(0, 60, 3):
        keys = [f"{t}-{i}" for i in range(200)] + ["stays"]
        rows = {"t": [t] * len(keys), "k": keys, "v": list(range(len(keys)))}
        found = []
        for op in ops:
            op.process(rows)
            found.append(sorted(map(str, op.advance(t).to_pylist())))
        assert found[0] == found[2]
        assert found[1] == found[2]
    assert ops[0].stats().keys < 4_000, "the keys were renumbered on the way"


def test_a_finger_tree_forgets_what_it_does_not_need() -> None:
    op = sliding(50, {"most": a.max("v")}).operator(store="fiba")
    sizes = []
    for t in range(0, 3_000, 2):
        op.process(ticks(t, t + 2))
        op.advance(t + 2)
        sizes.append(op._engine.state.store.nbytes)
    assert max(sizes[750:]) <= 1.2 * max(sizes[:750])


def test_prefix_refuses_what_cannot_be_subtracted() -> None:
    message = r'store="prefix" needs .*without loss.*got "most", max\(v\); use store="flatfat"'
    with pytest.raises(QueryError, match=message):
        sliding(aggregates={"n": a.count(), "most": a.max("v")}).operator(store="prefix")
    op = sliding(aggregates={"total": a.sum("v")}).operator(store="prefix")
    with pytest.raises(QueryError, match=r'got "total", sum\(v\)'):
        op.process({"t": [1], "v": [0.1]})


def test_new_slices_find_a_place_between_old_ones() -> None:
    assert counterparts(np.array([1, 2, 2, 5]), np.array([2, 2, 2, 3, 5])).tolist() == [1, 2, -1, -1, 3]
    found = places(np.array([0, APART, 2 * APART]), np.array([-1, 0, -1, -1, 2, -1]))
    assert found is not None
    assert (np.diff(found) > 0).all()
    assert found[[1, 4]].tolist() == [0, 2 * APART]
    assert places(np.array([5, 6]), np.array([0, -1, 1])) is None
