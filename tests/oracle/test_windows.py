"""The oracle's windows against expectations written down by hand or counted another way."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.testing import Oracle

TIMES = st.lists(st.integers(-20, 30), min_size=1, max_size=12)


def intervals(window: Any, times: list[int], **columns: list[Any]) -> list[tuple[Any, ...]]:
    """(start, end, ids) of every window at the end of the stream, sorted."""
    query = mt.windows(x=window).aggregate(ids=a.collect("id")).on("t")
    oracle = Oracle(query)
    rows = [{"t": time, "id": number} for number, time in enumerate(times)]
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    oracle.process(rows)
    return sorted((row.start, row.end, row.aggregates["ids"]) for row in oracle.finish())


@given(TIMES, st.integers(1, 9), st.integers(1, 9), st.integers(-5, 5))
def test_periodic_windows_are_all_of_the_grid(times: list[int], length: int, slide: int, offset: int) -> None:
    order = sorted(range(len(times)), key=lambda number: (times[number], number))
    expected = []
    for k in range(-60, 60):  # every window of the grid anywhere near
        start = offset + k * slide
        inside = [number for number in order if start <= times[number] < start + length]
        if inside:
            expected.append((start, start + length, inside))
    assert intervals(w.sliding(length, slide, offset), times) == sorted(expected)


@given(TIMES, st.integers(1, 6))
def test_sessions_are_connected_components(times: list[int], gap: int) -> None:
    groups = [{number} for number in range(len(times))]
    for one, other in itertools.combinations(range(len(times)), 2):
        if abs(times[one] - times[other]) <= gap:
            first = next(group for group in groups if one in group)
            second = next(group for group in groups if other in group)
            if first is not second:
                groups.remove(second)
                first |= second
    expected = [
        (
            min(times[number] for number in group),
            max(times[number] for number in group) + gap,
            sorted(group, key=lambda number: (times[number], number)),
        )
        for group in groups
    ]
    assert intervals(w.session(gap), times) == sorted(expected)


@pytest.mark.parametrize(
    ("window", "times", "expected"),
    [
        (w.tumbling(10), [0, 9, 10], [(0, 10, [0, 1]), (10, 20, [2])]),
        (w.tumbling(10, offset=4), [3, 4], [(-6, 4, [0]), (4, 14, [1])]),
        (w.cumulate(6, 2), [1, 4], [(0, 2, [0]), (0, 4, [0]), (0, 6, [0, 1])]),
        (w.cumulate(6, 2, offset=1), [0], [(-5, 1, [0])]),
        (w.fixed_band(5, 3), [4, 5, 7, 8], [(5, 8, [1, 2])]),
        (w.landmark(3, every=4), [2, 4, 12], [(3, 7, [1]), (3, 11, [1]), (3, 15, [1, 2])]),
        (w.session(3, max_length=4), [0, 3, 4, 8], [(0, 4, [0, 1]), (4, 7, [2]), (8, 11, [3])]),
        (w.count(2), [5, 3, 4], [(3, 5, [1, 2])]),
        (w.count(2, every=1), [3, 4, 9], [(3, 5, [0, 1]), (4, 10, [1, 2])]),
        (w.count(2, emit_partial=True), [3, 4, 9], [(3, 5, [0, 1]), (9, 10, [2])]),
        (w.slide_by_tuple(3, every=2), [1, 2, 4, 5], [(0, 3, [0, 1]), (3, 6, [2, 3])]),
        (w.last(2, every=5), [1, 2, 7], [(1, 5, [0, 1]), (2, 10, [1, 2])]),
        (w.last(2, every=5), [5], [(5, 10, [0])]),
    ],
    ids=lambda value: value.describe() if isinstance(value, mt.windows.base.Window) else "",
)
def test_by_hand(window: Any, times: list[int], expected: list[tuple[Any, ...]]) -> None:
    assert intervals(window, times) == expected


@pytest.mark.parametrize(
    ("window", "values", "expected"),
    [
        (w.punctuation("v == 0"), [1, 0, 2, 0], [(0, 1, [0]), (1, 3, [1, 2]), (3, 4, [3])]),
        (w.threshold("v > 1"), [2, 2, 0, 3], [(0, 2, [0, 1]), (3, 4, [3])]),
        (w.threshold("v > 1", min_count=2), [2, 2, None, 3], [(0, 2, [0, 1])]),
        (w.delta("v", by=1), [None, 5, 6, 7, None], [(0, 3, [0, 1, 2]), (3, 5, [3, 4])]),
        (w.boundary("v", step=2), [0, 1, -1, -2, 2], [(0, 2, [0, 1]), (2, 4, [2, 3]), (4, 5, [4])]),
        (w.until(a.sum("v"), 3), [1, 2, 5, 1], [(0, 2, [0, 1]), (2, 3, [2]), (3, 4, [3])]),
        (w.tumbling(3, measure="v"), [0, 2, 1, 3], [(0, 3, [0, 1, 2]), (3, 4, [3])]),
        (w.session(2, measure="v"), [0, 2, 1, 5], [(0, 3, [0, 1, 2]), (3, 4, [3])]),
        (w.discretize(lambda record: (1, 1)), [0, 0], [(0, 1, [0]), (1, 2, [1])]),
        (w.discretize(lambda record: (1, 0)), [0, 0], [(0, 2, [0, 1]), (1, 2, [1])]),
        (w.trigger(lambda buffer: True, lambda buffer: len(buffer) - 1), [0, 0], [(0, 1, [0]), (1, 2, [1])]),
    ],
    ids=lambda value: value.describe() if isinstance(value, mt.windows.base.Window) else "",
)
def test_by_hand_with_values(window: Any, values: list[Any], expected: list[tuple[Any, ...]]) -> None:
    assert intervals(window, list(range(len(values))), v=values) == expected


def test_measure_as_the_user_wrote_it() -> None:
    # 3 * 0.1 is a little more than 0.3, and 0.3 is an edge all the same.
    query = mt.windows(x=w.tumbling(0.1, measure="m")).aggregate(n=a.count()).on("t")
    oracle = Oracle(query)
    oracle.process([{"t": 1, "m": 0.2}, {"t": 2, "m": 0.3}])
    assert [(row.low, row.high) for row in oracle.finish()] == [(0.2, 0.3), (0.3, 0.4)]


def test_frames_on_a_measure_say_where_it_stood() -> None:
    query = mt.windows(x=w.punctuation("v == 0", measure="m")).aggregate(n=a.count()).on("t")
    oracle = Oracle(query)
    oracle.process([{"t": i, "v": v, "m": m} for i, (v, m) in enumerate([(1, 5), (1, 9), (0, 8), (1, 12)])])
    assert [(row.low, row.high) for row in oracle.finish()] == [(5, 9), (9, 12)]
