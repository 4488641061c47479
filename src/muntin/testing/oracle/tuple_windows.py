"""Sessions, windows on ranks and windows on another measure, for the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from muntin.testing.oracle.time_windows import grid
from muntin.testing.oracle.tuples import Arrival, Instance, Tuples, View, closed_by_next, runs


def session(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Neighbours at most `gap` apart are together."""
    instances = []
    for run in runs(tuples, lambda run, item: bool(item.time - run[-1].time > window.gap)):
        end = run[-1].time + window.gap
        instances.append(Instance(run[0].time, end, end + 1, run))
    return instances


def capped_session(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The same, and a tuple `max_length` after the first one starts a new session."""

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        return bool(item.time - run[-1].time > window.gap or item.time >= run[0].time + window.max_length)

    instances = []
    for run in runs(tuples, breaks):
        limit, silence = run[0].time + window.max_length, run[-1].time + window.gap
        # From the limit on no tuple can join.
        instances.append(Instance(run[0].time, min(silence, limit), min(silence + 1, limit), run))
    return instances


def count(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The tuples of ranks [k * every, k * every + n)."""
    instances = []
    for low in range(0, len(tuples), window.every):
        content = tuples[low : low + window.n]
        full = len(content) == window.n
        if full or (view.closing and window.emit_partial):
            end = content[-1].time + 1
            instances.append(Instance(content[0].time, end, end, content, low, low + window.n, open=not full))
    return instances


def slide_by_tuple(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """At every n-th tuple, all tuples of the time before it, itself included."""
    instances = []
    for rank in range(window.every - 1, len(tuples), window.every):
        time = tuples[rank].time
        content = tuple(item for item in tuples[: rank + 1] if item.time > time - window.length)
        instances.append(Instance(time + 1 - window.length, time + 1, time + 1, content))
    return instances


def last(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """At every edge in time after the first tuple, the last n tuples before it.

    The last edge is the first one after the last tuple, or the last one in the life of the key.
    """
    instances = []
    edge = window.offset + (tuples[0].time - window.offset) // window.every * window.every + window.every
    while edge <= view.upto or (view.closing and edge - window.every <= view.newest):
        if edge > view.until and edge - window.every > tuples[-1].time:
            break
        content = tuple(item for item in tuples if item.time < edge)[-window.n :]
        instances.append(Instance(content[0].time, edge, edge, content))
        edge += window.every
    return instances


def measured_periodic(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """A grid on the measure; a window is over when a tuple is beyond it."""
    length, slide, offset = (Fraction(str(value)) for value in (window.length, window.slide, window.offset))
    return _on_measure(window, tuples, view, lambda place: grid(length, slide, offset, place))


def measured_cumulate(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The first step of each period on the measure, its first two steps, and so on."""
    length, step, offset = (Fraction(str(value)) for value in (window.length, window.step, window.offset))

    def containing(place: Fraction) -> list[tuple[Fraction, Fraction]]:
        [(low, high)] = grid(length, length, offset, place)
        ends = [low + number * step for number in range(1, int((high - low) / step) + 1)]
        return [(low, end) for end in ends if end > place]

    return _on_measure(window, tuples, view, containing)


def _on_measure(
    window: Any, tuples: Tuples, view: View, containing: Callable[[Fraction], list[tuple[Any, Any]]]
) -> list[Instance]:
    """The windows around the places of tuples, each over when a tuple is beyond it."""
    places = place_of(window, tuples)
    # The decimal numbers that the user wrote: 0.3 is an edge of tumbling(0.1).
    at = {seq: Fraction(str(place)) for seq, place in places.items()}
    number = type(places[tuples[0].seq])
    instances = []
    for low, high in sorted({edges for place in at.values() for edges in containing(place)}):
        content = tuple(item for item in tuples if low <= at[item.seq] < high)
        beyond = [item.time for item in tuples if at[item.seq] >= high]
        if beyond or view.closing:
            start, end = content[0].time, content[-1].time + 1
            due = beyond[0] if beyond else end
            instances.append(Instance(start, end, due, content, number(low), number(high), open=not beyond))
    return instances


def measured_session(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """A tuple too far ahead of the one before it, or of the first, starts a new session."""
    at = place_of(window, tuples)
    limit = math.inf if window.max_length is None else window.max_length

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        place = at[item.seq]
        return bool(place - at[run[-1].seq] > window.gap or place >= at[run[0].seq] + limit)

    instances = []
    for session in closed_by_next(runs(tuples, breaks), view):
        low, last = at[session.content[0].seq], at[session.content[-1].seq]
        instances.append(session._replace(low=low, high=min(last + window.gap, low + limit)))
    return instances


def place_of(window: Any, tuples: Tuples) -> dict[int, Any]:
    """The position of each tuple on the measure: the largest value so far, its own or an earlier one."""
    places: dict[int, Any] = {}
    so_far = None
    for item in tuples:
        value = item.row[window.measure]
        so_far = value if so_far is None else max(so_far, value)
        places[item.seq] = so_far
    return places
