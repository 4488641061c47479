"""One tuple or watermark far ahead: an error instead of a row for each second until then."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError
from muntin.slicing import window_limit
from muntin.windows import user


class Tens(w.ContextFree):
    """Tumbling windows of ten, in Python."""

    emit_empty = True

    def next_edge(self, time: int) -> int:
        return time - time % 10 + 10

    def containing(self, time: int) -> list[tuple[int, int]]:
        return [(time - time % 10, time - time % 10 + 10)]


FILLING = {
    "tumbling": w.tumbling(1, emit_empty=True),
    "sliding": w.sliding(5, every=1, emit_empty=True),
    "cumulate": w.cumulate(60, step=1, emit_empty=True),
    "landmark": w.landmark(0, every=1),
    "empty landmark": w.landmark(10**9, every=1, emit_empty=True),
    "last": w.last(3, every=1),
    "own": Tens(),
}
FAR = 10**11
TOO_MANY = r"must not .* more than (10,000,000|1,000) .* in smaller steps"


@pytest.fixture(autouse=True)
def _fewer_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user, "MOST_EDGES", 1_000)


def query(window: Any, **policies: Any) -> mt.Query:
    return mt.windows(x=window).aggregate(n=a.count()).on("t", **policies)


@pytest.mark.parametrize("name", FILLING)
def test_a_tuple_far_ahead_is_refused_at_the_end(name: str) -> None:
    with pytest.raises(DataError, match=TOO_MANY):
        query(FILLING[name]).run({"t": [1, 2, FAR]})


@pytest.mark.parametrize("name", FILLING)
@pytest.mark.parametrize("options", [{"in_order": True}, {"watermark_lag": 2}], ids=str)
def test_where_tuples_move_the_watermark_its_batch_leaves_no_trace(name: str, options: Any) -> None:
    op, other = (query(FILLING[name]).operator(**options) for _ in range(2))
    for part in (op, other):
        part.process({"t": [1, 5, 30]})
    with pytest.raises(DataError, match=TOO_MANY):
        op.process({"t": [31, FAR]})
    assert op.snapshot() == other.snapshot()
    assert op.process({"t": [40, 50]}) == other.process({"t": [40, 50]})
    assert op.finish() == other.finish()


@pytest.mark.parametrize("name", sorted(set(FILLING) - {"own"}))
def test_smaller_steps_bring_them_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_limit, "MOST", 500)
    monkeypatch.setattr(window_limit, "PER_INPUT", 1)
    window = FILLING[name] if name != "empty landmark" else w.landmark(700, every=1, emit_empty=True)
    op = query(window).operator()
    op.process({"t": [1, 2000]})
    with pytest.raises(DataError, match="more than 500 windows"):
        op.advance(2000)
    found = [row for time in range(0, 2001, 400) for row in op.advance(time).to_pylist()]
    found += op.finish().to_pylist()
    monkeypatch.undo()
    assert found == query(window).run({"t": [1, 2000]}).to_pylist()


@pytest.mark.parametrize("window", [w.landmark(0, every=1), w.last(2, every=1)], ids=["landmark", "last"])
def test_a_watermark_far_ahead_is_refused(window: Any) -> None:
    op = query(window).operator()
    op.process({"t": [1, 2]})
    with pytest.raises(DataError, match=TOO_MANY):
        op.advance(FAR)
    assert op.advance(3).num_rows == 2


@pytest.mark.parametrize("window", [w.landmark(0, every=1), w.last(2, every=1)], ids=["landmark", "last"])
def test_early_results_far_ahead_are_refused(window: Any) -> None:
    op = query(window, early=mt.each_batch()).operator()
    before = op.process({"t": [1, 2]}).num_rows
    assert before
    with pytest.raises(DataError, match=TOO_MANY):
        op.process({"t": [FAR]})
    assert op.process({"t": [3]}).num_rows


def test_the_error_names_the_query_and_the_time() -> None:
    shape = mt.windows(second=w.tumbling("1 second", emit_empty=True)).aggregate(n=a.count()).on("t")
    with pytest.raises(DataError, match=r'"second" \(tumbling 1 second.*31,622,401.*2025-01-01T00:00:00'):
        shape.run({"t": [dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)]})


def test_many_keys_with_a_few_empty_windows_each_are_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_limit, "MOST", 100)
    monkeypatch.setattr(window_limit, "PER_INPUT", 20)
    shape = mt.windows(x=w.tumbling(1, emit_empty=True)).aggregate(n=a.count()).by("k").on("t")
    keys = list(range(50))
    assert shape.run({"t": [0] * 50 + [9] * 50, "k": keys + keys}).num_rows == 500
    with pytest.raises(DataError, match="would emit 1,550"):
        shape.run({"t": [0] * 50 + [30] * 50, "k": keys + keys})


@pytest.mark.parametrize("name", sorted(set(FILLING) - {"own"}))
@pytest.mark.parametrize("before", [None, -FAR, 0])
def test_a_watermark_long_before_the_first_tuple_floods_nothing(name: str, before: int | None) -> None:
    op = query(FILLING[name]).operator()
    if before is not None:
        op.advance(before)
    op.process({"t": [FAR, FAR + 100]})
    if before is not None:
        op.advance(before + 1)
    assert 0 < op.advance(FAR + 50).num_rows <= 500
    assert op.finish().num_rows <= 500


def test_keys_that_came_late_count_from_their_first_tuple(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_limit, "MOST", 1_000)
    monkeypatch.setattr(window_limit, "PER_INPUT", 1)
    for window in (w.landmark(0, every=1), w.last(2, every=1)):
        shape = mt.windows(x=window).aggregate(n=a.count()).by("k").on("t")
        op = shape.operator()
        op.process({"t": [1, *[495] * 50], "k": range(51)})
        assert op.advance(500).num_rows == 499 + 50 * 5


class Held(Tens):
    """Only with tuples."""

    emit_empty = False


def test_windows_of_ones_own_that_hold_tuples_may_be_many() -> None:
    times = [*range(0, 50_000, 10), FAR]
    assert query(Held()).run({"t": times}).num_rows == len(times)
