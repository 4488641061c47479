"""Punctuations and frames, for the oracle: values decide where windows begin and end."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from muntin.testing.oracle.aggregates import aggregate_value
from muntin.testing.oracle.expressions import evaluate
from muntin.testing.oracle.tuple_windows import place_of
from muntin.testing.oracle.tuples import Arrival, Instance, Tuples, View, closed_by_next, runs, still_open

__all__ = ["boundary", "delta", "on_measure", "punctuation", "threshold", "until"]


def punctuation(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """A tuple where the predicate is true starts a window; null is not true."""
    return closed_by_next(runs(tuples, lambda run, item: evaluate(window.predicate, item.row) is True), view)


def threshold(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The runs in which the predicate holds, unless too short."""

    def holds(item: Arrival) -> bool:
        return evaluate(window.predicate, item.row) is True

    pieces = runs(tuples, lambda run, item: holds(item) != holds(run[-1]))
    frames = [frame for frame in closed_by_next(pieces, view) if holds(frame.content[0])]
    return [frame for frame in frames if len(frame.content) >= window.min_count]


def delta(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Until a value is more than `by` away from the first one of the frame."""

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        reference, value = _first_number(window, run), _number(window, item)
        return reference is not None and value is not None and bool(abs(value - reference) > window.by)

    return closed_by_next(runs(tuples, breaks), view)


def boundary(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Until a value is between other multiples of `step` than the first one of the frame."""

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        reference, value = _first_number(window, run), _number(window, item)
        if reference is None or value is None:
            return False
        return _multiple(value, window.step) != _multiple(reference, window.step)

    return closed_by_next(runs(tuples, breaks), view)


def _multiple(value: Any, step: Any) -> int:
    """floor(value / step) of the decimal numbers that were written: 0.3 is the third multiple of 0.1."""
    return math.floor(Fraction(str(value)) / Fraction(str(step)))


def _number(window: Any, item: Arrival) -> Any:
    """The value, or None for a null or NaN, which neither starts nor ends a frame."""
    value = evaluate(window.column, item.row)
    return None if value is None or value != value else value


def _first_number(window: Any, run: list[Arrival]) -> Any:
    return next((_number(window, item) for item in run if _number(window, item) is not None), None)


def until(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Until the aggregate of the frame reaches the limit; the tuple that does it is the last one."""

    def reached(piece: Tuples) -> bool:
        value = aggregate_value(window.aggregate, piece)
        # NaN is greater than every number, and so than the limit.
        return value is not None and bool(value >= window.limit or value != value)

    instances = []
    frame: Tuples = ()
    for item in tuples:
        frame = (*frame, item)
        if reached(frame):
            instances.append(Instance(frame[0].time, item.time + 1, item.time + 1, frame))
            frame = ()
    return instances + (still_open([frame], view) if frame else [])


def on_measure(window: Any, tuples: Tuples, instances: list[Instance]) -> list[Instance]:
    """The same frames, with the measure at their first tuple and at the tuple that ended them."""
    at = place_of(window, tuples)
    numbers = [item.seq for item in tuples]
    result = []
    for frame in instances:
        ending = numbers.index(frame.content[-1].seq)
        if not frame.open and type(window).__name__ != "Until":
            ending += 1  # the tuple that starts the next one
        result.append(frame._replace(low=at[frame.content[0].seq], high=at[numbers[ending]]))
    return result
