"""Windows that are runs of neighbouring tuples, for the oracle: sessions, punctuations and frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from muntin.testing.oracle.aggregates import aggregate_value
from muntin.testing.oracle.expressions import evaluate
from muntin.testing.oracle.tuples import (
    Arrival,
    Instance,
    Tuples,
    View,
    closed_by_next,
    ended,
    runs,
    still_open,
)
from muntin.timeline import INF, span

__all__ = [
    "boundary", "delta", "punctuation", "punctuation_pair", "reaching_session", "session", "threshold",
    "until",
]  # fmt: skip


def session(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Neighbours at most `gap` apart; a tuple `max_length` after the first one starts a new session."""
    longest = getattr(window, "max_length", None) or INF

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        first, last = run[0].position, run[-1].position
        return bool(item.position - last > window.gap or item.position >= first + longest)

    runs_ = runs(tuples, breaks)
    ends = [(run[-1].position + window.gap, run[0].position + longest) for run in runs_]
    if window.measure is not None:
        instances = closed_by_next(runs_, view)
        return [one._replace(high=min(pair)) for one, pair in zip(instances, ends, strict=False)]
    return [  # a tuple at the end of the silence joins; from the limit on no tuple can
        Instance(run[0].time, min(silence, limit), min(silence + 1, limit), run)
        for run, (silence, limit) in zip(runs_, ends, strict=True)
    ]


def reaching_session(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Ranges from each tuple to its time plus its own gap; those that touch make a session."""
    longest = getattr(window, "max_length", None) or INF

    def reach(run: Sequence[Arrival]) -> int:
        gaps = [evaluate(window.gap, item.row) for item in run]
        return max(item.time + int(span(gap, "gap")) for item, gap in zip(run, gaps, strict=True))

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        return item.time > reach(run) or item.time >= run[0].time + longest

    ends = [(run, reach(run), run[0].time + longest) for run in runs(tuples, breaks)]
    return [Instance(run[0].time, min(far, limit), min(far + 1, limit), run) for run, far, limit in ends]


def punctuation(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """A tuple where the predicate is true starts a window; null is not true."""
    return closed_by_next(runs(tuples, lambda run, item: evaluate(window.predicate, item.row) is True), view)


def punctuation_pair(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """From a tuple where `begin` is true to one where `end` is true, both included."""
    instances: list[Instance] = []
    content: Tuples = ()
    for item in tuples:
        if content or evaluate(window.begin, item.row) is True:
            content = (*content, item)
            if evaluate(window.end, item.row) is True:
                instances.append(ended(content, item.time + 1, item.place))
                content = ()
    return instances + still_open([content] if content else [], view)


def threshold(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """The runs in which the predicate holds, unless too short."""

    def holds(item: Arrival) -> bool:
        return evaluate(window.predicate, item.row) is True

    runs_ = runs(tuples, lambda run, item: holds(item) != holds(run[-1]))
    frames = [frame for frame in closed_by_next(runs_, view) if holds(frame.content[0])]
    return [frame for frame in frames if len(frame.content) >= window.min_count]


def delta(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Until a value is more than `by` away from the first one of the frame."""

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        numbers = _numbers(window, [*run, item])
        return any(abs(number - numbers[0]) > window.by for number in numbers)

    return closed_by_next(runs(tuples, breaks), view)


def boundary(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Until a value is between other multiples of `step` than the first one of the frame."""

    def multiple(value: Any) -> int:
        # Of the decimal numbers that the user wrote: 0.3 is the third multiple of 0.1.
        return math.floor(Fraction(str(value)) / Fraction(str(window.step)))

    def breaks(run: list[Arrival], item: Arrival) -> bool:
        return len({multiple(value) for value in _numbers(window, [*run, item])}) > 1

    return closed_by_next(runs(tuples, breaks), view)


def _numbers(window: Any, run: Sequence[Arrival]) -> list[Any]:
    """The values but null and NaN, which neither start nor end a frame."""
    values = [evaluate(window.column, item.row) for item in run]
    return [value for value in values if value is not None and value == value]


def until(window: Any, tuples: Tuples, view: View) -> list[Instance]:
    """Until the aggregate of the frame reaches the limit; the tuple that does it is the last one."""

    def reached(run: Sequence[Arrival]) -> bool:
        value = aggregate_value(window.aggregate, run)
        # NaN is greater than every number, and so than the limit.
        return value is not None and bool(value >= window.limit or value != value)

    runs_ = runs(tuples, lambda run, item: reached(run))
    ended_frames = [ended(piece, piece[-1].time + 1, piece[-1].place) for piece in runs_ if reached(piece)]
    return ended_frames + still_open([piece for piece in runs_[-1:] if not reached(piece)], view)
