"""Empty and partial windows, and early results."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError

sys.path.insert(0, str(Path(__file__).parent))
from stepping import brief, feed, query  # beside this file, not installed

# Empty and partial windows. ----------------------------------------------------------------------


def test_empty_windows_between_the_first_and_the_last_tuple() -> None:
    shape = mt.windows(x=w.tumbling(10, emit_empty=True)).aggregate(
        n=a.count(), total=a.sum("t"), all=a.collect("t")
    )
    op = shape.by("k").on("t").operator()
    op.process({"t": [5, 35, 12], "k": ["a", "a", "b"]})
    rows = op.advance(30).to_pylist()
    assert [(r["k"], r["window"]["start"], r["n"]) for r in rows] == [
        ("a", 0, 1),
        ("a", 10, 0),
        ("b", 10, 1),
        ("a", 20, 0),
    ]
    empty = rows[1]
    assert (empty["total"], empty["all"]) == (None, [])
    op.process({"t": [52], "k": ["b"]})
    rows = op.finish().to_pylist()
    assert [(r["k"], r["window"]["start"], r["n"]) for r in rows] == [
        ("b", 20, 0),
        ("a", 30, 1),
        ("b", 30, 0),
        ("b", 40, 0),
        ("b", 50, 1),
    ]


def test_windows_without_tuples_are_silent_otherwise() -> None:
    op = query().operator()
    feed(op, 5, 35)
    assert brief(op.finish()) == [("x", 0, 10, 1), ("x", 30, 40, 1)]


def test_partial_count_windows_only_if_asked_and_only_at_the_end() -> None:
    windows = {"silent": w.count(3), "loud": w.count(3, emit_partial=True)}
    op = query(windows=windows).operator()
    feed(op, 1, 2, 3, 4, 5)
    assert sorted(brief(op.advance(10))) == [("loud", 1, 4, 3), ("silent", 1, 4, 3)]
    (row,) = op.finish().to_pylist()
    assert (row["window_name"], row["n"]) == ("loud", 2)
    assert row["window"] == {"start": 4, "end": 6, "start_rank": 3, "end_rank": 6}


# Early results. ----------------------------------------------------------------------------------


def test_early_results_after_each_batch_that_changed_a_window() -> None:
    op = query(early=mt.each_batch()).operator()
    assert feed(op, 1, 12) == [("x", 0, 10, 1, "early", 0), ("x", 10, 20, 1, "early", 0)]
    assert feed(op, 2) == [("x", 0, 10, 2, "early", 1)]
    assert feed(op) == []
    assert brief(op.process({"t": 13})) == [("x", 10, 20, 2, "early", 1)]
    assert brief(op.advance(10)) == [("x", 0, 10, 2, "final", 2)]
    assert brief(op.finish()) == [("x", 10, 20, 2, "final", 2)]


def test_early_results_when_the_watermark_passes_a_multiple_of_the_period() -> None:
    op = query(windows={"x": w.tumbling(100)}, early=mt.every(10)).operator()
    feed(op, 1)
    assert brief(op.advance(5)) == [("x", 0, 100, 1, "early", 0)]  # the first watermark passes many
    feed(op, 7)
    assert brief(op.advance(9)) == []
    assert brief(op.advance(10)) == [("x", 0, 100, 2, "early", 1)]
    assert brief(op.advance(25)) == []  # nothing changed
    feed(op, 30, 31)
    assert brief(op.advance(30)) == [("x", 0, 100, 4, "early", 2)]
    assert brief(op.advance(100)) == [("x", 0, 100, 4, "final", 3)]


def test_early_sessions_are_retracted_when_they_grow() -> None:
    op = query(windows={"s": w.session(5)}, early=mt.each_batch()).operator()
    assert feed(op, 1, 10) == [("s", 1, 6, 1, "early", 0), ("s", 10, 15, 1, "early", 0)]
    assert feed(op, 6) == [
        ("s", 1, 6, 1, "retract", 1),
        ("s", 10, 15, 1, "retract", 1),
        ("s", 1, 15, 3, "early", 0),
    ]
    assert brief(op.finish()) == [("s", 1, 15, 3, "final", 1)]


@pytest.mark.parametrize("lag", [None, 0])
def test_tuples_before_the_first_time_are_set_aside_as_well(lag: int | None) -> None:
    shape = mt.windows(x=w.tumbling(10)).aggregate(n=a.count())
    op = shape.on("t", bad="route").operator(watermark_lag=lag)
    op.process([{"t": None, "id": 0}])
    op.process([{"t": 3, "id": 1}, {"t": None, "id": 2}])
    assert op.finish()["n"].to_pylist() == [1]
    assert op.take_bad()["id"].to_pylist() == [0, 2]
    assert op.stats().bad == 2
    with pytest.raises(DataError, match=r'"t" needs a value in every tuple: got null in row 0, .*0}; repair'):
        shape.on("t").run([{"t": None, "id": 0}])


def test_early_results_of_a_stream_in_order() -> None:
    op = query(early=mt.each_batch()).operator(in_order=True)
    assert feed(op, 1, 2) == [("x", 0, 10, 2, "early", 0)]
    assert feed(op, 5, 12) == [
        ("x", 0, 10, 3, "early", 1),
        ("x", 10, 20, 1, "early", 0),
        ("x", 0, 10, 3, "final", 2),
    ]
