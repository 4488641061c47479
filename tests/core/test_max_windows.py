"""Windows with tuples: a step that would emit far too many is refused before they take memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError
from muntin.slicing import window_limit

YEAR = 31_536_000


def query(window: Any, **policies: Any) -> mt.Query:
    return mt.windows(x=window).aggregate(n=a.count()).on("t", **policies)


MANY = {
    "sliding": w.sliding(2_000, every=1),
    "offset": w.sliding(2_000, every=1, offset=3),
    "empty": w.sliding(2_000, every=1, emit_empty=True),
    "cumulate": w.cumulate(2_000, step=1),
    "empty cumulate": w.cumulate(2_000, step=1, emit_empty=True),
    "sliding on a measure": w.sliding(2_000, every=1, measure="t"),
    "cumulate on a measure": w.cumulate(2_000, step=1, measure="t"),
}
TIMED = [name for name in MANY if "measure" not in name]
KEYS = list(range(20))


def keyed(window: Any, **policies: Any) -> mt.Query:
    return mt.windows(x=window).aggregate(n=a.count()).by("k").on("t", **policies)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_limit, "MOST", 10_000)
    monkeypatch.setattr(window_limit, "PER_INPUT", 100)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MANY)
def test_a_few_tuples_with_very_many_windows_are_refused(name: str, threads: int) -> None:
    batch = {"t": [0] * 20, "k": KEYS}
    with pytest.raises(
        DataError, match=r'"x" \(.*2000.*\) would emit 40,000; the newest tuple is at 0.*max_w'
    ):
        keyed(MANY[name]).run(batch, threads=threads)
    assert keyed(MANY[name], max_windows=40_000).run(batch, threads=threads).num_rows == 40_000
    with pytest.raises(DataError, match="more than 39,999 windows"):
        keyed(MANY[name], max_windows=39_999).run(batch, threads=threads)


@pytest.mark.parametrize("name", TIMED)
def test_nothing_happened_and_smaller_steps_bring_them_all(name: str) -> None:
    batch = {"t": [0] * 20 + [500], "k": [*KEYS, 3]}
    op, other = (keyed(MANY[name]).operator() for _ in range(2))
    for part in (op, other):
        part.process(batch)
    for step in (lambda: op.advance(5_000), op.finish):
        with pytest.raises(DataError, match="in smaller steps"):
            step()
    assert op.snapshot() == other.snapshot()
    found = [row for time in range(0, 3_000, 400) for row in op.advance(time).to_pylist()]
    found += op.finish().to_pylist()
    assert found == keyed(MANY[name], max_windows=10**6).run(batch).to_pylist()


@pytest.mark.parametrize("name", ["sliding on a measure", "cumulate on a measure"])
def test_on_a_measure_a_stream_goes_on_without_the_window(name: str) -> None:
    query = mt.windows(x=MANY[name], ten=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t")
    op = query.operator()
    op.process({"t": [0] * 20, "k": KEYS})
    op.process({"t": [9_000] * 20, "k": KEYS})
    with pytest.raises(DataError, match="would emit"):
        op.advance(10_000)
    op.remove("x")
    assert op.advance(10_000).num_rows == 40


def test_measured_windows_are_counted_exactly() -> None:
    rng = np.random.default_rng(7)
    for _ in range(30):
        length, every = int(rng.integers(1, 60)), int(rng.integers(1, 60))
        step = int(rng.integers(1, 6))
        for window in (
            w.sliding(length, every=every, measure="m"),
            w.cumulate(step * int(rng.integers(1, 20)), step=step, measure="m"),
        ):
            counted = _counts(window, rng)
            assert counted


def _counts(window: Any, rng: np.random.Generator) -> bool:
    from muntin.windows.tuple_driven import Tuples

    contexts = window.initial(3)
    rank, at = np.zeros(3, np.int64), rng.integers(-50, 50, 3)
    for closing in (False, False, False, True):
        sizes = rng.integers(0, 4, 3)
        parts = [int(at[k]) + np.cumsum(rng.integers(0, 80, sizes[k])) for k in range(3)]
        values = np.concatenate(parts).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        ranks = np.concatenate([rank[k] + np.arange(sizes[k]) for k in range(3)]).astype(np.int64)
        tuples = Tuples.of(values.tolist(), m=values.tolist())
        tuples.offsets, tuples.rank = offsets, ranks
        number = window.count(contexts.copy(), tuples, closing)
        if number != len(window.cut(contexts, tuples, 10**6, closing=closing)):
            return False
        rank = rank + sizes
        at = np.array([part[-1] if len(part) else now for part, now in zip(parts, at, strict=True)])
    return True


@pytest.mark.parametrize("name", TIMED)
def test_early_results_are_refused_as_well(name: str) -> None:
    op = keyed(MANY[name], early=mt.each_batch()).operator()
    assert op.process({"t": [0], "k": [0]}).num_rows == 2_000
    with pytest.raises(DataError, match=r"would emit (40,000|39,960)"):
        op.process({"t": [2] * 20, "k": KEYS})
    assert op.process({"t": [1], "k": [1]}).num_rows > 1_990


@pytest.mark.parametrize("name", ["sliding", "cumulate"])
def test_updates_after_late_tuples_are_refused_as_well(name: str) -> None:
    op = keyed(MANY[name], allowed_lateness=5_000).operator()
    op.process({"t": [0] * 20, "k": KEYS})
    for time in range(0, 2_400, 400):
        op.advance(time)
    op.process({"t": [1] * 20, "k": KEYS})
    with pytest.raises(DataError, match=r"would emit (39,980|40,000)"):
        op.advance(2_001)


def test_much_input_may_bring_many_windows() -> None:
    """The limit follows the input: 60 windows for each tuple are no flood, however many tuples there are."""
    times = np.arange(0, 3_000_000, 100)
    found = query(w.sliding(100 * 60, every=100)).run({"t": times})
    assert found.num_rows == len(times) + 59
    many = keyed(w.sliding(60, every=1))
    assert many.run({"t": times, "k": times}).num_rows == 60 * len(times)


def test_portions_and_threads_are_counted_as_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    from muntin.slicing.emission import intermediate_watermarks
    from muntin.slicing.parallel import steps

    monkeypatch.setattr(intermediate_watermarks, "WINDOWS_PER_STEP", 1_000)
    monkeypatch.setattr(intermediate_watermarks, "LEAST_SLICES", 10)
    monkeypatch.setattr(steps, "LEAST_TUPLES", 100)
    monkeypatch.setattr(steps, "LEAST_SLICES", 10)
    times = np.arange(0, 400_000, 1_000)
    for threads in (1, 2):
        for keys in (np.arange(400) % 7, np.zeros(400, np.int64)):
            data = {"t": times, "k": keys}
            with pytest.raises(DataError, match="more than 100,000 windows"):
                keyed(w.sliding(1_000, every=1), max_windows=100_000).run(data, threads=threads)
            everything = keyed(w.sliding(1_000, every=1), max_windows=400_000)
            assert everything.run(data, threads=threads).num_rows == 400_000


def test_a_window_that_tuples_share_counts_once() -> None:
    times = list(range(100))
    assert query(w.sliding(2_000, every=1), max_windows=2_099).run({"t": times}).num_rows == 2_099
    with pytest.raises(DataError, match="would emit 2,099"):
        query(w.sliding(2_000, every=1), max_windows=2_098).run({"t": times})


def test_a_year_of_seconds_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for window in (w.sliding(YEAR, every=1), w.cumulate(YEAR, step=1)):
        with pytest.raises(QueryError, match="hold each tuple"):
            query(window)
        wide = keyed(window, max_windows=YEAR)
        op = wide.operator()
        op.process({"t": [0, 0], "k": [1, 2]})
        tracemalloc.start()
        with pytest.raises(DataError, match="would emit 63,072,000"):
            op.finish()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 50_000_000
        assert op.advance(10).num_rows == 20


def test_a_window_added_on_the_fly_is_refused_as_well() -> None:
    op = query(w.tumbling(10)).operator()
    op.process({"t": [1]})
    with pytest.raises(QueryError, match="of which 31,536,000 hold each tuple"):
        op.add(year=w.sliding(YEAR, every=1))
    assert op.finish().num_rows == 1


def test_explain_says_the_limit() -> None:
    assert "windows in a step: at most 10,000,000 of each name, or 1,000" in str(
        query(w.tumbling(1)).explain(verbose=True)
    )
    given = query(w.tumbling(1), max_windows=5_000).explain(verbose=True)
    assert "windows in a step: at most 5,000 of each name, as max_windows says" in str(given)


def test_the_order_of_calls_does_not_matter() -> None:
    year = mt.windows(x=w.sliding(YEAR, every=1)).aggregate(n=a.count())
    assert year.on("t", max_windows=YEAR).by("k").max_windows == YEAR
    assert year.by("k").on("t", max_windows=np.int64(YEAR)).max_windows == YEAR  # type: ignore[arg-type]


def test_a_far_watermark_ends() -> None:
    op = query(w.sliding(2**50, every=1), max_windows=2**50).operator()
    op.process({"t": [0]})
    assert op.advance(100).num_rows == 100
    op = query(w.sliding(2**50, every=2**30), max_windows=2**20).operator()
    op.process({"t": [0]})
    assert op.advance(2**61).num_rows == 2**20


class Crowd(w.ContextFree):
    """More windows around each time than a list in memory can hold."""

    def next_edge(self, time: int) -> int:
        return time + 1

    def containing(self, time: int) -> Any:
        return ((start, time + 1) for start in range(time, time - 10**12, -1))


def test_windows_of_ones_own_are_limited() -> None:
    with pytest.raises(mt.MuntinError, match="at most 1,000,000 windows"):
        query(Crowd()).run({"t": [1]})
    with pytest.raises(mt.MuntinError, match="at most 1,000,000 windows"):
        query(w.discretize(lambda record: (10**12, 0))).run({"t": [1]})


def test_a_stuck_stream_goes_on_with_another_limit() -> None:
    query = mt.windows(near=w.sliding(1_000, every=1)).aggregate(n=a.count())
    op = query.on("t", max_windows=1_500).operator()
    op.process({"t": [0, 2_000]})
    with pytest.raises(mt.MuntinError, match="must not emit more than 1,500 windows"):
        op.finish()
    op = mt.Operator.restore(op.snapshot(), query.on("t", max_windows=5_000))
    assert op.finish().num_rows == 2_000
