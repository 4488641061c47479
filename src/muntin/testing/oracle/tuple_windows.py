"""Windows on ranks and grids on another measure, for the oracle."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from muntin.testing.oracle.tuples import Instance, Tuples, View, ended
from muntin.timeline import INF

__all__ = ["count", "last", "on_measure", "slide_by_tuple"]


def count(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The tuples of ranks [k * every, k * every + n)."""
    instances = []
    for low in range(0, len(tuples), window.every):
        content = tuples[low : low + window.n]
        full = len(content) == window.n
        if full or (view.closing and window.emit_partial):
            end = content[-1].time + 1
            complete_at = end if full else INF
            instances.append(Instance(content[0].time, end, complete_at, content, low, low + window.n))
    return instances


def slide_by_tuple(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """At every n-th tuple, all tuples of the time before it, itself included."""
    instances = []
    for rank in range(window.every - 1, len(tuples), window.every):
        end = tuples[rank].time + 1
        content = tuple(item for item in tuples[: rank + 1] if item.time >= end - window.length)
        instances.append(Instance(end - window.length, end, end, content))
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
        instances.append(ended(tuple(item for item in tuples if item.time < edge)[-window.n :], edge))
        edge += window.every
    return instances


def on_measure(
    containing: Callable[..., list[tuple[Any, Any]]], window: Any, tuples: Tuples, view: View
) -> list[Instance]:
    """The windows around the places of tuples, each over when a tuple is beyond it."""

    def exact(number: Any) -> Fraction:
        return Fraction(
            str(number)
        )  # the decimal number that the user wrote: 0.3 is an edge of tumbling(0.1)

    number = type(tuples[0].place)
    instances = []
    for low, high in sorted(
        {edges for item in tuples for edges in containing(window, exact(item.place), exact)}
    ):
        content = tuple(item for item in tuples if low <= exact(item.place) < high)
        beyond = [item.time for item in tuples if exact(item.place) >= high]
        if beyond or view.closing:
            start, complete_at = content[0].time, beyond[0] if beyond else INF
            end = beyond[0] if beyond else content[-1].time + 1
            instances.append(Instance(start, end, complete_at, content, number(low), number(high)))
    return instances
