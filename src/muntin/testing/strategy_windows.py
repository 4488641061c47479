"""Random windows and aggregates over the columns that `muntin.testing.strategies` fills."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from muntin import aggregates as a
from muntin import windows as w
from muntin.windows import ContextFree, ForwardContextAware, ForwardContextFree

__all__ = ["AGGREGATES", "FAMILIES", "INTEGERS", "STAMPS", "Clock", "Picks", "window"]


class Clock(NamedTuple):
    """The time column: integers, or timestamps, in which one unit is an hour."""

    type: pa.DataType
    origin: int | None = None

    def span(self, units: int) -> Any:
        """A length of time as a user writes it."""
        return units if self.origin is None else dt.timedelta(hours=units)

    def inside(self, units: int) -> int:
        """A point in time as it is inside."""
        return units if self.origin is None else (self.origin + units) * 3_600_000_000

    def value(self, units: int) -> Any:
        """A point in time as the column holds it."""
        if self.origin is None:
            return units
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=self.origin + units)
        return moment if self.type.tz else moment.replace(tzinfo=None)


INTEGERS = Clock(pa.int64())
"""Integer times around zero."""

# Berlin changes to summer time on 2024-03-31 at 01:00 UTC, 475,441 hours after the epoch.
STAMPS = tuple(
    Clock(pa.timestamp(unit, zone), 475_430)
    for unit, zone in (("us", "UTC"), ("ms", None), ("s", "Europe/Berlin"))
)
"""Timestamps of several units and zones around a change to summer time."""


class Picks:
    """Decodes one drawn integer into a series of choices; 0 picks the first of everything.

    One draw instead of many: hypothesis draws an integer as fast as a bool, and
    shrinks it towards 0, the simplest choices.

    >>> pick = Picks(7)
    >>> pick("abc"), pick(range(1, 5)), pick([True, False])
    ('b', 3, True)
    """

    def __init__(self, code: int) -> None:
        self._code = code

    def __call__(self, options: Sequence[Any]) -> Any:
        self._code, index = divmod(self._code, len(options))
        return options[index]


_SMALL = range(1, 8)
_LENGTHS = range(1, 13)
_OFFSETS = (0, 0, 0, 1, 3, -2, 20)
_SELDOM = (False, False, False, False, False, True)
_PREDICATES = ("b", "i > 1", "f < 1 or s == 'b'", "not b", "s in ['a', 'zz']", "i % 2 == 0")


# ---- code that a user might write --------------------------------------------------------


def _begin_at_b(record: Any) -> tuple[int, int]:
    """A window begins where b is true, and the oldest one ends where b is false."""
    return (1, 0) if record["b"] else (0, 1 if record["b"] is False else 0)


def _turnover(record: Any) -> tuple[int, int]:
    """Some windows end and some begin, overlapping."""
    value = record["i"] or 0
    return int(value > 0), abs(value) % 3


def _three_or_more(buffer: Any) -> bool:
    return len(buffer) >= 3


def _last_is_b(buffer: Any) -> bool:
    return buffer[-1]["b"] is True


def _keep_four(buffer: Any) -> int:
    return max(0, len(buffer) - 4)


def _keep_since_b(buffer: Any) -> int:
    """All before the last record where b is false leave."""
    marks = [number for number, record in enumerate(buffer) if record["b"] is False]
    return marks[-1] if marks else 0


class Uneven(ContextFree):
    """Shifts of 3 and 4 units, and weeks of 7 over them."""

    def __init__(self, hours: int, emit_empty: bool) -> None:
        self.unit = hours
        self.emit_empty = emit_empty

    def __repr__(self) -> str:
        return f"Uneven({self.unit}, {self.emit_empty})"

    def next_edge(self, time: int) -> int:
        week, rest = divmod(time, 7 * self.unit)
        return 7 * self.unit * week + (3 * self.unit if rest < 3 * self.unit else 7 * self.unit)

    def containing(self, time: int) -> list[tuple[int, int]]:
        start = time // (7 * self.unit) * 7 * self.unit
        middle, end = start + 3 * self.unit, start + 7 * self.unit
        return [(start, end), (start, middle) if time < middle else (middle, end)]


class EveryThird(ForwardContextFree):
    """Every third record begins a window that takes five records."""

    def __repr__(self) -> str:
        return "EveryThird()"

    def initial_state(self) -> int:
        return 0

    def observe(self, state: int, record: Any) -> tuple[int, int, int]:
        return state + 1, int(state % 3 == 0), int(state >= 5 and state % 3 == 2)


class AroundB(ForwardContextAware):
    """Where b is true: the two records before it, and itself."""

    columns = ("b",)

    def __repr__(self) -> str:
        return "AroundB()"

    def observe(self, state: Any, record: Any) -> tuple[Any, list[tuple[int, int]]]:
        return state, [(max(0, record.rank - 2), record.rank + 1)] if record["b"] else []

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 2)


# ---- windows -----------------------------------------------------------------------------


def _tumbling(pick: Picks, clock: Clock) -> Any:
    return w.tumbling(clock.span(pick(_LENGTHS)), clock.span(pick(_OFFSETS)), emit_empty=pick(_SELDOM))


def _sliding(pick: Picks, clock: Clock) -> Any:
    return w.sliding(
        clock.span(pick(_LENGTHS)),
        clock.span(pick(_LENGTHS)),
        clock.span(pick(_OFFSETS)),
        emit_empty=pick(_SELDOM),
    )


def _cumulate(pick: Picks, clock: Clock) -> Any:
    step = pick(range(1, 5))
    length, offset = clock.span(step * pick(range(1, 5))), clock.span(pick(_OFFSETS))
    return w.cumulate(length, clock.span(step), offset, emit_empty=pick(_SELDOM))


def _start(pick: Picks, clock: Clock) -> Any:
    units = pick(range(-10, 31))
    return units if clock.origin is None else clock.value(units)


def _fixed_band(pick: Picks, clock: Clock) -> Any:
    return w.fixed_band(_start(pick, clock), clock.span(pick(range(1, 21))), emit_empty=pick((False, True)))


def _landmark(pick: Picks, clock: Clock) -> Any:
    return w.landmark(_start(pick, clock), clock.span(pick(range(3, 13))), emit_empty=pick((False, True)))


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
    return w.count(pick(range(1, 6)), every=every, emit_partial=pick((False, True)))


def _slide_by_tuple(pick: Picks, clock: Clock) -> Any:
    return w.slide_by_tuple(clock.span(pick(_LENGTHS)), every=pick(range(1, 5)))


def _last(pick: Picks, clock: Clock) -> Any:
    every, offset = clock.span(pick(range(2, 10))), clock.span(pick(_OFFSETS))
    return w.last(pick(range(1, 5)), every=every, offset=offset)


def _measure(pick: Picks) -> str | None:
    return "m" if pick(_SELDOM) else None


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
    return w.sliding(length, slide, pick(_OFFSETS), measure="m")


def _measured_cumulate(pick: Picks, clock: Clock) -> Any:
    step = pick(range(1, 5))
    return w.cumulate(step * pick(range(1, 5)), step, pick(_OFFSETS), measure="m")


def _measured_session(pick: Picks, clock: Clock) -> Any:
    gap = pick(_SMALL)
    return w.session(gap, max_length=pick((None, None, gap + 1, gap + 3, gap + 6)), measure="m")


def _discretize(pick: Picks, clock: Clock) -> Any:
    function, column = pick([(_begin_at_b, "b"), (_turnover, "i")])
    return w.discretize(function, columns=[column])


def _trigger(pick: Picks, clock: Clock) -> Any:
    fires = pick([_three_or_more, _last_is_b])
    return w.trigger(fires, pick([_keep_four, _keep_since_b]), columns=["b"])


def _user_context_free(pick: Picks, clock: Clock) -> Any:
    return Uneven(1 if clock.origin is None else 3_600_000_000, pick((False, False, True)))


def _user_forward(pick: Picks, clock: Clock) -> Any:
    return pick([EveryThird(), AroundB()])


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


# ---- aggregates --------------------------------------------------------------------------


def _longest(p: str, q: str) -> str:
    return q if len(q) > len(p) else p


def _chained(p: str, q: str) -> str:
    return p + q


def _lettered(i: int, b: bool) -> tuple[int, int]:
    return (i if b else -1, 7)


def _rolled(p: tuple[int, int], q: tuple[int, int]) -> tuple[int, int]:
    """A rolling hash, which depends on the order."""
    return ((p[0] * q[1] + q[0]) % 1_000_003, p[1] * q[1] % 1_000_003)


AGGREGATES = {
    "n": a.count(),
    "n_f": a.count("f"),
    "sum_i": a.sum("i"),
    "sum_f": a.sum("f"),
    "min_i": a.min("i"),
    "max_f": a.max("f"),
    "min_s": a.min("s"),
    "max_b": a.max("b"),
    "mean_i": a.mean("i"),
    "mean_f": a.mean("f"),
    "var_i": a.variance("i"),
    "dev_f": a.stddev("f", population=True),
    "first_s": a.first("s"),
    "first_i": a.first("i", ignore_nulls=True),
    "last_f": a.last("f"),
    "last_s": a.last("s", ignore_nulls=True),
    "top": a.arg_max("s", by="i"),
    "low": a.arg_min("id", by="f"),
    "all_i": a.collect("i"),
    "all_s": a.collect("s"),
    "ids": a.collect("id"),
    "median": a.median("f"),
    "p25": a.quantile("i", 0.25),
    "spread": a.percentiles("f", [0.9, 0.1, 0.5]),
    "second": a.nth("s", 2),
    "third": a.nth("i", 3, ignore_nulls=True),
    "m4_f": a.m4("f"),
    "m4_s": a.m4("s", filter="i > 0"),
    "joined": a.concat("s", separator=", "),
    "set_f": a.collect_set("f"),
    "set_s": a.collect_set("s", filter="not b"),
    "users": a.count_distinct("s"),
    "levels": a.count_distinct("i"),
    "pairs": a.count_distinct("s", "i"),
    "mode_i": a.mode("i"),
    "mode_s": a.mode("s"),
    "top_f": a.top_k("f", 2),
    "top_ids": a.top_k("id", 3, by="s"),
    "bins": a.histogram("f", bins=3),
    "edges": a.histogram("i", edges=[-3, 0, 1, 9]),
    "about_q": a.approx_quantile("f", 0.7),
    "about_n": a.approx_count_distinct("s"),
    "about_n_f": a.approx_count_distinct("f", filter="b"),
    "theta": a.theta("i"),
    "frequent": a.frequent_items("s"),
    "counted": a.count_min("i", [2, 5, 7]),
    "bloom": a.bloom("s", size=100),
    "longest": a.aggregate("s", lift=str, combine=_longest, commutative=False, name="longest"),
    "n_if": a.count_if("i > 1"),
    "every": a.every("b"),
    "some": a.some("f < 1 or s == 'b'"),
    "bits_and": a.bit_and("i"),
    "bits_or": a.bit_or("i"),
    "bits_xor": a.bit_xor("id"),
    "min_n": a.min_count("i"),
    "max_n": a.max_count("f"),
    "max_n_s": a.max_count("s"),
    "growth": a.geometric_mean("f"),
    "growth_i": a.geometric_mean("i", filter="i > 0"),
    "weighed": a.weighted_mean("f", weight="i"),
    "cov": a.covariance("i", "id"),
    "cov_pop": a.covariance("f", "i", population=True),
    "corr": a.correlation("i", "id"),
    "skew_i": a.skewness("i"),
    "skew_f": a.skewness("f"),
    "kurt": a.kurtosis("id"),
    "bayes": a.naive_bayes("s", columns=["i", "f"]),
    "bayes_b": a.naive_bayes("b", columns=["id"]),
    "n_b": a.count(filter="b"),
    "n_f_b": a.count("f", filter="b"),
    "sum_i_b": a.sum("i", filter="b"),
    "product": a.sum(a.col("i") * a.col("f"), filter="i > 1"),
    "min_s_i": a.min("s", filter="i > 1"),
    "dev_i_b": a.stddev("i", filter="not b"),
    "first_s_b": a.first("s", filter="b"),
    "all_i_f": a.collect("i", filter="f < 1 or s == 'b'"),
    "median_b": a.median("i", filter="b"),
    "chained_b": a.aggregate(
        "s", lift=str, combine=_chained, commutative=False, name="chained", filter="not b"
    ),
    "chained": a.aggregate("s", lift=str, combine=_chained, commutative=False, name="chained"),
    "most": a.aggregate("i", lift=int, combine=max, name="most"),
    "squares": a.aggregate("i", lift=lambda v: v * v, combine=operator.add, compile=True, name="squares"),
    "rolled": a.aggregate(
        "i", "b", lift=_lettered, combine=_rolled, lower=lambda p: p[0], commutative=False, compile=True
    ),
}
"""The aggregates that random queries choose from, by the name of their result."""
