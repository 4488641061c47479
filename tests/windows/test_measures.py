"""Sessions of bounded length, and windows on another measure."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import windows as w
from muntin.timeline import INF

sys.path.insert(0, str(Path(__file__).parent))
from driving import (
    Found,
    Reference,
    Row,
    View,
    between,
    check,
    pieces,
    positions,
    streams,
)  # beside this file, not installed


def capped(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for begin, end in pieces(
        rows,
        lambda run, row: row.time - run[-1].time > window.gap or row.time >= run[0].time + window.max_length,
    ):
        first, last = rows[begin].time, rows[end - 1].time
        stop = min(last + window.gap, first + window.max_length)
        due = min(last + window.gap + 1, first + window.max_length)
        if end < len(rows) or due <= view.upto or view.closing:
            found.append(Found(begin, end, first, stop, due))
    return found


def measured_periodic(window: Any, rows: list[Row], view: View) -> list[Found]:
    position = positions(rows, window.measure)
    found = []
    for number in range(-200, 200):
        low = window.offset + number * window.slide
        found += on_measure(rows, position, low, low + window.length, view)
    return found


def on_measure(rows: list[Row], position: list[Any], low: Any, high: Any, view: View) -> list[Found]:
    inside = [i for i, at in enumerate(position) if low <= at < high]
    beyond = [i for i, at in enumerate(position) if at >= high]
    if not inside or not (beyond or view.closing):
        return []
    due = rows[beyond[0]].time if beyond else INF
    stop = rows[beyond[0]].time if beyond else rows[inside[-1]].time + 1
    return [Found(inside[0], inside[-1] + 1, rows[inside[0]].time, stop, due, low, high)]


def measured_cumulate(window: Any, rows: list[Row], view: View) -> list[Found]:
    position = positions(rows, window.measure)
    found = []
    for number in range(-100, 100):
        low = window.offset + number * window.length
        for steps in range(1, int(window.length / window.step) + 1):
            found += on_measure(rows, position, low, low + steps * window.step, view)
    return found


def measured_session(window: Any, rows: list[Row], view: View) -> list[Found]:
    position = positions(rows, window.measure)
    limit = math.inf if window.max_length is None else window.max_length
    begins: list[int] = []
    for i, at in enumerate(position):
        if not begins or at - position[i - 1] > window.gap or at >= position[begins[-1]] + limit:
            begins.append(i)
    parts = list(pairwise([*begins, len(rows)]))
    return [
        found._replace(
            low=position[found.begin],
            high=min(position[found.end - 1] + window.gap, position[found.begin] + limit),
        )
        for found in between(rows, parts, view, None)
    ]


small = st.integers(1, 6)
measure = st.sampled_from(["km", "litres"])
WINDOWS: dict[str, tuple[st.SearchStrategy[Any], Reference]] = {
    "session": (st.builds(lambda gap, more: w.session(gap, gap + more), small, st.integers(1, 14)), capped),
    "measured sliding": (
        st.builds(w.sliding, small, small, st.integers(0, 3), measure=measure),
        measured_periodic,
    ),
    "measured cumulate": (
        st.builds(
            lambda step, n, at, on: w.cumulate(n * step, step, at, measure=on),
            *(small, small, st.integers(-3, 3), measure),
        ),
        measured_cumulate,
    ),
    "measured session": (
        st.builds(
            lambda gap, more, on: w.session(gap, more and gap + more, measure=on),
            *(small, st.none() | small, measure),
        ),
        measured_session,
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), keys=streams())
def test_windows_do_not_depend_on_the_split(name: str, data: Any, keys: list[list[Row]]) -> None:
    windows, reference = WINDOWS[name]
    check(data.draw(windows), reference, keys, data)
