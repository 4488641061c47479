"""Which windows do these tuples make? The slowest and plainest answer, for every window type."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any

from muntin.errors import QueryError
from muntin.testing.oracle import frames, tuple_windows, user_windows
from muntin.testing.oracle.time_windows import context_free, cumulate, is_context_free, periodic
from muntin.testing.oracle.tuples import Instance, Tuples, View
from muntin.windows import ForwardContextAware, ForwardContextFree

__all__ = ["find_windows", "is_plain_session"]


def find_windows(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """All windows that the tuples of a key make; nothing is remembered from call to call."""
    if not tuples:
        return []
    if window.measure is not None:
        # The position of a tuple is the largest of its own value and all earlier ones.
        places = accumulate((item.row[window.measure] for item in tuples), max)
        tuples = tuple(item._replace(place=place) for item, place in zip(tuples, places, strict=True))
    return _finder(window)(window, tuples, view)


def is_plain_session(window: Any) -> bool:
    """Whether the window is a session on time without a maximum length."""
    return type(window).__name__ == "Session"


def _finder(window: Any) -> Callable[[Any, Tuples, View], list[Instance]]:
    name = type(window).__name__
    if is_context_free(window):
        return context_free
    if name in _FINDERS:
        return _FINDERS[name]
    if isinstance(window, ForwardContextFree):
        return user_windows.forward_context_free
    if isinstance(window, ForwardContextAware):
        return user_windows.forward_context_aware
    raise QueryError(f"the oracle does not know the window type {name}")


_FINDERS: dict[str, Callable[[Any, Tuples, View], list[Instance]]] = {
    "Session": frames.session,
    "CappedSession": frames.session,
    "MeasuredSession": frames.session,
    "ReachingSession": frames.reaching_session,
    "Punctuation": frames.punctuation,
    "PunctuationPair": frames.punctuation_pair,
    "Threshold": frames.threshold,
    "Delta": frames.delta,
    "Boundary": frames.boundary,
    "Until": frames.until,
    "MeasuredPeriodic": partial(tuple_windows.on_measure, periodic),
    "MeasuredCumulate": partial(tuple_windows.on_measure, cumulate),
    "Count": tuple_windows.count,
    "SlideByTuple": tuple_windows.slide_by_tuple,
    "Last": tuple_windows.last,
    "Discretize": user_windows.discretize,
    "Trigger": user_windows.trigger,
    "TimedTrigger": user_windows.timed_trigger,
}
