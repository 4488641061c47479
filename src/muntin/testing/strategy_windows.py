"""Random windows over the columns that `muntin.testing.strategies` fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from muntin import aggregates as a
from muntin import windows as w
from muntin.expressions import as_expr
from muntin.testing import strategy_code as code
from muntin.testing.strategy_picks import Picks

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
_RUNNING = (
    *(a.sum("i"), a.count(), a.count("f"), a.max("f"), a.sum("f"), a.min("i"), a.mean("i")),
    *(a.sum("i", filter="b"), a.count(filter="not b"), a.mean("f", filter="i > 1")),
)

_DISCRETIZED = (w.discretize(code.begin_at_b, columns=["b"]), w.discretize(code.turnover, columns=["i"]))
_TRIGGERS = (code.three_or_more, code.last_is_b)
_EVICTIONS = (code.keep_four, code.keep_since_b)


def _cumulate(pick: Picks) -> Any:
    step = pick(range(1, 5))
    length, offset = pick.clock.span(step * pick(range(1, 5))), pick.span(_OFFSETS)
    return w.cumulate(length, pick.clock.span(step), offset, emit_empty=pick(_SELDOM))


def _sliding(pick: Picks) -> Any:
    return w.sliding(pick.span(_LENGTHS), pick.span(_LENGTHS), pick.span(_OFFSETS), emit_empty=pick(_SELDOM))


def _calendar(pick: Picks) -> Any:
    unit = pick(["day", "day", "week", "month", "quarter", "year"])
    zone = pick(["Europe/Berlin", "UTC", "Asia/Kolkata"])
    offset = pick((0, 0, "3 hours", "150 minutes"))  # Berlin skips 2:30 once
    return w.calendar(unit, zone, offset, emit_empty=pick((False, False, True)))


def _capped_session(pick: Picks) -> Any:
    gap = pick(_SMALL)
    return w.session(pick.clock.span(gap), max_length=pick.clock.span(gap + pick(range(1, 9))))


def _reaching_session(pick: Picks) -> Any:
    return w.session(as_expr("g"), max_length=pick.span(_LENGTHS) if pick(_SELDOM) else None)


def _measure(pick: Picks) -> str | None:
    return pick(("m", "m", "d")) if pick(_SELDOM) else None


def _measured_periodic(pick: Picks) -> Any:
    length, slide, (measure, unit) = pick(_LENGTHS), pick(_LENGTHS), pick(_MEASURES)
    return w.sliding(length * unit, slide * unit, pick(_OFFSETS), measure=measure)


def _measured_cumulate(pick: Picks) -> Any:
    step, steps, (measure, unit) = pick(range(1, 5)), pick(range(1, 5)), pick(_MEASURES)
    return w.cumulate(step * steps * unit, step * unit, pick(_OFFSETS), measure=measure)


def _measured_session(pick: Picks) -> Any:
    gap, more, (measure, unit) = pick(_SMALL), pick((None, None, 1, 3, 6)), pick(_MEASURES)
    return w.session(gap * unit, max_length=more and (gap + more) * unit, measure=measure)


FAMILIES: dict[str, Sequence[Callable[[Picks], Any]]] = {
    "time": (
        lambda pick: w.tumbling(pick.span(_LENGTHS), pick.span(_OFFSETS), emit_empty=pick(_SELDOM)),
        _sliding,
        _sliding,
        _cumulate,
        lambda pick: w.fixed_band(pick.moment(_STARTS), pick.span(range(1, 21)), emit_empty=pick(_OFTEN)),
        lambda pick: w.landmark(pick.moment(_STARTS), pick.span(range(3, 13)), emit_empty=pick(_OFTEN)),
        lambda pick: code.Uneven(pick.clock.unit, pick((False, False, True))),
    ),
    "calendar": (_calendar,),
    "session": (lambda pick: w.session(pick.span(_SMALL)),),
    "ranks": (
        lambda pick: w.count(
            every=pick((None, 1, 2, 3, 4, 5, 6)), n=pick(range(1, 6)), emit_partial=pick(_OFTEN)
        ),
        lambda pick: w.slide_by_tuple(pick.span(_LENGTHS), every=pick(range(1, 5))),
        lambda pick: w.last(every=pick.span(range(2, 10)), offset=pick.span(_OFFSETS), n=pick(range(1, 5))),
    ),
    "frames": (
        lambda pick: w.punctuation(pick(_PREDICATES), measure=_measure(pick)),
        lambda pick: w.punctuation(begin=pick(_PREDICATES), end=pick(_PREDICATES), measure=_measure(pick)),
        lambda pick: w.threshold(pick(_PREDICATES), min_count=pick(range(1, 4)), measure=_measure(pick)),
        lambda pick: w.delta(pick(["i", "f"]), by=pick(range(5)), measure=_measure(pick)),
        lambda pick: w.boundary(pick(["i", "f"]), pick((1, 2, 3, 4, 0.1, 0.75)), measure=_measure(pick)),
        lambda pick: w.until(pick(_RUNNING), limit=pick(range(1, 7)), measure=_measure(pick)),
        _capped_session,
        _reaching_session,
    ),
    "measures": (_measured_periodic, _measured_cumulate, _measured_session),
    "user": (
        lambda pick: pick(_DISCRETIZED),
        lambda pick: w.trigger(pick(_TRIGGERS), pick(_EVICTIONS), exclusive=pick(_SELDOM), columns=["b"]),
        lambda pick: w.trigger(
            pick((None, *_TRIGGERS)),
            pick(_EVICTIONS),
            every=pick.span(range(2, 10)),
            offset=pick.span(_OFFSETS),
            columns=["b"],
        ),
        lambda pick: pick([code.EveryThird(), code.AroundB()]),
        lambda pick: pick([code.Visits, code.Ticks, code.Glances])(pick.clock.unit),
    ),
}
"""The window types, by what their edges follow."""


def window(pick: Picks, families: Sequence[str]) -> Any:
    """One random window of one of the families, with lengths of the clock of `pick`."""
    return pick(FAMILIES[pick(families)])(pick)
