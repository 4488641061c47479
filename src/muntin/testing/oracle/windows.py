"""Which windows do these tuples make? The slowest and plainest answer, for every window type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muntin.errors import QueryError
from muntin.testing.oracle import frames, tuple_windows, user_windows
from muntin.testing.oracle.time_windows import context_free, is_context_free
from muntin.testing.oracle.tuples import Instance, Tuples, View
from muntin.windows import ForwardContextAware, ForwardContextFree

__all__ = ["find_windows", "is_plain_session"]

Finder = Callable[[Any, Tuples, View], list[Instance]]


def find_windows(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """All windows that the tuples of a key make; nothing is remembered from call to call."""
    if not tuples:
        return []
    if is_context_free(window):
        return context_free(window, tuples, view)
    name = type(window).__name__
    instances = _finder(window)(window, tuples, view)
    if name in _FRAMES and window.measure is not None:
        return frames.on_measure(window, tuples, instances)
    return instances


def is_plain_session(window: Any) -> bool:
    """Whether the window is a session on time without a maximum length."""
    return type(window).__name__ == "Session"


def _finder(window: Any) -> Finder:
    name = type(window).__name__
    if name in _FINDERS:
        return _FINDERS[name]
    if isinstance(window, ForwardContextFree):
        return user_windows.forward_context_free
    if isinstance(window, ForwardContextAware):
        return user_windows.forward_context_aware
    raise QueryError(f"the oracle does not know the window type {name}")


_FRAMES: dict[str, Finder] = {
    "Punctuation": frames.punctuation,
    "Threshold": frames.threshold,
    "Delta": frames.delta,
    "Boundary": frames.boundary,
    "Until": frames.until,
}

_FINDERS: dict[str, Finder] = {
    **_FRAMES,
    "Session": tuple_windows.session,
    "CappedSession": tuple_windows.capped_session,
    "MeasuredCumulate": tuple_windows.measured_cumulate,
    "MeasuredPeriodic": tuple_windows.measured_periodic,
    "MeasuredSession": tuple_windows.measured_session,
    "Count": tuple_windows.count,
    "SlideByTuple": tuple_windows.slide_by_tuple,
    "Last": tuple_windows.last,
    "Discretize": user_windows.discretize,
    "Trigger": user_windows.trigger,
}
