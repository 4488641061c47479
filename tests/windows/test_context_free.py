"""Context-free windows against lists of all their windows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import windows as w
from muntin.errors import UserCodeError
from muntin.timeline import INF, NEG_INF
from muntin.windows.bands import FixedBand, Landmark
from muntin.windows.base import ContextFreeWindow
from muntin.windows.cumulate import Cumulate
from muntin.windows.periodic import Periodic

LOWEST, HIGHEST = -150, 150  # of the times that the tests use
REACH = range(-400, 401)


class Shifts(w.ContextFree):
    """Two shifts a day of 10, a long and a short one, a break between them, and the day itself."""

    def next_edge(self, time: int) -> int:
        into = time % 10
        return time - into + (6 if into < 6 else 7 if into < 7 else 10)

    def containing(self, time: int) -> Iterable[tuple[int, int]]:
        day, into = time - time % 10, time % 10
        shifts = [(day, day + 6), (day + 7, day + 10)]
        return [(day, day + 10), *((s, e) for s, e in shifts if s <= day + into < e)]


def every_window(window: Any) -> set[tuple[int, int]]:
    """All windows with edges in REACH, from the definitions."""
    match window:
        case Periodic():
            starts = [t for t in REACH if (t - window.offset) % window.slide == 0]
            found = {(t, t + window.length) for t in starts}
        case Cumulate():
            starts = [t for t in REACH if (t - window.offset) % window.length == 0]
            found = {(t, t + j) for t in starts for j in range(window.step, window.length + 1, window.step)}
        case FixedBand():
            found = {(window.start, window.start + window.length)}
        case Landmark():
            found = {(window.start, end) for end in range(window.start + window.every, 401, window.every)}
        case _:
            days = [t for t in REACH if t % 10 == 0]
            found = {pair for t in days for pair in ((t, t + 6), (t + 7, t + 10), (t, t + 10))}
    return found


small = st.integers(1, 12)
offset = st.integers(-15, 15)
WINDOWS = {
    "tumbling": st.builds(w.tumbling, small, offset),
    "sliding": st.builds(w.sliding, small, small, offset),
    "cumulate": st.builds(
        lambda step, n, at: w.cumulate(step * n, step, at), st.integers(1, 4), small, offset
    ),
    "fixed band": st.builds(w.fixed_band, offset, small),
    "landmark": st.builds(w.landmark, offset, small),
    "user defined": st.just(Shifts()),
}
time = st.integers(LOWEST, HIGHEST)
times = st.lists(time, max_size=12).map(lambda values: np.array(sorted(values), np.int64))


def pairs(found: tuple[Any, Any]) -> list[tuple[int, int]]:
    return list(zip(*(part.tolist() for part in found), strict=True))


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), lo=time, hi=time)
def test_edges_and_starts(name: str, data: Any, lo: int, hi: int) -> None:
    window: ContextFreeWindow = data.draw(WINDOWS[name])
    every = every_window(window)
    edges = {edge for pair in every for edge in pair if lo <= edge <= hi}
    assert window.edges(lo, hi).tolist() == sorted(edges)
    assert window.starts(lo, hi).tolist() == sorted({start for start, _ in every if lo <= start <= hi})


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), times=times, after=time | st.just(NEG_INF), upto=time | st.just(INF))
def test_windows_that_contain_times(name: str, data: Any, times: Any, after: int, upto: int) -> None:
    window: ContextFreeWindow = data.draw(WINDOWS[name])
    limit = upto
    if isinstance(window, Landmark) and upto == INF and len(times):
        limit = int(times[-1]) + window.every  # exactly one edge lies after the last and up to here
    expected = [
        (start, end)
        for start, end in every_window(window)
        if after < end <= limit and any(start <= t < end for t in times.tolist())
    ]
    assert pairs(window.windows(times, after, upto)) == sorted(expected, key=lambda pair: pair[::-1])


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), times=times, after=time)
def test_last_end_and_first_start(name: str, data: Any, times: Any, after: int) -> None:
    window: ContextFreeWindow = data.draw(WINDOWS[name])
    every = every_window(window)
    shuffled = np.array(data.draw(st.permutations(times.tolist())), np.int64)
    ends = [max((e for s, e in every if s <= t < e), default=NEG_INF) for t in shuffled.tolist()]
    if isinstance(window, Landmark):
        ends = [INF if end > NEG_INF else NEG_INF for end in ends]
    assert window.last_end(shuffled).tolist() == ends
    first = min((start for start, end in every if end > after), default=INF)
    if isinstance(window, Landmark):
        first = window.start
    assert window.first_start(after) == first


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), spans=st.lists(st.tuples(time, time).map(sorted), max_size=5), after=time, upto=time)
def test_windows_that_overlap_spans(name: str, data: Any, spans: Any, after: int, upto: int) -> None:
    window: ContextFreeWindow = data.draw(WINDOWS[name])
    first = np.array(sorted(lo for lo, _ in spans), np.int64)
    last = np.array(sorted(hi for _, hi in spans), np.int64)
    expected = [
        (start, end)
        for start, end in every_window(window)
        if after < end <= upto and any(end > lo and start <= hi for lo, hi in zip(first, last, strict=True))
    ]
    found = pairs(window.overlapping(first, last, after, upto))
    assert found == sorted(expected, key=lambda pair: pair[::-1])


@pytest.mark.parametrize("name", [name for name in WINDOWS if name != "landmark"])
@given(data=st.data())
def test_far_away(name: str, data: Any) -> None:
    window: ContextFreeWindow = data.draw(WINDOWS[name])
    far = np.array([-(2**62), 2**62], np.int64)
    for start, end in pairs(window.windows(far, NEG_INF, INF)):
        assert any(start <= t < end for t in far.tolist())
    assert (window.last_end(far) >= NEG_INF).all()
    assert NEG_INF <= window.first_start(NEG_INF) <= INF
    assert NEG_INF <= window.first_start(INF) <= INF


def test_errors_of_user_code_name_the_window_and_the_time() -> None:
    class Broken(Shifts):
        def containing(self, time: int) -> Iterable[tuple[int, int]]:
            raise ZeroDivisionError("no")

    class Stuck(Shifts):
        def next_edge(self, time: int) -> int:
            return time

    class Elsewhere(Shifts):
        def containing(self, time: int) -> Iterable[tuple[int, int]]:
            return [(time + 1, time + 2)]

    with pytest.raises(UserCodeError, match="Broken: containing failed on 5: ZeroDivisionError: no"):
        Broken().windows(np.array([5]), 0, 100)
    with pytest.raises(UserCodeError, match="Stuck: next_edge must be after the time: got 4 for 4"):
        Stuck().edges(5, 100)
    with pytest.raises(
        UserCodeError, match=r"Elsewhere: containing must give windows around 5: got \[6, 7\)"
    ):
        Elsewhere().last_end(np.array([5]))


def test_windows_of_the_user_have_an_end() -> None:
    class Endless(Shifts):
        def containing(self, time: int) -> Iterable[tuple[int, int]]:
            return [(0, 10**30)]

    with pytest.raises(
        UserCodeError, match=r"Endless: containing must give times within \+-2\*\*62: got \[0, 10"
    ):
        Endless().windows(np.array([5]), NEG_INF, INF)
