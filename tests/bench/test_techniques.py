"""The window techniques of the papers give the sums that Muntin gives, whatever the batches."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.baselines.any_order import AnyOrder
from benchmarks.baselines.slice_techniques import Cutty, Pairs, Panes
from benchmarks.baselines.technique import Technique
from benchmarks.baselines.tuple_techniques import AggregateBuckets, AggregateTree, TupleBuckets, TupleBuffer
from muntin import aggregates as a
from muntin.dsl import windows
from muntin.windows import session, sliding

ALL = (TupleBuffer, TupleBuckets, AggregateBuckets, AggregateTree, Panes, Pairs, Cutty)
WHOLE = [(10, 10), (60, 4), (12, 6), (7, 7)]
BROKEN = [(10, 4), (9, 2), (5, 3), (100, 30), (3, 5)]


def cases() -> list[tuple[type[Technique], list[tuple[int, int]]]]:
    whole = [(technique, WHOLE) for technique in ALL]
    return whole + [(technique, BROKEN) for technique in ALL if technique is not Cutty]


@pytest.mark.parametrize("batch", [1, 37, 1_000])
@pytest.mark.parametrize(("technique", "asked"), cases())
def test_sums_are_those_of_the_engine(
    technique: type[Technique], asked: list[tuple[int, int]], batch: int
) -> None:
    rng = np.random.default_rng(3)
    time = np.cumsum(rng.integers(0, 3, 300)) + 5 + np.where(np.arange(300) > 150, 400, 0)
    value = rng.integers(1, 100, 300)
    asked = [one for one in asked if one[0] % one[1] == 0 or technique is not Cutty]
    found: dict[tuple[int, int], int] = {}
    one = technique(asked)
    for i in range(0, 300, batch):
        parts = one.process(time[i : i + batch], value[i : i + batch])
        found |= {(q, s): t for q, s, t in zip(parts.query, parts.start, parts.total, strict=True)}
    parts = one.finish()
    found |= {(q, s): t for q, s, t in zip(parts.query, parts.start, parts.total, strict=True)}
    named = {f"w{i}": sliding(length, slide) for i, (length, slide) in enumerate(asked)}
    results = windows(**named).aggregate(total=a.sum("v")).on("t").run({"t": time, "v": value})
    wanted = {
        (int(row["window_name"][1:]), row["window"]["start"]): row["total"] for row in results.to_pylist()
    }
    assert {key: total for key, total in found.items() if total} == wanted
    assert one.combines > 0


def test_cutty_tells_what_it_cannot_cut() -> None:
    with pytest.raises(ValueError, match="multiple of slide here: got 10 and 4"):
        Cutty([(10, 4)])


@pytest.mark.parametrize("lag", [0, 8])
@pytest.mark.parametrize("batch", [1, 37, 1_000])
@pytest.mark.parametrize("technique", ALL[:4])
def test_late_tuples_and_sessions_give_the_sums_of_the_engine(
    technique: type[AnyOrder], batch: int, lag: int
) -> None:
    rng = np.random.default_rng(5)
    time = np.cumsum(rng.integers(0, 4, 300)) - 20
    time = time - np.where(rng.random(300) < 0.3, rng.integers(0, lag + 1, 300), 0)
    value, periodic, gaps = rng.integers(1, 100, 300), [(10, 10), (9, 2)], [2, 3, 50]
    one = technique(periodic, gaps, lag)
    steps = [one.process(time[i : i + batch], value[i : i + batch]) for i in range(0, 300, batch)]
    found = [row for t in [*steps, one.finish()] for row in zip(t.query, t.start, t.total, strict=True)]
    named = {f"w{i}": sliding(*window) for i, window in enumerate(periodic)}
    named |= {f"w{i}": session(gap) for i, gap in enumerate(gaps, len(periodic))}
    results = windows(**named).aggregate(total=a.sum("v")).on("t").run({"t": time, "v": value}).to_pylist()
    wanted = [(int(row["window_name"][1:]), row["window"]["start"], row["total"]) for row in results]
    assert sorted(row for row in found if row[2]) == sorted(wanted)
    assert len([row for row in wanted if row[0] == 2]) > 10


def test_windows_end_when_the_watermark_has_passed_them() -> None:
    buffer = TupleBuffer([(10, 10)], gaps=[3], lag=5)
    assert buffer.process(np.array([1, 14]), np.array([1, 2])).start.tolist() == [1]  # 1 + 3 < 14 - 5
    assert buffer.process(np.array([9, 15]), np.array([4, 8])).total.tolist() == [5]
    ended = buffer.finish()
    assert (ended.query.tolist(), ended.total.tolist()) == ([0, 1, 1], [10, 4, 10])


def test_only_the_buffer_counts_tuples() -> None:
    buffer = TupleBuffer([], lag=4, counts=[2])
    assert buffer.process(np.array([5, 9, 5]), np.array([1, 2, 4])).total.tolist() == []
    assert buffer.process(np.array([6, 12]), np.array([8, 16])).total.tolist() == [5]
    assert buffer.finish().total.tolist() == [10]  # the last one is alone


def test_tuples_that_no_window_needs_are_forgotten() -> None:
    buffer = TupleBuffer([(10, 10)], gaps=[3], lag=5)
    for i in range(50):
        buffer.process(np.array([20 * i, 20 * i + 1]), np.array([1, 1]))
    assert len(buffer._kept.time) == 2
    assert buffer._kept.evicted == 98
