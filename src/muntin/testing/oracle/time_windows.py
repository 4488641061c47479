"""Context free windows for the oracle: which windows contain a time, one small function per type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muntin.testing.oracle.civil import calendar_window
from muntin.testing.oracle.tuples import Instance, Tuples, View
from muntin.timeline import INF
from muntin.windows import ContextFree

__all__ = ["context_free", "grid", "is_context_free", "latest_end", "spanned"]

Interval = tuple[int, int]


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


def _containing(window: Any, time: int, view: View) -> list[Interval]:
    if isinstance(window, ContextFree):  # the user's own
        return [(int(start), int(end)) for start, end in window.containing(time)]
    return _CONTAINING[type(window).__name__](window, time, view)


def _periodic(window: Any, time: int, view: View) -> list[Interval]:
    return grid(window.length, window.slide, window.offset, time)


def grid(length: Any, slide: Any, offset: Any, position: Any) -> list[tuple[Any, Any]]:
    """The windows [offset + k * slide, + length) that contain `position`, for any integer k."""
    start = offset + (position - offset) // slide * slide
    intervals = []
    while start + length > position:
        intervals.append((start, start + length))
        start -= slide
    return intervals


def _cumulate(window: Any, time: int, view: View) -> list[Interval]:
    begin = window.offset + (time - window.offset) // window.length * window.length
    ends = range(begin + window.step, begin + window.length + 1, window.step)
    return [(begin, end) for end in ends if end > time]


def _fixed_band(window: Any, time: int, view: View) -> list[Interval]:
    inside = window.start <= time < window.start + window.length
    return [(window.start, window.start + window.length)] if inside else []


def _landmark(window: Any, time: int, view: View) -> list[Interval]:
    if time < window.start:
        return []
    intervals = []
    end = window.start + window.every
    while end <= view.upto or (view.closing and end - window.every <= view.newest):
        if end > time:
            intervals.append((window.start, end))
        end += window.every
    return intervals


def _calendar(window: Any, time: int, view: View) -> list[Interval]:
    return [calendar_window(window.unit, window.tz, window.offset, time)]


def _next_start(window: Any, time: int) -> int | None:
    """The first time after `time` at which a window starts (or, of the user's own, also ends), if any."""
    if isinstance(window, ContextFree):
        return int(window.next_edge(time))
    name = type(window).__name__
    if name == "Calendar":
        return calendar_window(window.unit, window.tz, window.offset, time)[1]
    if name in ("FixedBand", "Landmark"):
        return window.start if window.start > time else None
    period = window.slide if name == "Periodic" else window.length
    return int(time + period - (time - window.offset) % period)


_CONTAINING: dict[str, Callable[[Any, int, View], list[Interval]]] = {
    "Periodic": _periodic,
    "Cumulate": _cumulate,
    "FixedBand": _fixed_band,
    "Landmark": _landmark,
    "Calendar": _calendar,
}
