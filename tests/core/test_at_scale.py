"""Large tables of slices: where dropping, folding and merging work lazily, results stay the same.

The property tests draw streams of a few dozen tuples; here are thousands of keys and slices.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.windows.base import Window

WORKLOADS: dict[str, dict[str, Window]] = {
    "time": {"t": w.tumbling(50), "s": w.sliding(200, every=30), "c": w.cumulate(300, step=20)},
    "many slices": {"s": w.sliding(500, every=5), "gaps": w.sliding(7, every=40)},
    "sessions": {"s": w.session(5), "l": w.session(40), "t": w.tumbling(100)},
    "ranks": {
        "c": w.count(7),
        "o": w.count(30, every=4),
        "p": w.punctuation(mt.col("v") == 3),
        "t": w.tumbling(64),
    },
    "look back": {"l": w.last(5, every=60), "r": w.slide_by_tuple(40, every=3), "s": w.session(9)},
    "frames": {
        "h": w.threshold(mt.col("v") > 20),
        "d": w.delta("v", by=50),
        "u": w.until(a.sum("v"), 500),
        "c": w.session(6, max_length=60),
    },
    "endless": {"e": w.tumbling(300, emit_empty=True), "l": w.landmark(100, every=700)},
}


def stream(tuples: int, keys: int, disorder: int = 25) -> pa.Table:
    rng = np.random.default_rng(keys)
    times = np.sort(rng.integers(0, tuples // 4, tuples))
    times -= (rng.random(tuples) < 0.3) * rng.integers(0, disorder, tuples)
    return pa.table({"t": times, "k": rng.integers(0, keys, tuples), "v": rng.integers(-5, 100, tuples)})


def query(windows: dict[str, Window], lateness: int = 0) -> mt.Query:
    aggregates = {"n": a.count(), "total": a.sum("v"), "most": a.max("v")}
    return mt.windows(**windows).aggregate(**aggregates).by("k").on("t", allowed_lateness=lateness)


def play(shape: mt.Query, table: pa.Table, size: int, looking: bool) -> tuple[pa.Table, dict[str, int]]:
    """A watermark after every 2,500 tuples; in between, batches of this size."""
    op = shape.operator()
    parts = []
    for at in range(0, len(table), 2_500):
        part = table.slice(at, 2_500)
        parts += [op.process(part.slice(i, size)) for i in range(0, len(part), size)]
        parts.append(op.advance(int(part["t"].to_numpy().max()) - 10))
        if looking:
            op.stats()  # which folds
    rows = mt.Results.concat([*parts, op.finish()]).to_arrow()
    return rows.sort_by([(name, "ascending") for name in rows.column_names]), op.stats().late


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("lateness", [0, 60])
@pytest.mark.parametrize("keys", [1, 1_000])
def test_results_do_not_depend_on_batches_and_folding(workload: str, lateness: int, keys: int) -> None:
    shape, table = query(WORKLOADS[workload], lateness), stream(15_000, keys)
    expected, late = play(shape, table, 2_500, looking=False)
    assert len(expected)
    for size, looking in ((2_500, True), (700, False)):
        rows, late_too = play(shape, table, size, looking)
        assert rows.equals(expected)
        assert late_too == late


def recomputed(table: pa.Table, starts: np.ndarray, ends: np.ndarray, row: np.ndarray) -> pd.DataFrame:
    """The aggregates of each (key, start, end), where `row` says which tuple lies in which window."""
    frame = table.to_pandas().iloc[row].assign(start=starts, end=ends)
    found = frame.groupby(["k", "start", "end"])["v"].agg(["size", "sum", "max"]).reset_index()
    return found.set_axis(["k", "start", "end", "n", "total", "most"], axis=1)


def same_rows(results: mt.Results, expected: pd.DataFrame) -> None:
    named = results.to_pandas().rename(columns={"window_start": "start", "window_end": "end"})
    found = named[["k", "start", "end", "n", "total", "most"]]
    order = ["k", "start", "end"]
    left, right = (frame.sort_values(order, ignore_index=True) for frame in (found, expected))
    pd.testing.assert_frame_equal(left, right, check_dtype=False)


@pytest.mark.parametrize("store", ["lazy", "flatfat"])
@pytest.mark.parametrize("keys", [1, 500])
def test_sliding_windows_equal_a_recomputation(store: str, keys: int) -> None:
    table = stream(20_000, keys)
    op = query({"x": w.sliding(300, every=20)}).operator(store=store)
    results = [op.process(batch) for batch in table.to_batches(max_chunksize=3_000)]
    results = mt.Results.concat([*results, op.finish()])
    times = table["t"].to_numpy()
    each = 300 // 20
    starts = np.repeat(times // 20 * 20, each) - np.tile(np.arange(each) * 20, len(times))
    same_rows(results, recomputed(table, starts, starts + 300, np.repeat(np.arange(len(times)), each)))


@pytest.mark.parametrize("keys", [1, 500])
def test_sessions_equal_a_recomputation(keys: int) -> None:
    table = stream(20_000, keys)
    op = query({"x": w.session(8)}).operator()
    for batch in table.to_batches(max_chunksize=3_000):
        op.process(batch)
    frame = table.to_pandas().sort_values(["k", "t"], kind="stable")
    apart = (frame["k"].diff() != 0) | (frame["t"].diff() > 8)
    groups = frame.groupby(apart.cumsum())["t"]
    starts, ends = groups.transform("min").to_numpy(), groups.transform("max").to_numpy() + 8
    same_rows(op.finish(), recomputed(table, starts, ends, frame.index.to_numpy()))
