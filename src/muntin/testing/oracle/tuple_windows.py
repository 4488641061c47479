"""Sessions, windows on ranks and windows on another measure, for the oracle."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from muntin.testing.oracle.time_windows import grid
from muntin.testing.oracle.tuples import Arrival, Found, Tuples, View, closed_by_next, runs

__all__ = [
    "capped_session",
    "count",
    "last",
    "measured_periodic",
    "measured_session",
    "place_of",
    "session",
    "slide_by_tuple",
]


def session(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """Neighbours at most `gap` apart are together."""
    found = []
    for run in runs(tuples, lambda run, item: bool(item.time - run[-1].time > window.gap)):
        end = run[-1].time + window.gap
        found.append(Found(run[0].time, end, end + 1, run))
    return found


def capped_session(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """The same, and a tuple `max_length` after the first one starts a new session."""

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        return bool(item.time - run[-1].time > window.gap or item.time >= run[0].time + window.max_length)

    found = []
    for run in runs(tuples, breaks):
        limit, silence = run[0].time + window.max_length, run[-1].time + window.gap
        # From the limit on nothing can join, whether or not a tuple came that would have.
        found.append(Found(run[0].time, min(silence, limit), min(silence + 1, limit), run))
    return found


def count(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """The tuples of ranks [k * every, k * every + n)."""
    found = []
    for low in range(0, len(tuples), window.every):
        content = tuples[low : low + window.n]
        full = len(content) == window.n
        if full or (view.closing and window.emit_partial):
            end = content[-1].time + 1
            found.append(Found(content[0].time, end, end, content, low, low + window.n, open=not full))
    return found


def slide_by_tuple(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """At every n-th tuple, all tuples of the time before it, itself included."""
    found = []
    for rank in range(window.every - 1, len(tuples), window.every):
        time = tuples[rank].time
        content = tuple(item for item in tuples[: rank + 1] if item.time > time - window.length)
        found.append(Found(time + 1 - window.length, time + 1, time + 1, content))
    return found


def last(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """At every edge in time after the first tuple, the last n tuples before it."""
    found = []
    edge = window.offset + (tuples[0].time - window.offset) // window.every * window.every + window.every
    while edge <= view.upto or (view.closing and edge - window.every <= view.newest):
        content = tuple(item for item in tuples if item.time < edge)[-window.n :]
        found.append(Found(content[0].time, edge, edge, content))
        edge += window.every
    return found


def measured_periodic(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """A grid on the measure; a window is over when a tuple stands beyond it."""
    places = place_of(window, tuples)
    # The decimal numbers that the user wrote: 0.3 is an edge of tumbling(0.1).
    at = {seq: Fraction(str(place)) for seq, place in places.items()}
    length, slide, offset = (Fraction(str(value)) for value in (window.length, window.slide, window.offset))
    number = type(places[tuples[0].seq])
    found = []
    for low, high in sorted({edges for place in at.values() for edges in grid(length, slide, offset, place)}):
        content = tuple(item for item in tuples if low <= at[item.seq] < high)
        beyond = [item.time for item in tuples if at[item.seq] >= high]
        if beyond or view.closing:
            start, end = content[0].time, content[-1].time + 1
            due = beyond[0] if beyond else end
            found.append(Found(start, end, due, content, number(low), number(high), open=not beyond))
    return found


def measured_session(window: Any, tuples: Tuples, view: View) -> list[Found]:
    """A jump of the measure by more than `gap` starts a new session."""
    at = place_of(window, tuples)
    pieces = runs(tuples, lambda run, item: bool(at[item.seq] - at[run[-1].seq] > window.gap))
    return [
        found._replace(low=at[found.content[0].seq], high=at[found.content[-1].seq] + window.gap)
        for found in closed_by_next(pieces, view)
    ]


def place_of(window: Any, tuples: Tuples) -> dict[int, Any]:
    """Where each tuple stands on the measure: the largest value so far, so that one that lags counts here."""
    places: dict[int, Any] = {}
    so_far = None
    for item in tuples:
        value = item.row[window.measure]
        so_far = value if so_far is None else max(so_far, value)
        places[item.seq] = so_far
    return places
