"""Snapshots: restore continues exactly, and refuses whatever is not a whole snapshot of the query."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import SnapshotError
from muntin.slicing.snapshots.archive import pack, unpack
from muntin.windows.base import Window

WINDOWS = {
    "tumbling": w.tumbling(10),
    "sliding": w.sliding(20, every=7),
    "gaps": w.sliding(4, every=9),
    "empty": w.tumbling(5, emit_empty=True),
    "cumulate": w.cumulate(20, step=5),
    "band": w.fixed_band(30, 25),
    "landmark": w.landmark(0, every=25),
    "session": w.session(3),
    "capped": w.session(3, max_length=12),
    "count": w.count(6, every=4),
    "punctuation": w.punctuation(mt.col("v") == 5),
    "slide_by_tuple": w.slide_by_tuple(9, every=3),
    "last": w.last(4, every=10),
    "threshold": w.threshold(mt.col("v") > 3),
    "delta": w.delta("v", by=4),
    "boundary": w.boundary("v", step=4),
    "until": w.until(a.sum("v"), 30),
    "measured": w.tumbling(15, measure="m"),
    "measured_session": w.session(3, measure="m"),
}


def rows(n: int = 300) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    times = np.arange(n) + (np.arange(n) // 40) * 8 - rng.integers(0, 12, n)
    return [
        {"t": int(t), "k": "abc"[i % 3], "v": int(rng.integers(0, 10)), "m": i, "s": f"s{i}"}
        for i, t in enumerate(times)
    ]


def query(windows: dict[str, Window], **on: Any) -> Any:
    aggregates = {
        "n": a.count(),
        "mean": a.mean("v"),
        "first": a.first("s"),
        "top": a.arg_max("s", by="v"),
        "all": a.collect("v"),
        "middle": a.median("v"),
    }
    return mt.windows(**windows).aggregate(**aggregates).by("k").on("t", **on)


def drive(op: Operator, tuples: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """A watermark after every 60 tuples; in between, batches of this size."""
    results = []
    for part in (tuples[i : i + 60] for i in range(0, len(tuples), 60)):
        for i in range(0, len(part), size):
            results += op.process(part[i : i + size]).to_pylist()
        results += op.advance(part[-1]["t"] - 6).to_pylist()
    return results


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("options", [{}, {"allowed_lateness": 15}], ids=["strict", "late"])
def test_restoring_continues_exactly_and_in_other_batches(name: str, options: dict[str, Any]) -> None:
    tuples = rows()
    shape = query({"x": WINDOWS[name]}, late="route", **options)
    op = shape.operator()
    before = drive(op, tuples[:150], 60)
    op.process(tuples[150:173])  # some that wait for their watermark
    data = op.snapshot()
    expected = drive(op, tuples[173:], 60) + op.finish().to_pylist()
    for size in (1, 7, 60):
        again = Operator.restore(data)
        assert again.snapshot() == data
        assert drive(again, tuples[173:], size) + again.finish().to_pylist() == expected
        assert again.stats().late == op.stats().late
        assert again.stats().tuples == len(tuples)
    assert before or expected


def test_all_windows_together_continue_exactly() -> None:
    tuples = rows()
    op = query(WINDOWS, allowed_lateness=15).operator()
    drive(op, tuples[:160], 13)
    data = op.snapshot()
    again = Operator.restore(data)
    assert replace(again.stats(), state_bytes=0) == replace(op.stats(), state_bytes=0)
    assert again._engine.served.all[0].window == WINDOWS["tumbling"]
    assert drive(again, tuples[160:], 9) == drive(op, tuples[160:], 60)
    assert again.finish() == op.finish()


def test_floats_continue_to_the_last_bit_in_the_same_batches() -> None:
    tuples = [row | {"v": row["v"] / 3} for row in rows()]
    aggregates = {"total": a.sum("v"), "mean": a.mean("v"), "spread": a.stddev("v")}
    op = mt.windows(**WINDOWS).aggregate(**aggregates).by("k").on("t", allowed_lateness=15).operator()
    drive(op, tuples[:160], 20)
    again = Operator.restore(op.snapshot())
    assert drive(again, tuples[160:], 20) == drive(op, tuples[160:], 20)


@pytest.mark.parametrize("early", [mt.each_batch(), mt.every(10)], ids=str)
def test_early_results_continue_their_revisions(early: object) -> None:
    tuples = rows(180)
    op = query(WINDOWS, allowed_lateness=15, early=early).operator()
    drive(op, tuples[:60], 20)
    again = Operator.restore(op.snapshot())
    assert drive(again, tuples[60:], 20) == drive(op, tuples[60:], 20)


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.int8(),
        pa.float64(),
        pa.date32(),
        pa.timestamp("ns", "Asia/Tokyo"),
        pa.decimal128(12, 2),
    ],
    ids=str,
)
def test_keys_and_values_of_any_type_survive(kind: pa.DataType) -> None:
    values = pa.array([1, 2, None, 1], pa.int8() if kind == pa.int8() else pa.int32())
    keys = values.cast(pa.date32()).cast(kind) if pa.types.is_date(kind) else _as(values, kind)
    shape = (
        mt.windows(x=w.tumbling(10), s=w.session(2)).aggregate(last=a.last("k"), n=a.count()).by("k").on("t")
    )
    op = shape.operator()
    op.process({"t": [1, 2, 3, 4], "k": keys})
    again = Operator.restore(op.snapshot())
    for each in (op, again):
        each.process({"t": [5, 6, 7, 8], "k": keys})
    assert again.finish() == op.finish()


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return values.cast(pa.int64()).cast(kind)
    return values.cast(kind)


@pytest.mark.parametrize("positions", [(3.5, 4.5), (-1e18, -3.0), (-0.0, -3.0)], ids=str)
def test_frames_of_an_interpreted_aggregate_continue_on_floats(positions: tuple[float, float]) -> None:
    """A context holds the bits of the float; those of -0.0 are the least whole number of 64 bits."""
    query = mt.windows(x=w.until(a.median("v"), 7, measure="f")).aggregate(n=a.count()).on("t")
    op = query.operator()
    op.process([{"t": 1, "v": 1, "f": positions[0]}, {"t": 2, "v": 9, "f": positions[1]}])
    op.advance(1)
    again = Operator.restore(op.snapshot(), query).finish()
    assert again == op.finish()
    assert again["n"].to_pylist() == [2]


def test_timestamps_continue() -> None:
    shape = mt.windows(day=w.calendar("day", tz="Europe/Berlin"), s=w.session("1 hour")).aggregate(
        n=a.count()
    )
    op = shape.on("ts", allowed_lateness="2 days").operator()
    times = [dt.datetime(2024, 3, 30) + dt.timedelta(hours=7 * i) for i in range(20)]
    op.process({"ts": times[:12]})
    op.advance(times[8])
    again = Operator.restore(op.snapshot())
    for each in (op, again):
        each.process({"ts": times[6:]})
    assert again.advance(times[-1]) == op.advance(times[-1])
    assert again.finish() == op.finish()


def test_an_operator_that_has_seen_nothing() -> None:
    op = query(WINDOWS).operator()
    again = Operator.restore(op.snapshot())
    tuples = rows(120)
    assert drive(again, tuples, 60) == drive(op, tuples, 60)


def test_a_watermark_before_any_tuple_survives() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t", late="route").operator()
    op.advance(50)
    again = Operator.restore(op.snapshot())
    assert again.watermark == 50
    again.process({"t": [20, 60]})
    assert again.finish()["n"].to_pylist() == [1]
    assert again.take_late()["t"].to_pylist() == [20]


def test_a_finished_operator_stays_finished() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1]})
    op.finish()
    again = Operator.restore(op.snapshot())
    assert again.finish().num_rows == 0


def test_buffered_records_are_in_it() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
    for t in range(7):
        op.process({"t": t})
    assert Operator.restore(op.snapshot()).finish()["n"].to_pylist() == [7]


def test_an_in_order_operator_stays_in_order() -> None:
    op = mt.windows(x=w.tumbling(10), c=w.count(3)).aggregate(n=a.count()).on("t").operator(in_order=True)
    op.process({"t": [1, 4, 12]})
    again = Operator.restore(op.snapshot())
    with pytest.raises(mt.errors.DataError, match="declared in order"):
        again.process({"t": [11]})
    assert again.process({"t": [12, 25]}) == op.process({"t": [12, 25]})


def test_watermarks_go_on_from_the_data() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").operator(watermark_lag=5)
    op.process({"t": [1, 12]})
    again = Operator.restore(op.snapshot())
    assert again.process({"t": [15]})["n"].to_pylist() == [1]


def test_late_and_bad_outputs_survive() -> None:
    shape = mt.windows(x=w.tumbling(10), y=w.tumbling(40)).aggregate(n=a.count())
    op = shape.on("t", late="route", bad="route").operator()
    op.process({"t": [5, None, 35], "id": [0, 1, 2]})
    op.advance(30)
    op.process({"t": [6, None], "id": [3, 4]})
    waiting = Operator.restore(op.snapshot())  # tuple 3 waits to be judged
    for each in (op, waiting):
        each.advance(31)
    judged = Operator.restore(waiting.snapshot())
    assert judged.stats().late == op.stats().late == {"x": 1, "y": 0}
    assert judged.stats().bad == 2
    assert (
        judged.take_late().to_pylist()
        == op.take_late().to_pylist()
        == [{"t": 6, "id": 3, "window_name": "x"}]
    )
    assert judged.take_bad().to_pylist() == op.take_bad().to_pylist()
    assert [row["id"] for row in waiting.take_bad().to_pylist()] == [1, 4]


def test_queries_added_on_the_fly_are_in_it() -> None:
    tuples = rows()
    op = query({"x": w.tumbling(10)}, allowed_lateness=15).operator()
    drive(op, tuples[:120], 60)
    since = op.add(s=w.session(3), c=w.count(5), five=w.tumbling(5), l=w.last(3, every=10)).since
    op.remove("x")
    drive(op, tuples[120:180], 60)
    again = Operator.restore(op.snapshot())
    assert {q.name: q.since for q in again._engine.served.all} == since
    assert drive(again, tuples[180:], 11) == drive(op, tuples[180:], 60)
    assert again.finish() == op.finish()


# The user's code. --------------------------------------------------------------------------------


class Pairs(w.ForwardContextFree):
    """Two tuples each."""

    columns = ("v",)

    def observe(self, state: Any, record: w.Record) -> tuple[Any, int, int]:
        state = (state or 0) + 1
        return state, state % 2, int(state % 2 and state > 1)


def longest(x: str, y: str) -> str:
    return max(x, y, key=len)


def coded() -> Any:
    shape = mt.windows(pairs=Pairs(), t=w.tumbling(10))
    return shape.aggregate(x=a.aggregate("s", lift=str, combine=longest, type=pa.string())).by("k").on("t")


def test_a_query_with_functions_must_be_given_again() -> None:
    tuples = rows()
    op = coded().operator()
    drive(op, tuples[:120], 60)
    data = op.snapshot()
    with pytest.raises(SnapshotError, match=r"Python functions.*restore\(data, query\).*pairs: Pairs"):
        Operator.restore(data)
    again = Operator.restore(data, coded())
    assert drive(again, tuples[120:], 7) == drive(op, tuples[120:], 60)
    assert again.finish() == op.finish()


class Odd(Pairs):
    """Its state is nothing that can be written."""

    def observe(self, state: Any, record: w.Record) -> tuple[Any, int, int]:
        return object(), 1, 1


def test_records_have_the_columns_that_they_had() -> None:
    # A column that came later is none of them, here and after the snapshot.
    seen: list[list[str]] = []

    def evens(record: Any) -> tuple[int, int]:
        seen.append(sorted(record))
        return (1, 0) if record["v"] % 2 == 0 else (0, 1)

    shape = mt.windows(x=w.discretize(evens)).aggregate(n=a.count()).on("t")
    op = shape.operator()
    op.process({"t": [1, 2], "v": [2, 3]})
    op.process({"t": [3, 4], "v": [2, 2], "later": [1, 1]})
    restored = Operator.restore(op.snapshot(), shape)
    assert restored.advance(100) == op.advance(100)
    assert {tuple(names) for names in seen} == {("t", "v")}


def test_a_state_that_cannot_be_written_says_so() -> None:
    op = mt.windows(x=Odd()).aggregate(n=a.count()).on("t").operator()
    op.process({"t": [1, 2], "v": [1, 2]})
    op.advance(3)
    with pytest.raises(SnapshotError, match="use numbers, text"):
        op.snapshot()


# What is in the bytes. ---------------------------------------------------------------------------


def test_nothing_is_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    op = query(WINDOWS, allowed_lateness=15, late="route").operator()
    drive(op, rows(120), 60)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("pickled")

    for name in ("dumps", "dump", "loads", "load", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    data = op.snapshot()
    Operator.restore(data)
    assert b"\x80\x04\x95" not in data  # how a pickle begins


@pytest.mark.parametrize(
    ("aggregates", "each"),
    [({"n": a.count()}, 8), ({"mean": a.mean("v")}, 24), ({"spread": a.stddev("v")}, 32)],
    ids=["count", "mean", "stddev"],
)
def test_a_slice_takes_no_more_bytes_than_its_columns(aggregates: dict[str, Any], each: int) -> None:
    slices = 20_000
    op = mt.windows(x=w.tumbling(10)).aggregate(**aggregates).on("t").operator()
    op.process({"t": np.arange(slices) * 10, "v": np.arange(slices)})
    # Eight columns of 8 bytes (key, first, last, n, fresh, mark, rank, level) and the partials.
    assert len(op.snapshot()) <= slices * (8 * 8 + each) + 8192


def test_tables_in_a_snapshot_are_aligned() -> None:
    # Arrow warns of numbers that are not, and may read them slowly.
    table = pa.table({"b": [True] * 3, "s": ["x", None, "yz"], "n": [1, 2, None], "f": [0.5, 1.5, 2.5]})
    for length in range(16):
        _, tables = unpack(pack({"h": "x" * length}, {"one": table.slice(1), "two": table}))
        found = [b for t in tables.values() for c in t.columns for b in c.chunk(0).buffers() if b is not None]
        assert {buffer.address % 8 for buffer in found} == {0}


def test_a_small_state_is_a_small_snapshot() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
    op.process({"t": np.arange(100_000)})
    op.advance(99_995)
    assert len(op.snapshot()) <= 8192


def test_taking_a_snapshot_changes_nothing() -> None:
    tuples = rows()
    op, other = (query(WINDOWS, allowed_lateness=15).operator() for _ in range(2))
    for i in range(0, 240, 60):
        assert drive(op, tuples[i : i + 60], 30) == drive(other, tuples[i : i + 60], 30)
        assert op.snapshot() == op.snapshot()
