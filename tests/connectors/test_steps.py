"""Steps of a key group: ties, silence, routed tuples, changes of the windows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark.query_changes import to_toml
from muntin.slicing.window_changes import Change

sys.path.insert(0, str(Path(__file__).parent))
from key_group import KeyGroup  # beside this file, not installed

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])


def query(window: Any, **policies: Any) -> mt.Query:
    return mt.windows(q=window).aggregate(all=a.collect("v")).on("t", **policies)


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (row["window_name"], row["window"]["start"], row["window"]["end"], row["all"], row["kind"])
        for row in rows
    ]


@pytest.mark.parametrize(
    "window",
    [w.punctuation(mt.col("v") == 99), w.threshold(mt.col("v") < 50)],
    ids=["punctuation", "threshold"],
)
def test_no_window_comes_out_twice_where_a_tie_at_the_watermark_goes_before_its_edge(window: Any) -> None:
    group = KeyGroup(query(window), SCHEMA)
    first = group.step([(1, 1), (5, 2), (10, 99)], arrival=[7, 3, 100], watermark=10)
    first += group.step([(10, 3), (12, 4)], arrival=[50, 1], watermark=11)
    assert shown(first) == [("q", 1, 10, [1, 2, 3], "final")]


def test_a_silent_stream_closes_its_windows_by_the_clock() -> None:
    group = KeyGroup(query(w.tumbling(10), idle_after="30 seconds"), SCHEMA)
    second = 1_000_000
    assert group.step([(1, 1), (5, 2)]) == []
    # The first heartbeat after tuples: they came no earlier than the one before.
    assert group.step(clock=100 * second) == []
    assert group.step(clock=129 * second) == []
    assert shown(group.step(clock=130 * second)) == [("q", 0, 10, [1, 2], "final")]
    assert group.step(clock=131 * second) == []
    # A tuple that is heard with a heartbeat begins the silence anew.
    assert group.step([(12, 3)], clock=140 * second) == []
    assert group.step(clock=169 * second) == []
    assert shown(group.step(clock=170 * second)) == [("q", 10, 20, [3], "final")]


def test_late_tuples_come_as_rows_of_their_own() -> None:
    group = KeyGroup(query(w.tumbling(10), late="route"), SCHEMA)
    group.step([(1, 1), (25, 2)], watermark=20)
    (row,) = group.step([(3, 7)], watermark=21)
    assert (row["kind"], row["window_name"], row["late"]) == ("late", "q", {"t": 3, "v": 7})
    assert row["window"] is None
    assert row["all"] is None
    assert group.step(watermark=22) == []


@pytest.mark.parametrize("window", [w.tumbling(10), w.count(2)], ids=["sliced before", "sliced behind"])
def test_bad_tuples_come_as_rows_of_their_own(window: Any) -> None:
    group = KeyGroup(query(window, bad="route"), SCHEMA)
    (row,) = group.step([(1, 1), (None, 2)])
    assert (row["kind"], row["bad"]["v"]) == ("bad", 2)
    assert "needs a value" in row["bad"]["reason"]
    assert group.load().operator.state.metrics.bad == 1


@pytest.mark.parametrize("window", [w.tumbling(10), w.count(2)], ids=["sliced before", "sliced behind"])
def test_skipped_tuples_are_counted(window: Any) -> None:
    group = KeyGroup(query(window, bad="skip"), SCHEMA)
    group.step([(1, 1), (None, 2)])
    group.step([(None, 2), (None, 3)])
    assert group.load().operator.state.metrics.bad == 3


def change(add: dict[str, Any] | None = None, remove: tuple[str, ...] = (), name: str = "1.toml") -> str:
    return f"{name}\n{to_toml(Change(add or {}, remove=remove))}"


def test_a_change_is_remembered_by_the_state() -> None:
    group = KeyGroup(query(w.tumbling(10)), SCHEMA)
    group.step([(1, 1), (12, 2)], watermark=0)
    assert group.step(changes=(change({"five": w.tumbling(5)}),)) == []
    rows = group.step([(13, 3), (16, 4), (41, 5)], watermark=40)
    # 12 is the newest tuple before the change, so [10, 15) is not whole.
    assert shown(rows) == [
        ("q", 0, 10, [1], "final"),
        ("q", 10, 20, [2, 3, 4], "final"),
        ("five", 15, 20, [4], "final"),
    ]
    group.step(changes=(change(remove=("q",)),))
    assert shown(group.step([(52, 6)], watermark=60)) == [
        ("five", 40, 45, [5], "final"),
        ("five", 50, 55, [6], "final"),
    ]


def test_changes_of_one_step_are_applied_in_the_order_of_their_names() -> None:
    group = KeyGroup(query(w.tumbling(10)), SCHEMA)
    first = change({"five": w.tumbling(5)}, name="1.toml")
    second = change({"q": w.tumbling(20)}, remove=("q", "five"), name="2.toml")
    group.step(changes=(second, first))
    stored = group.load()
    assert [(q.name, q.window) for q in stored.operator.served.all] == [("q", w.tumbling(20))]
    assert stored.refused == 0


@pytest.mark.parametrize(
    "text",
    [
        "1.toml\nthis is not TOML",
        change(remove=("nobody",)),
        change(remove=("q",)),
        change({"q": w.tumbling(5)}),
        change({"km": w.tumbling(5, measure="v")}),
        change({"other": w.delta("nothing", by=1)}),
        change({"other": w.tumbling("1 second")}),
        '1.toml\n[windows.x]\ntype = "tumbling"\n',
        "1.toml\nremove = 3",
        "1.toml\nadd = []",
    ],
)
def test_a_change_that_makes_no_sense_is_refused_and_stops_nothing(text: str) -> None:
    group = KeyGroup(query(w.tumbling(10)), SCHEMA)
    group.step([(1, 1)])
    assert shown(group.step([(2, 2)], changes=(text,), watermark=10)) == [("q", 0, 10, [1, 2], "final")]
    stored = group.load()
    assert stored.refused == 1
    assert [q.name for q in stored.operator.served.all] == ["q"]


@pytest.mark.parametrize("window", [w.tumbling(10), w.count(4)], ids=["sliced before", "sliced behind"])
def test_tuples_of_one_time_are_in_the_order_of_their_places(window: Any) -> None:
    group = KeyGroup(query(window), SCHEMA)
    group.step([(1, 5), (1, 3), (1, 9)], arrival=[2, 0, 3])
    assert shown(group.step([(1, 1)], arrival=[1], watermark=11))[0][3] == [3, 1, 5, 9]
