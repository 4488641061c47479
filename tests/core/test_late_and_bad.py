"""Tuples that come too late, and tuples that are bad: counted, routed, or an error."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError
from muntin.windows.base import Window

sys.path.insert(0, str(Path(__file__).parent))
from stepping import brief, feed, query  # beside this file, not installed

# Late tuples. ------------------------------------------------------------------------------------


LONG_AND_SHORT = {"long": w.tumbling(100), "short": w.tumbling(10), "s": w.session(5), "c": w.count(2)}


@pytest.mark.parametrize("late", ["drop", "route"])
def test_late_tuples_are_counted_per_window_and_routed_if_asked(late: str) -> None:
    op = query(windows=LONG_AND_SHORT, late=late).operator()
    feed(op, 1, 50)
    op.advance(40)
    feed(op, 3, 38, 45)
    assert op.stats().pending == 2
    op.advance(41)
    # 38 lies 12 before the session of 50, which lives; its own is over at 43. 3 is too late for all
    # but the long window.
    assert op.stats().late == {"long": 0, "short": 2, "s": 1, "c": 2}
    assert op.stats().pending == 0
    routed = op.take_late()
    expected = [(3, "short"), (38, "short"), (3, "s"), (3, "c"), (38, "c")]
    assert [(row["t"], row["window_name"]) for row in routed.to_pylist()] == (
        expected if late == "route" else []
    )
    assert op.take_late().num_rows == 0
    assert routed.column_names == ["t", "window_name"]
    assert next(row for row in brief(op.finish()) if row[0] == "long")[3] == 5


def test_late_tuples_come_out_whole() -> None:
    op = mt.windows(x=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t", late="route").operator()
    op.process({"t": [50], "k": ["a"], "other": ["kept"], "v": [1.5]})
    op.advance(40)
    op.process({"t": [3], "k": ["b"], "other": ["also kept"], "v": [None]})
    op.advance(41)
    assert op.take_late().to_pylist() == [
        {"t": 3, "k": "b", "other": "also kept", "v": None, "window_name": "x"}
    ]


def test_columns_that_no_query_reads_may_differ_among_late_and_bad_tuples() -> None:
    op = query(late="route", bad="route").operator()
    op.process({"t": [100], "v": [1]})
    op.advance(50)
    for extra in (
        {},
        {"x": ["text"]},
        {"x": [7]},
        {"x": [[1.5]]},
        {"v": [3]},
        {"y": [None]},
    ):
        op.process({"t": [1, None], "v": [1, 2]} | {name: [values[0]] * 2 for name, values in extra.items()})
    op.advance(60)
    late = op.take_late()
    assert late["x"].to_pylist() == [None, "text", "7", "[1.5]", None, None]
    assert late["v"].to_pylist() == [1, 1, 1, 1, 3, 1]
    assert late.column_names[-1] == "window_name"
    assert op.take_bad()["x"].to_pylist() == [None, "text", "7", "[1.5]", None, None]


def test_a_tuple_in_no_window_is_not_late() -> None:
    op = query(windows={"x": w.sliding(2, every=10), "b": w.fixed_band(0, 5)}, late="route").operator()
    op.advance(100)
    feed(op, 7, 105)
    op.advance(200)
    assert op.stats().late == {"x": 0, "b": 0}


def test_allowed_lateness_gives_updates_instead() -> None:
    op = query(allowed_lateness=15).operator()
    feed(op, 1)
    assert brief(op.advance(12)) == [("x", 0, 10, 1)]
    feed(op, 2)
    assert brief(op.advance(12)) == [("x", 0, 10, 2, "update", 1)]
    feed(op, 3)
    assert brief(op.advance(24)) == [("x", 0, 10, 3, "update", 2)]
    feed(op, 4)
    assert brief(op.advance(25)) == [("x", 0, 10, 4, "update", 3)]
    feed(op, 5)
    assert op.advance(26).num_rows == 0
    assert op.stats().late == {"x": 1}


# Bad tuples. -------------------------------------------------------------------------------------


MEASURED = {"x": w.tumbling(10), "m": w.tumbling(10, measure="m")}
GOOD = {"t": [1, 2], "m": [1.0, 2.0], "id": [0, 1]}
BAD = [
    ({"t": [3, None], "m": [3.0, 4.0], "id": [2, 3]}, 3),
    ({"t": [3, 4], "m": [None, 4.0], "id": [4, 5]}, 4),
    ({"t": [3, 4], "m": [float("nan"), 4.0], "id": [6, 7]}, 6),
    ({"t": [3, 4], "m": [3.0, float("inf")], "id": [8, 9]}, 9),
]


def test_bad_tuples_fail_before_anything_changes() -> None:
    op = query(windows=MEASURED).operator()
    op.process(GOOD)
    before = op.snapshot()
    for wrong, number in BAD:
        told = (
            rf'the column "(t|m)" (needs a value|must lie within).*: got (null|nan|inf) in row {number % 2}, '
            rf".*'id': {number}.*1 of 2 tuples are bad.*repair it, or choose bad=\"skip\" or bad=\"route\""
        )
        with pytest.raises(DataError, match=told):
            op.process(wrong)
        assert op.snapshot() == before
    op.process({"t": [3], "m": [3.0], "id": [9]})
    assert ("x", 0, 10, 3) in brief(op.finish())


@pytest.mark.parametrize("policy", ["skip", "route"])
def test_bad_tuples_are_left_out_counted_and_told(policy: str, caplog: pytest.LogCaptureFixture) -> None:
    op = query(windows=MEASURED, bad=policy).operator()
    op.process(GOOD)
    with caplog.at_level(logging.WARNING, "muntin"):
        for wrong, _ in BAD:
            op.process(wrong)
    assert len(caplog.records) == len(BAD)
    assert "1 bad tuples" in caplog.records[0].getMessage()
    assert "'id': 3" in caplog.records[0].getMessage()
    assert op.stats().bad == len(BAD)
    assert op.stats().tuples == 2 + len(BAD)
    routed = op.take_bad()
    assert [row["id"] for row in routed.to_pylist()] == ([row for _, row in BAD] if policy == "route" else [])
    assert op.take_bad().num_rows == 0
    assert ("x", 0, 10, 2 + len(BAD)) in brief(op.finish())


def test_times_out_of_range_are_bad_too() -> None:
    op = query(bad="route").operator()
    feed(op, 1, 2**62 + 1, -(2**62) - 1)
    assert op.take_bad()["t"].to_pylist() == [2**62 + 1, -(2**62) - 1]
    assert brief(op.finish()) == [("x", 0, 10, 1)]


def test_a_batch_of_bad_tuples_only() -> None:
    op = query(bad="skip").operator()
    assert feed(op, None, None) == []
    assert feed(op, 1) == []
    assert brief(op.finish()) == [("x", 0, 10, 1)]
    assert op.stats().bad == 2


@pytest.mark.parametrize(
    ("window", "column"),
    [
        (w.tumbling(5, measure="v"), ["a"]),
        (w.session(5, measure="v"), ["a"]),
        (w.delta("v", by=1), ["a"]),
        (w.boundary("v", step=1), [b"a"]),
        (w.until(a.sum("v"), 5), ["a"]),
        (w.punctuation("v"), [1]),
        (w.threshold("v"), [1.0]),
    ],
    ids=lambda value: value.describe() if isinstance(value, Window) else "",
)
def test_a_type_that_a_window_cannot_read_is_refused_at_the_door(window: Window, column: list[Any]) -> None:
    op = query(windows={"x": window}).operator()
    with pytest.raises(DataError, match=r"needs a (column of numbers|condition)"):
        op.process({"t": [1], "v": column})
    assert op.stats().tuples == 0
