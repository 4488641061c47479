"""The compiled small step gives what the general route gives, bit for bit, on random streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.slicing import step as steps
from muntin.slicing.numeric_step import numeric_results
from muntin.windows.base import Window

AGGREGATES = {
    "n": a.count(),
    "total": a.sum("i"),
    "mean": a.mean("i"),
    "low": a.min("f"),
    "high": a.max("i"),
    "float": a.sum("f"),
}


@contextmanager
def route(compiled: bool, watermarks: bool = False) -> Iterator[list[bool]]:
    """Steps by the compiled route where it can, or none; the list gets for each step whether it could.

    Steps without tuples, which only move the watermark, are counted with `watermarks` alone.
    """
    took: list[bool] = []

    def watched(plan: Any, state: Any, batch: Any, *arguments: Any) -> Any:
        table = numeric_results(plan, state, batch, *arguments) if compiled else None
        if (batch is None) == watermarks:
            took.append(table is not None)
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "numeric_results", watched)
        yield took


def play(query: Any, batches: list[pa.RecordBatch], watermarks: list[int]) -> tuple[list[pa.Table], Any]:
    operator = query.operator()
    results = []
    for batch, watermark in zip(batches, watermarks, strict=True):
        results += [operator.process(batch), operator.advance(watermark)]
    results.append(operator.finish())
    return results, operator.stats()


def compare(query: Any, batches: list[pa.RecordBatch], watermarks: list[int]) -> list[bool]:
    """Both routes give the same results step by step; which steps the compiled one could make."""
    with route(compiled=True) as took:
        found, stats = play(query, batches, watermarks)
    with route(compiled=False):
        expected, plain = play(query, batches, watermarks)
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one == other, (i, one.to_pylist(), other.to_pylist())
    assert (stats.windows, stats.late, stats.slices) == (plain.windows, plain.late, plain.slices)
    return took


def stream(
    rng: np.random.Generator, steps: int, size: int, spread: int, keys: int, pause: int, odd: bool
) -> tuple[list[pa.RecordBatch], list[int]]:
    """Batches whose tuples are up to `spread` behind the newest one, with pauses between some batches.

    `odd`: some batches have nulls, and some have values whose sums overflow.
    """
    now, batches, watermarks = 0, [], []
    for _ in range(steps):
        now += int(rng.integers(0, pause + 1)) if pause else 0
        rows = int(rng.integers(1, size + 1))
        time = now + np.sort(rng.integers(0, 3 * rows, rows))
        now = int(time[-1])
        time = time - (rng.integers(0, spread + 1, rows) if spread else 0)
        values = (
            rng.integers(-(2**62), 2**62, rows) if odd and rng.random() < 0.1 else rng.integers(-50, 50, rows)
        )
        mask = rng.random(rows) < 0.2 if odd and rng.random() < 0.2 else None
        columns = {
            "t": time,
            "i": pa.array(values, mask=mask),
            "f": rng.normal(size=rows).round(3),
            "k": pa.array(rng.integers(0, keys, rows)),
        }
        batches.append(pa.record_batch(columns))
        watermarks.append(now - spread + int(rng.integers(-3, 2)))
    return batches, watermarks


@given(
    seed=st.integers(0, 2**32 - 1),
    windows=st.dictionaries(
        st.sampled_from(["a", "b", "c", "z"]),
        st.one_of(
            st.integers(1, 60).map(w.tumbling),
            st.tuples(st.integers(1, 80), st.integers(1, 40)).map(lambda pair: w.sliding(*pair)),
        ),
    ),
    gap=st.none() | st.integers(1, 30),
    second=st.booleans(),
    names=st.sets(st.sampled_from(sorted(AGGREGATES)), min_size=1),
    keys=st.sampled_from([0, 1, 2, 7, 40]),
    size=st.sampled_from([1, 5, 40, 300, 20_000]),
    spread=st.sampled_from([0, 0, 3, 50]),
    pause=st.sampled_from([0, 20, 200]),
    odd=st.booleans(),
)
def test_both_routes_agree(
    seed: int,
    windows: dict[str, Window],
    gap: int | None,
    second: bool,
    names: set[str],
    keys: int,
    size: int,
    spread: int,
    pause: int,
    odd: bool,
) -> None:
    if gap is not None or not windows:
        gap = 9 if gap is None else gap
        windows = windows | {"m": w.session(gap)} | ({"o": w.session(gap + 5)} if second else {})
    query = mt.windows(**windows).aggregate(**{name: AGGREGATES[name] for name in sorted(names)})
    query = (query.by("k") if keys else query).on("t", on_error="skip")  # sums that overflow are null
    rng = np.random.default_rng(seed)
    compare(query, *stream(rng, 12, size, spread, max(keys, 1), pause, odd))


@pytest.mark.parametrize("keys", [0, 3])
@pytest.mark.parametrize("spread", [0, 40])
@pytest.mark.parametrize("gap", [None, 8])
def test_small_steps_take_the_compiled_route(keys: int, spread: int, gap: int | None) -> None:
    windows = {"t": w.tumbling(10), "s": w.sliding(40, 20)} | ({} if gap is None else {"m": w.session(gap)})
    query = mt.windows(**windows).aggregate(n=a.count(), total=a.sum("i"), low=a.min("f"))
    query = (query.by("k") if keys else query).on("t")
    batches, watermarks = stream(np.random.default_rng(7), 30, 50, spread, max(keys, 1), 30, odd=False)
    took = compare(query, batches, [mark - 5 for mark in watermarks])
    assert sum(took) > len(took) * 3 // 4


def test_float_sums_out_of_order_take_the_general_route() -> None:
    query = mt.windows(t=w.tumbling(10)).aggregate(total=a.sum("f")).on("t")
    batches, watermarks = stream(np.random.default_rng(7), 30, 50, 40, 1, 0, odd=False)
    assert not any(compare(query, batches, [mark - 5 for mark in watermarks]))


@pytest.mark.parametrize("keys", [0, 3])
@pytest.mark.parametrize("gap", [None, 8])
def test_watermarks_without_tuples_take_the_compiled_route(keys: int, gap: int | None) -> None:
    windows = {"t": w.tumbling(10), "s": w.sliding(40, 20)} | ({} if gap is None else {"m": w.session(gap)})
    query = mt.windows(**windows).aggregate(n=a.count(), total=a.sum("i"), low=a.min("f"))
    query = (query.by("k") if keys else query).on("t")
    (batch, *_), _ = stream(np.random.default_rng(3), 1, 2_000, 0, max(keys, 1), 0, odd=False)
    newest = int(batch["t"].to_numpy().max())
    tables = []
    for compiled in (True, False):
        with route(compiled, watermarks=True) as took:
            operator = query.operator()
            operator.process(batch)
            operator.flush()
            results = [operator.advance(mark) for mark in range(0, newest, 97)]
            tables.append([result.to_pylist() for result in results])
        assert all(took[1:]) if compiled else not any(took)
    assert sum(map(len, tables[0])) > 100
    assert tables[0] == tables[1]


def test_results_are_made_when_they_are_looked_at_and_stay_what_they_were() -> None:
    query = mt.windows(t=w.tumbling(10)).aggregate(n=a.count(), total=a.sum("i")).by("k").on("t")
    operator = query.operator()
    values = np.arange(5)
    batch = pa.record_batch({"t": values, "i": values, "k": values % 2})
    operator.process(batch)
    operator.advance(1)  # the general route makes the first table
    operator.process(pa.record_batch({"t": values + 5, "i": values, "k": values % 2}))
    results = operator.advance(10)
    assert callable(results._source)
    assert len(results) == 2
    assert callable(results._source)  # their number is known without them
    for begin in range(10, 40_000, 4_000):  # new keys, of which most are forgotten later
        times = np.arange(begin, begin + 4_000)
        operator.process(pa.record_batch({"t": times, "i": times, "k": times}))
        operator.advance(begin + 4_000)
    values[:] = -1  # memory of the input is the caller's
    assert [(row["k"], row["n"], row["total"]) for row in results] == [(0, 6, 12), (1, 4, 8)]
    assert isinstance(results._source, pa.Table)


def test_a_sum_that_overflows_fails_in_the_step_whether_or_not_results_are_looked_at() -> None:
    query = mt.windows(t=w.tumbling(10)).aggregate(total=a.sum("i"), mean=a.mean("i")).on("t")
    operator = query.operator()
    operator.process(pa.record_batch({"t": [1, 2], "i": [2**62, 1]}))
    operator.advance(3)
    operator.process(pa.record_batch({"t": [4, 11], "i": [2**62, 7]}))
    for _ in range(2):  # the state stays as it was
        with pytest.raises(mt.MuntinError, match="overflow"):
            operator.advance(10)
    average = mt.windows(t=w.tumbling(10)).aggregate(mean=a.mean("i")).on("t").operator()
    average.process(pa.record_batch({"t": [1, 2], "i": [2**62, 2**62]}))
    average.advance(3)
    assert average.advance(10)["mean"].to_pylist() == [2.0**62]


def test_sums_that_overflow_in_a_session_are_the_same_error() -> None:
    query = mt.windows(t=w.tumbling(1), m=w.session(100)).aggregate(total=a.sum("i")).on("t")
    batch = pa.record_batch({"t": [3, 1, 2], "i": [2**62, 2**62, 5]})
    for compiled in (True, False):
        with route(compiled):
            operator = query.operator()
            assert len(operator.process(batch)) == 0
            assert len(operator.advance(50)) == 3
            with pytest.raises(mt.MuntinError, match="overflow"):
                operator.advance(500)
