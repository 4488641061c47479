"""Context free windows for the oracle: which windows contain a time, one small function per type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muntin.testing.oracle.civil import calendar_window
from muntin.testing.oracle.tuples import Instance, Tuples, View
from muntin.timeline import INF
from muntin.windows import ContextFree

__all__ = ["context_free", "cumulate", "first_start", "is_context_free", "latest_end", "periodic", "spanned"]

Interval = tuple[Any, Any]

_LONG_AGO = -(2**60)


def is_context_free(window: Any) -> bool:
    """Whether the edges depend on time only, not on the tuples."""
    return type(window).__name__ in _CONTAINING or isinstance(window, ContextFree)


def context_free(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """All windows with a tuple in them."""
    return _instances({pair for item in tuples for pair in _containing(window, item.time, view)}, tuples)


def spanned(window: Any, tuples: Tuples, view: View, first: int, last: int) -> list[Instance]:
    """All windows that overlap [first, last], empty or not: those around `first`, or that start later."""
    intervals = set()
    time: int | None = first
    while time is not None and time <= max(first, last):
        intervals |= {(start, end) for start, end in _containing(window, time, view) if start <= last}
        time = _next_start(window, time)
    return _instances(intervals, tuples)


def _instances(intervals: set[Interval], tuples: Tuples) -> list[Instance]:
    return [
        Instance(start, end, end, tuple(item for item in tuples if start <= item.time < end))
        for start, end in sorted(intervals)
    ]


def latest_end(window: Any, time: int, since: int) -> int | None:
    """The end of the last window that contains `time` and does not start before `since`, if there is one."""
    if type(window).__name__ == "Landmark":  # its windows never stop
        return INF if time >= window.start >= since else None
    view = View(upto=INF, closing=False, newest=time)
    return max((end for start, end in _containing(window, time, view) if start >= since), default=None)


def first_start(window: Any, low: int, after: int) -> int:
    """The first start at or after `low` of a window that ends behind `after`; INF if there is none."""
    time = _next_start(window, max(low, _LONG_AGO) - 1)
    while time is not None:
        if type(window).__name__ == "Landmark":  # its windows never stop
            return time
        view = View(upto=INF, closing=False, newest=time)
        if any(start == time and end > after for start, end in _containing(window, time, view)):
            return time
        time = _next_start(window, time)
    return INF


def _containing(window: Any, time: int, view: View) -> list[Interval]:
    if isinstance(window, ContextFree):  # the user's own
        return [(int(start), int(end)) for start, end in window.containing(time)]
    return _CONTAINING[type(window).__name__](window, time, view)


def periodic(window: Any, place: Any, exact: Callable[[Any], Any] = int) -> list[Interval]:
    """The windows [offset + k * slide, + length) that contain `place`, for any integer k."""
    length, slide, offset = map(exact, (window.length, window.slide, window.offset))
    start = offset + (place - offset) // slide * slide
    intervals = []
    while start + length > place:
        intervals.append((start, start + length))
        start -= slide
    return intervals


def cumulate(window: Any, place: Any, exact: Callable[[Any], Any] = int) -> list[Interval]:
    """The first step of the period around `place`, its first two steps, and so on."""
    length, step, offset = map(exact, (window.length, window.step, window.offset))
    begin = offset + (place - offset) // length * length
    ends = [begin + number * step for number in range(1, length // step + 1)]
    return [(begin, end) for end in ends if end > place]


def _landmark(window: Any, time: int, view: View) -> list[Interval]:
    intervals = []
    end = window.start + window.every
    while end <= view.upto or (view.closing and end - window.every <= view.newest):
        if window.start <= time < end:
            intervals.append((window.start, end))
        end += window.every
    return intervals


def _next_start(window: Any, time: int) -> int | None:
    """The first time after `time` at which a window starts (or, of the user's own, also ends), if any."""
    if isinstance(window, ContextFree):
        return int(window.next_edge(time))
    name = type(window).__name__
    if name == "Calendar":
        return calendar_window(window, time)[1]
    if name in ("FixedBand", "Landmark"):
        return window.start if window.start > time else None
    period = window.slide if name == "Periodic" else window.length
    return int(time + period - (time - window.offset) % period)


def _fixed_band(window: Any, time: int, view: View) -> list[Interval]:
    start, end = window.start, window.start + window.length
    return [(start, end)] if start <= time < end else []


_CONTAINING: dict[str, Callable[[Any, int, View], list[Interval]]] = {
    "Periodic": lambda window, time, _: periodic(window, time),
    "Cumulate": lambda window, time, _: cumulate(window, time),
    "FixedBand": _fixed_band,
    "Landmark": _landmark,
    "Calendar": lambda window, time, _: [calendar_window(window, time)],
}
