"""Memory on an endless stream: bounded by what the queries imply, not by how long the stream runs.

The stream has KEYS keys with one tuple per unit of time each. A tenth of the tuples come up to 20
units late, and every 500 units lie 10 without a tuple. The watermark follows LAG units behind.
So the tuples that may still change are those of the last `span` = allowed lateness + LAG + 1 units.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.windows.base import Window

KEYS, LAG, STEP = 4, 25, 2_500
"""Keys, lag of the watermark, and units of time from one watermark to the next."""


def stream(batches: int, step: int = STEP, keys: int = KEYS) -> Iterator[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    for number in range(batches):
        unit = np.repeat(np.arange(number * step, (number + 1) * step), keys)
        at = unit + (unit // 500) * 10
        back = rng.integers(0, 21, len(at)) * (rng.random(len(at)) < 0.1)
        yield {
            "t": np.maximum(at - back, 0),
            "k": np.tile(np.arange(keys), step),
            "v": rng.integers(0, 100, len(at)),
            "m": at,
        }


@dataclass(frozen=True)
class Case:
    """A window, the slices and kept tuples per key that it implies for a span, and how much to run."""

    window: Window
    slices: Callable[[int], float]
    tuples: Callable[[int], float] = lambda span: 0
    batches: int = 16
    step: int = STEP

    def __str__(self) -> str:
        return self.window.describe()


def all_of(span: int) -> float:
    """Every tuple that may still change."""
    return span


def looking_back(tuples: int, step: int = STEP) -> Callable[[int], float]:
    """Also those that a window may reach back to, in whole slices: at most one from each watermark on."""
    return lambda span: span + tuples + step


class Shifts(w.ContextFree):
    """Windows of 40 and 60 units in turn."""

    def next_edge(self, time: int) -> int:
        return time - time % 100 + (40 if time % 100 < 40 else 100)

    def containing(self, time: int) -> list[tuple[int, int]]:
        base = time - time % 100
        return [(base, base + 40) if time % 100 < 40 else (base + 40, base + 100)]


class Tens(w.ForwardContextFree):
    """Ten tuples each."""

    columns = ("v",)

    def observe(self, state: Any, record: w.Record) -> tuple[Any, int, int]:
        seen = state or 0
        return (seen + 1) % 10, int(seen == 0), int(seen == 0 and record.rank > 0)


class Peaks(w.ForwardContextAware):
    """Each tuple of a high value, with the four before it."""

    columns = ("v",)

    def observe(self, state: Any, record: w.Record) -> tuple[Any, list[tuple[int, int]]]:
        return None, [(max(0, record.rank - 4), record.rank + 1)] if record["v"] > 95 else []

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 4)


CASES = [
    Case(w.tumbling(100), lambda span: span / 100 + 2),
    Case(w.tumbling(100, offset=7), lambda span: span / 100 + 2),
    Case(w.tumbling(100, emit_empty=True), lambda span: span / 100 + 2),
    Case(w.sliding(100, every=10), lambda span: (span + 100) / 10 + 2),
    Case(w.sliding(100, every=30), lambda span: 2 * (span + 100) / 30 + 2),
    Case(w.sliding(10, every=100), lambda span: 2 * (span / 100 + 1)),
    Case(w.cumulate(100, step=20), lambda span: (span + 100) / 20 + 2),
    Case(w.cumulate(100, step=20, emit_empty=True), lambda span: (span + 100) / 20 + 2),
    Case(w.fixed_band(1_000, 50_000), lambda span: span / 50_000 + 2),
    Case(w.landmark(0, every=1_000), lambda span: span / 1_000 + 3),
    Case(w.session(3), lambda span: span / 4 + 2),
    Case(w.session(3, max_length=50), lambda span: span / 4 + span / 50 + 3, all_of),
    Case(w.count(100), lambda span: span / 100 + 3, all_of),
    Case(w.count(100, every=10), lambda span: (span + 100) / 10 + 3, all_of),
    Case(w.punctuation(mt.col("v") == 7), lambda span: span / 10 + 5, all_of),
    Case(w.slide_by_tuple(50, every=5), lambda span: 2 * (span + 50) / 5 + 4, looking_back(50)),
    Case(w.last(20, every=50), lambda span: 2 * span / 50 + 5, looking_back(20)),
    Case(w.threshold(mt.col("v") > 50), lambda span: span + 3, all_of),
    Case(w.delta("v", by=40), lambda span: span + 3, all_of),
    Case(w.boundary("v", step=50), lambda span: span + 3, all_of),
    Case(w.until(a.sum("v"), 1_000), lambda span: span / 10 + 3, all_of),
    Case(w.tumbling(100, measure="m"), lambda span: span / 100 + 4, all_of),
    Case(w.sliding(100, every=50, measure="m"), lambda span: (span + 100) / 50 + 4, all_of),
    Case(w.cumulate(100, step=20, measure="m"), lambda span: (span + 100) / 20 + 4, all_of),
    Case(w.session(3, measure="m"), lambda span: span / 4 + 4, all_of),
    Case(w.session(3, max_length=50, measure="m"), lambda span: span / 4 + span / 50 + 4, all_of),
    Case(w.threshold(mt.col("v") > 50, measure="m"), lambda span: span + 3, all_of),
    Case(Shifts(), lambda span: 2 * span / 100 + 3, batches=8, step=1_000),
    Case(Tens(), lambda span: span / 10 + 4, all_of, batches=8, step=250),
    Case(Peaks(), lambda span: span / 5 + 8, looking_back(4, step=250), batches=8, step=250),
    Case(
        w.discretize(lambda record: (1, 1) if record["v"] == 7 else (0, 0)),
        lambda span: span / 10 + 5,
        all_of,
        batches=8,
        step=250,
    ),
    Case(
        w.trigger(lambda buffer: buffer[-1]["v"] == 7, lambda buffer: max(0, len(buffer) - 10)),
        lambda span: span / 10 + 8,
        looking_back(10, step=250),
        batches=8,
        step=250,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("lateness", [0, 200])
def test_every_window_is_bounded(case: Case, lateness: int) -> None:
    query = mt.windows(x=case.window).aggregate(n=a.count(), total=a.sum("v"))
    op = query.by("k").on("t", allowed_lateness=lateness).operator()
    span = lateness + LAG + 1
    slices, tuples = (int(KEYS * bound(span)) for bound in (case.slices, case.tuples))
    # 8 columns of 8 bytes and three partials of 8 to 16 bytes make a slice; a window that may be
    # retracted costs about twice that and lies over at least one slice; contexts are per key.
    size = 256 * slices + 64 * tuples + 2048 * KEYS
    seen = []
    for number, batch in enumerate(stream(case.batches, case.step), 1):
        op.process(batch)
        op.advance(int(batch["m"][-1]) - LAG)
        if 2 * number >= case.batches and number % (case.batches // 4) == 0:
            stats = op.stats()
            assert stats.slices <= slices
            assert stats.kept_tuples <= tuples
            assert stats.state_bytes <= size
            seen.append(stats.state_bytes)
    assert op.stats().tuples == case.batches * case.step * KEYS
    assert len(seen) == 3
    assert seen[-1] <= 2 * seen[0] + 1024


def test_calendar_windows_are_bounded() -> None:
    hour = 3_600_000_000
    windows = {"day": w.calendar("day", tz="Europe/Berlin"), "month": w.calendar("month", tz="UTC")}
    op = mt.windows(**windows).aggregate(n=a.count()).on("ts", allowed_lateness="3 days").operator()
    for year in range(20):
        hours = np.arange(year * 8_766, (year + 1) * 8_766) * hour
        op.process({"ts": pa.array(hours, pa.timestamp("us"))})
        op.advance(np.datetime64(int(hours[-1]), "us"))
        stats = op.stats()
        # Days of the last three, and of the months that these days lie in.
        assert stats.slices <= 2 * 3 + 4
        assert stats.state_bytes <= 4096


@pytest.mark.parametrize("early", [mt.each_batch(), mt.every(50)], ids=str)
@pytest.mark.parametrize("lateness", [0, 200])
def test_early_results_are_remembered_only_while_they_may_change(early: object, lateness: int) -> None:
    windows = {"t": w.tumbling(100), "s": w.session(3), "c": w.count(100)}
    query = mt.windows(**windows).aggregate(n=a.count()).by("k")
    op = query.on("t", allowed_lateness=lateness, early=early).operator()
    sizes = []
    for batch in stream(12):
        op.process(batch)
        op.advance(int(batch["m"][-1]) - LAG)
        sizes.append(op.stats().state_bytes)
    span = lateness + LAG + 1
    assert max(sizes) <= KEYS * (1024 * (span / 4 + span / 100 + 8) + 2048)
    assert max(sizes[6:]) <= 1.5 * max(sizes[:6])


def test_three_million_tuples() -> None:
    query = mt.windows(
        short=w.tumbling(1_000), smooth=w.sliding(10_000, every=500), visit=w.session(3), hundred=w.count(100)
    )
    op = query.aggregate(total=a.sum("v"), spread=a.stddev("v")).on("t", allowed_lateness=2_000).operator()
    seen = []
    for batch in stream(30, step=100_000, keys=1):
        op.process(batch)
        op.advance(int(batch["t"].max()) - LAG)
        seen.append(op.stats())
    span = 2_000 + LAG + 1
    assert seen[-1].tuples == 3_000_000
    for stats in seen:
        assert stats.slices <= (span + 10_000) / 500 + 2 + span / 4 + span / 100 + 3
        assert stats.kept_tuples <= span
    assert seen[-1].state_bytes <= 1.2 * seen[14].state_bytes


# Windows that never end, beside others. ----------------------------------------------------------


@pytest.mark.parametrize(
    "endless",
    [
        w.session(20),
        w.session(20, max_length=10**9),
        w.landmark(0, every=10_000),
        w.punctuation(mt.col("v") == 777),
        w.threshold(mt.col("v") >= 0),
        w.delta("v", by=1_000),
        w.boundary("v", step=1_000),
        w.until(a.count(), 10**9),
        w.count(10**9, emit_partial=True),
        w.tumbling(10**9),
        w.tumbling(10**9, measure="m"),
        w.session(100, measure="m"),
    ],
    ids=lambda window: window.describe(),
)
@pytest.mark.parametrize("lateness", [0, 200])
def test_a_window_that_never_ends_folds_into_one_partial(endless: Window, lateness: int) -> None:
    query = mt.windows(endless=endless, short=w.tumbling(50)).aggregate(n=a.count(), total=a.sum("v"))
    op = query.on("t", allowed_lateness=lateness).operator()
    total = 0
    for batch in stream(20, step=5_000, keys=1):
        total += int(batch["v"].sum())
        op.process(batch)
        op.advance(int(batch["m"][-1]) - LAG)
        stats = op.stats()
        # One partial for all that is over, an edge every 50 units of the span, and where tuples are
        # kept one more where the final ones end.
        assert stats.slices <= 1 + (lateness + LAG) // 50 + 3
        assert stats.kept_tuples <= lateness + LAG + 1
    row = next(row for row in reversed(op.finish().to_pylist()) if row["window_name"] == "endless")
    assert (row["n"], row["total"]) == (100_000, total)


@pytest.mark.parametrize(
    "window", [w.landmark(0, every=10), w.tumbling(10), w.cumulate(20, step=10), w.session(5)], ids=str
)
def test_a_batch_costs_the_same_however_old_the_stream_is(window: Window) -> None:
    peaks = []
    for age in (10**4, 10**9):
        op = mt.windows(x=window, y=w.landmark(0, every=10**9)).aggregate(n=a.count()).on("t").operator()
        op.process({"t": [5]})
        tracemalloc.start()
        try:
            op.process({"t": np.arange(age, age + 1_000)})
            op.process({"t": np.arange(age, age + 1_000)})
            op.add(z=w.tumbling(3))
            op.stats()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] <= 2 * peaks[0] + 65_536


# Keys that come and go. --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "lateness"),
    [
        ({"t": w.tumbling(100)}, 0),
        ({"t": w.tumbling(100), "s": w.session(5), "b": w.sliding(100, every=25)}, 500),
        ({"s": w.session(5, max_length=50), "u": w.until(a.count(), 10)}, 0),
        ({"s": w.session(5, max_length=50), "r": w.threshold(mt.col("v") < 5)}, 500),
    ],
    ids=["tumbling", "on time", "tuple-driven", "tuple-driven and late"],
)
def test_a_hundred_thousand_keys_that_come_and_go(windows: dict[str, Window], lateness: int) -> None:
    """Each key has 10 tuples in 10 units of time, one key after the other."""
    op = mt.windows(**windows).aggregate(n=a.count()).by("k").on("t", allowed_lateness=lateness).operator()
    keys, each = 100_000, 4_000
    rows, sizes = 0, []
    for first in range(0, keys, each):
        t = np.arange(10 * first, 10 * (first + each))
        op.process({"t": t, "k": np.char.add("key", (t // 10).astype(str)), "v": t % 10})
        rows += op.advance(int(t[-1]) - LAG).num_rows
        sizes.append(op.stats())
    # A key is needed as long as one of its windows: up to 100 units and the lateness behind the watermark.
    alive = (lateness + LAG + 100) / 10 + 2
    for stats in sizes:
        assert stats.slices <= 4 * alive
        assert stats.keys <= max(1024, 2 * alive) + each
        assert stats.state_bytes <= 2048 * alive + 128 * stats.keys
    assert sizes[-1].keys <= sizes[len(sizes) // 2].keys + 1024
    rows += op.finish().num_rows
    first = np.arange(keys) * 10
    sliding = int(((first + 9) // 25 - (first - 100) // 25).sum())
    assert rows == sum(sliding if name == "b" else keys for name in windows)


@pytest.mark.parametrize("lateness", [0, 50])
@pytest.mark.parametrize(
    ("window", "slices", "tuples"),
    [
        (w.slide_by_tuple(10, every=1), 0, 0),
        (w.slide_by_tuple(10, every=3), 0, 0),
        (w.session(5, max_length=9), 0, 0),
        (w.count(7), 1, 0),  # 6 of 7
        (w.count(5), 0, 0),
        (w.count(10, every=2), 4, 0),  # every open window has tuples of its own
        (w.last(3, every=5_000), 1, 3),  # they come out again and again
        (w.punctuation(mt.col("v") == 7), 1, 0),
        (w.threshold(mt.col("v") > 10), 1, 0),
        (w.delta("v", by=5), 1, 0),
        (w.boundary("v", step=8), 1, 0),
        (w.until(a.count(), 7), 1, 0),
        (w.tumbling(8, measure="v"), 1, 0),
        (w.cumulate(8, step=2, measure="v"), 1, 0),
        (w.session(5, measure="v"), 1, 0),
        (Tens(), 1, 0),
        (Peaks(), 2, 4),
    ],
    ids=lambda value: value.describe() if isinstance(value, Window) else str(value),
)
def test_of_silent_keys_only_open_windows_are_left(
    window: Window, slices: int, tuples: int, lateness: int
) -> None:
    """Each key has 20 tuples, of values 0 to 19, and is silent ever after."""
    query = mt.windows(x=window).aggregate(total=a.sum("v")).by("k").on("t", allowed_lateness=lateness)
    op = query.operator()
    for first in range(0, 1_000, 500):
        t = np.arange(first, first + 500)
        op.process({"t": t, "k": t // 20, "v": t % 20})
        op.advance(first + 500)
    op.advance(10_000)
    stats = op.stats()
    assert stats.slices <= 50 * slices
    assert stats.kept_tuples <= 50 * tuples


def test_keys_of_ranges_behind_every_tuple_are_forgotten() -> None:
    op = mt.windows(x=w.slide_by_tuple(10, every=1)).aggregate(n=a.count()).by("k").on("t").operator()
    for first in range(0, 100_000, 4_000):
        t = np.arange(first, first + 4_000)
        op.process({"t": t, "k": t // 4})
        op.advance(first + 4_000)
    assert op.stats().keys <= 1024 + 2_000


# What the process really holds. ------------------------------------------------------------------


def test_nothing_leaks_beside_what_the_operator_reports() -> None:
    windows = {"t": w.tumbling(100), "s": w.session(3), "c": w.count(50, every=5), "l": w.last(9, every=20)}
    query = mt.windows(**windows).aggregate(total=a.sum("v"), top=a.arg_max("v", by="m"), all=a.collect("v"))
    op = query.by("k").on("t", allowed_lateness=100, early=mt.every(1_000)).operator()

    def held() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()

    batches = stream(30, step=1_000)
    tracemalloc.start()
    try:
        sizes = []
        for number, batch in enumerate(batches, 1):
            op.process(batch)
            op.advance(int(batch["m"][-1]) - LAG)
            if number % 10 == 0:
                del batch
                sizes.append(held())
    finally:
        tracemalloc.stop()
    assert sizes[2] - sizes[1] <= 64 * 1024, sizes
