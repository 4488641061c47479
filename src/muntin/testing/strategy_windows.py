"""Random windows over the columns that `muntin.testing.strategies` fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from muntin import aggregates as a
from muntin import windows as w
from muntin.testing import strategy_code as code
from muntin.testing.strategy_picks import Clock, Picks

__all__ = ["FAMILIES", "window"]

_SMALL = range(1, 8)
_LENGTHS = range(1, 13)
_STARTS = range(-10, 31)
_OFFSETS = (0, 0, 0, 1, 3, -2, 20)
_OFTEN = (False, True)
_SELDOM = (False, False, False, False, False, True)
_MEASURES = (("m", 1), ("m", 1), ("d", 1), ("d", 0.5))
"""Columns to lay windows on, and a unit for lengths there: `m` holds integers, `d` fractions."""
_PREDICATES = ("b", "i > 1", "f < 1 or s == 'b'", "not b", "s in ['a', 'zz']", "i % 2 == 0")


def _tumbling(pick: Picks, clock: Clock) -> Any:
    return w.tumbling(clock.span(pick(_LENGTHS)), clock.span(pick(_OFFSETS)), emit_empty=pick(_SELDOM))


def _sliding(pick: Picks, clock: Clock) -> Any:
    length, slide, offset = (clock.span(pick(spans)) for spans in (_LENGTHS, _LENGTHS, _OFFSETS))
    return w.sliding(length, slide, offset, emit_empty=pick(_SELDOM))


def _cumulate(pick: Picks, clock: Clock) -> Any:
    step = pick(range(1, 5))
    length, offset = clock.span(step * pick(range(1, 5))), clock.span(pick(_OFFSETS))
    return w.cumulate(length, clock.span(step), offset, emit_empty=pick(_SELDOM))


def _fixed_band(pick: Picks, clock: Clock) -> Any:
    return w.fixed_band(clock.value(pick(_STARTS)), clock.span(pick(range(1, 21))), emit_empty=pick(_OFTEN))


def _landmark(pick: Picks, clock: Clock) -> Any:
    return w.landmark(clock.value(pick(_STARTS)), clock.span(pick(range(3, 13))), emit_empty=pick(_OFTEN))


def _calendar(pick: Picks, clock: Clock) -> Any:
    unit = pick(["day", "day", "week", "month", "quarter", "year"])
    zone = pick(["Europe/Berlin", "UTC", "Asia/Kolkata"])
    offset = pick((0, 0, "3 hours", "150 minutes"))  # Berlin skips 2:30 once
    return w.calendar(unit, zone, offset, emit_empty=pick((False, False, True)))


def _session(pick: Picks, clock: Clock) -> Any:
    return w.session(clock.span(pick(_SMALL)))


def _capped_session(pick: Picks, clock: Clock) -> Any:
    gap = pick(_SMALL)
    return w.session(clock.span(gap), max_length=clock.span(gap + pick(range(1, 9))))


def _count(pick: Picks, clock: Clock) -> Any:
    every = pick((None, 1, 2, 3, 4, 5, 6))
    return w.count(pick(range(1, 6)), every=every, emit_partial=pick(_OFTEN))


def _slide_by_tuple(pick: Picks, clock: Clock) -> Any:
    return w.slide_by_tuple(clock.span(pick(_LENGTHS)), every=pick(range(1, 5)))


def _last(pick: Picks, clock: Clock) -> Any:
    every, offset = clock.span(pick(range(2, 10))), clock.span(pick(_OFFSETS))
    return w.last(pick(range(1, 5)), every=every, offset=offset)


def _measure(pick: Picks) -> str | None:
    return pick(("m", "m", "d")) if pick(_SELDOM) else None


def _punctuation(pick: Picks, clock: Clock) -> Any:
    return w.punctuation(pick(_PREDICATES), measure=_measure(pick))


def _threshold(pick: Picks, clock: Clock) -> Any:
    return w.threshold(pick(_PREDICATES), min_count=pick(range(1, 4)), measure=_measure(pick))


def _delta(pick: Picks, clock: Clock) -> Any:
    return w.delta(pick(["i", "f"]), by=pick(range(5)), measure=_measure(pick))


def _boundary(pick: Picks, clock: Clock) -> Any:
    return w.boundary(pick(["i", "f"]), step=pick((1, 2, 3, 4, 0.1, 0.75)), measure=_measure(pick))


def _until(pick: Picks, clock: Clock) -> Any:
    running = [a.sum("i"), a.count(), a.count("f"), a.max("f"), a.sum("f"), a.min("i"), a.mean("i")]
    running += [a.sum("i", filter="b"), a.count(filter="not b"), a.mean("f", filter="i > 1")]
    return w.until(pick(running), limit=pick(range(1, 7)), measure=_measure(pick))


def _measured_periodic(pick: Picks, clock: Clock) -> Any:
    length, slide = pick(_LENGTHS), pick(_LENGTHS)
    measure, unit = pick(_MEASURES)
    return w.sliding(length * unit, slide * unit, pick(_OFFSETS), measure=measure)


def _measured_cumulate(pick: Picks, clock: Clock) -> Any:
    step, steps = pick(range(1, 5)), pick(range(1, 5))
    measure, unit = pick(_MEASURES)
    return w.cumulate(step * steps * unit, step * unit, pick(_OFFSETS), measure=measure)


def _measured_session(pick: Picks, clock: Clock) -> Any:
    gap, more = pick(_SMALL), pick((None, None, 1, 3, 6))
    measure, unit = pick(_MEASURES)
    max_length = None if more is None else (gap + more) * unit
    return w.session(gap * unit, max_length=max_length, measure=measure)


def _discretize(pick: Picks, clock: Clock) -> Any:
    function, column = pick([(code.begin_at_b, "b"), (code.turnover, "i")])
    return w.discretize(function, columns=[column])


def _trigger(pick: Picks, clock: Clock) -> Any:
    fires = pick([code.three_or_more, code.last_is_b])
    return w.trigger(fires, pick([code.keep_four, code.keep_since_b]), columns=["b"])


def _user_context_free(pick: Picks, clock: Clock) -> Any:
    return code.Uneven(1 if clock.origin is None else 3_600_000_000, pick((False, False, True)))


def _user_forward(pick: Picks, clock: Clock) -> Any:
    return pick([code.EveryThird(), code.AroundB()])


FAMILIES: dict[str, Sequence[Callable[[Picks, Clock], Any]]] = {
    "time": (_tumbling, _sliding, _sliding, _cumulate, _fixed_band, _landmark, _user_context_free),
    "calendar": (_calendar,),
    "session": (_session,),
    "ranks": (_count, _slide_by_tuple, _last),
    "frames": (_punctuation, _threshold, _delta, _boundary, _until, _capped_session),
    "measures": (_measured_periodic, _measured_cumulate, _measured_session),
    "user": (_discretize, _trigger, _user_forward),
}
"""The window types, by what their edges follow."""


def window(pick: Picks, clock: Clock, families: Sequence[str]) -> Any:
    """One random window of one of the families."""
    family = pick(families)
    return pick(FAMILIES[family])(pick, clock)
