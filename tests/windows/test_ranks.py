"""Windows on ranks, or after every n-th tuple."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import windows as w
from muntin.timeline import INF

sys.path.insert(0, str(Path(__file__).parent))
from driving import Found, Reference, Row, View, check, streams  # beside this file, not installed


def count(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for low in range(0, len(rows), window.every):
        part = rows[low : low + window.n]
        if len(part) == window.n or view.closing:
            end = part[-1].time + 1
            due = end if len(part) == window.n else INF
            found.append(Found(low, low + len(part), part[0].time, end, due, low, low + window.n))
    return found


def slide_by_tuple(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for rank in range(window.every - 1, len(rows), window.every):
        time = rows[rank].time
        begin = min(i for i in range(rank + 1) if rows[i].time > time - window.length)
        found.append(Found(begin, rank + 1, time + 1 - window.length, time + 1, time + 1))
    return found


def last(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    edges = range(-200, 400)
    for edge in (e for e in edges if (e - window.offset) % window.every == 0 and rows and e > rows[0].time):
        if edge <= view.upto or (view.closing and edge - window.every <= view.newest):
            before = [i for i, row in enumerate(rows) if row.time < edge]
            begin = max(0, len(before) - window.n)
            found.append(Found(begin, len(before), rows[begin].time, edge, edge))
    return found


small = st.integers(1, 6)
WINDOWS: dict[str, tuple[st.SearchStrategy[Any], Reference]] = {
    "count": (st.builds(w.count, small, st.none() | small), count),
    "slide_by_tuple": (st.builds(w.slide_by_tuple, small, small), slide_by_tuple),
    "last": (st.builds(w.last, small, st.integers(2, 9), st.integers(0, 3)), last),
}


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), keys=streams())
def test_windows_do_not_depend_on_the_split(name: str, data: Any, keys: list[list[Row]]) -> None:
    windows, reference = WINDOWS[name]
    check(data.draw(windows), reference, keys, data)


def test_a_context_does_not_grow_with_the_windows_that_are_open() -> None:
    assert w.count(10**9, every=1).initial(1).nbytes == w.count(1).initial(1).nbytes
