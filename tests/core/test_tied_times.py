"""Windows between tuples of one time: what a user sees of them."""

from __future__ import annotations

from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w


def query(window: Any, **policies: Any) -> mt.Query:
    return mt.windows(x=window).aggregate(ids=a.collect("id")).on("t", **policies)


def rows(results: Any) -> list[tuple[Any, ...]]:
    return [
        (row["window"]["start"], row["window"]["end"], row["ids"], row["kind"], row["revision"])
        for row in results.to_pylist()
    ]


ONE_BY_ONE = {
    "until": w.until(a.count(), 1),
    "slide_by_tuple": w.slide_by_tuple(1, every=1),
    "punctuation": w.punctuation("m"),
    "discretize": w.discretize(lambda record: (1, 1)),
    "trigger": w.trigger(lambda buffer: True, lambda buffer: len(buffer) - 1),
}


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_they_come_in_the_order_of_their_tuples(name: str) -> None:
    tied = {"t": [5] * 300, "id": list(range(300)), "m": [True] * 300}
    found = query(ONE_BY_ONE[name]).run(tied)
    last = [row["ids"][-1] for row in found.to_pylist()]
    assert last == list(range(300))


def test_the_interval_is_empty_where_a_tuple_of_the_same_time_ends_the_window() -> None:
    tied = {"t": [5, 5, 7], "id": [1, 2, 3], "m": [True, True, True]}
    assert rows(query(w.punctuation("m")).run(tied)) == [
        (5, 5, [1], "final", 0),
        (5, 7, [2], "final", 0),
        (7, 8, [3], "final", 0),
    ]


def test_each_has_its_own_revisions() -> None:
    """A late tuple takes the places of two pairs, and their order stays."""
    op = query(w.until(a.count(), 2), allowed_lateness=100).operator()
    op.process({"t": [5] * 4, "id": [1, 2, 3, 4]})
    assert rows(op.advance(10)) == [(5, 6, [1, 2], "final", 0), (5, 6, [3, 4], "final", 0)]
    op.process({"t": [4, 5], "id": [5, 6]})
    assert rows(op.advance(11)) == [
        (4, 6, [5, 1], "final", 0),
        (5, 6, [2, 3], "update", 1),
        (5, 6, [4, 6], "update", 1),
    ]


def test_retractions_come_in_their_order_too() -> None:
    op = query(w.until(a.count(), 2), allowed_lateness=100).operator()
    op.process({"t": [5] * 4, "id": [1, 2, 3, 4]})
    op.advance(10)
    op.process({"t": [4], "id": [5]})
    assert rows(op.advance(11)) == [
        (5, 6, [3, 4], "retract", 1),
        (4, 6, [5, 1], "final", 0),
        (5, 6, [2, 3], "update", 1),
    ]
    op.process({"t": [4, 5], "id": [6, 7]})
    assert rows(op.advance(12)) == [
        (4, 6, [5, 1], "retract", 1),
        (4, 5, [5, 6], "final", 0),
        (5, 6, [1, 2], "update", 2),
        (5, 6, [3, 4], "update", 2),
    ]


NAMES = ["start", "end", "ordinal"]


@pytest.mark.parametrize("name", ONE_BY_ONE)
@pytest.mark.parametrize("lateness", [0, 10])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("size", [1, 4, 20])
def test_no_two_rows_are_the_same_window(name: str, lateness: int, in_order: bool, size: int) -> None:
    """Also where tuples of one time come before and after a watermark at that very time."""
    times = [5] * 9 + [15] * 11
    op = query(ONE_BY_ONE[name], allowed_lateness=lateness).operator(in_order=in_order)
    found = []
    for i in range(0, 20, size):
        part = times[i : i + size]
        tied = {"t": part, "id": range(i, i + len(part)), "m": [True] * len(part)}
        found += op.process(tied).to_pylist()
        if not in_order:
            found += op.advance(max(part)).to_pylist()
    found += op.finish().to_pylist()
    assert [row["kind"] for row in found] == ["final"] * 20
    assert list(found[0]["window"]) == NAMES
    rows = [tuple(row["window"].values()) for row in found]
    assert len(set(rows)) == 20
    whole = query(ONE_BY_ONE[name]).run({"t": times, "id": range(20), "m": [True] * 20}).to_pylist()
    assert {row["ids"][-1]: row["window"] for row in found} == {
        row["ids"][-1]: row["window"] for row in whole
    }


def test_updates_and_retractions_say_which_one_they_mean() -> None:
    op = query(w.until(a.count(), 2), allowed_lateness=100).operator()
    op.process({"t": [5] * 4, "id": [1, 2, 3, 4]})
    op.advance(10)
    op.process({"t": [4], "id": [5]})
    changed = [(row["kind"], *row["window"].values(), row["ids"]) for row in op.advance(11).to_pylist()]
    assert changed == [
        ("retract", 5, 6, 1, [3, 4]),
        ("final", 4, 6, 0, [5, 1]),
        ("update", 5, 6, 0, [2, 3]),
    ]


def test_only_windows_that_can_repeat_have_a_number() -> None:
    windows = mt.windows(pair=w.count(2), ten=w.tumbling(10), mark=w.punctuation("m"))
    shape = windows.aggregate(n=a.count()).on("t")
    found = shape.run({"t": [5, 5], "m": [True, True]}).to_pylist()
    numbers = [(row["window_name"], row["window"]["ordinal"]) for row in found]
    assert sorted(numbers, key=str) == [("mark", 0), ("mark", 0), ("pair", None), ("ten", None)]
    plain = mt.windows(pair=w.count(2), ten=w.tumbling(10), visit=w.session(3, max_length=8), l=w.last(2, 3))
    assert "ordinal" not in plain.aggregate(n=a.count()).on("t").run({"t": [5, 5]}).to_pylist()[0]["window"]


def test_a_number_as_measure_tells_them_apart() -> None:
    tied = {"t": [5, 5, 5], "id": [1, 2, 3], "m": [True, True, True]}
    found = query(w.punctuation("m", measure="id")).run(tied).to_pylist()
    assert [(row["window"]["start_id"], row["window"]["end_id"]) for row in found] == [(1, 2), (2, 3), (3, 3)]


def test_on_a_measure_that_stands_still() -> None:
    """Windows with the same edges on the measure are numbered on, however many watermarks lie between."""
    query = mt.windows(jump=w.delta("value", by=1, measure="meter")).aggregate(n=a.count()).by("k").on("t")
    operator = query.operator()
    found: dict[str, list[tuple[int, int, int]]] = {"x": [], "y": []}
    for t in range(6):
        meter = {"x": 7, "y": t // 2}  # x stands still, y moves on at every second time
        operator.process([{"k": k, "t": t, "value": 2 * t, "meter": m} for k, m in meter.items()])
        for row in operator.advance(t + 1).to_pylist():
            window = row["window"]
            found[row["k"]].append((window["start_meter"], window["end_meter"], window["ordinal"]))
    assert found["x"] == [(7, 7, n) for n in range(5)]
    assert found["y"] == [(0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 2, 0), (2, 2, 0)]


def test_a_window_left_open_counts_behind_one_that_expired() -> None:
    """Its tuple came at the same time, and it ends much later: it is still the second with these edges."""
    op = query(w.until(a.max("value"), 3), early=mt.each_batch()).operator()
    op.process({"t": [0, 0], "id": [1, 2], "value": [4, 1]})
    op.advance(5)
    assert [(row["window"], row["ids"]) for row in op.finish().to_pylist()] == [
        ({"start": 0, "end": 1, "ordinal": 1}, [2])
    ]
