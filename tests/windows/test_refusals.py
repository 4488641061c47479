"""Windows that cannot mean anything: every refusal gives the rule, the value and the cure."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError

KM = 'it is in the unit of the column "km", for example 10'

REFUSED: dict[str, Any] = {
    # lengths of time
    'slide must be positive: got "0 seconds"; did you mean tumbling("1 minute")?': lambda: w.sliding(
        "1 minute", every="0 seconds"
    ),
    "length must be positive: got -5; did you mean 5?": lambda: w.tumbling(-5),
    'length must be positive: got 0; for example "1 minute"': lambda: w.tumbling(0),
    'length must be positive: got "-1 minute"; did you mean "1 minute"?': lambda: w.cumulate(
        "-1 minute", "1 second"
    ),
    'length must be positive: got "-10 seconds"; did you mean "10 seconds"?': lambda: w.tumbling(
        dt.timedelta(seconds=-10)
    ),
    'length must be a duration like "1 minute", a timedelta or an integer: got 1.5; '
    'did you mean "1.5 seconds"?': lambda: w.tumbling(1.5),
    'length must be a duration like "1 minute", a timedelta or an integer: got True': lambda: w.tumbling(
        True
    ),
    "length must not exceed 2**60: got 2305843009213693952; use a coarser time column": lambda: w.tumbling(
        2**61
    ),
    "offset must lie within +-2**60: got 2305843009213693952; "
    "one below the length moves the grid as well": lambda: w.tumbling(10, 2**61),
    'length and slide must be of one kind: got "1 minute" and 5; write all of them as durations '
    '("5 seconds") or all as integers of an integer time column': lambda: w.sliding("1 minute", every=5),
    "length must be a multiple of step: got 10 and 3; the next multiple is 12": lambda: w.cumulate(10, 3),
    "step must be positive: got 0; did you mean tumbling(10)?": lambda: w.cumulate(10, 0),
    'gap must be positive: got "0 seconds"; for example "1 minute"': lambda: w.session("0 s"),
    "max_length must be positive: got 0; leave it out for no limit": lambda: w.session(5, 0),
    "max_length must be longer than gap: got 5 and a gap of 10; "
    "did you mean session(5, max_length=10)?": lambda: w.session(10, max_length=5),
    'max_length must be longer than gap: got "10 seconds" and a gap of "10 seconds"; '
    "leave it out for no limit": lambda: w.session("10 s", max_length="10 s"),
    'every must be positive: got 0; for example "1 minute"': lambda: w.landmark(0, every=0),
    'length must be a duration where start is a date: got 10 and "2024-01-01"; did you mean "10 seconds"? '
    "On an integer time column start is an integer too": lambda: w.fixed_band("2024-01-01", 10),
    'emit_empty must be True or False: got "yes"; write emit_empty=True, or leave it out': lambda: w.landmark(
        0, 5, emit_empty="yes"
    ),
    # civil time
    'unit must be "day", "week", "month", "quarter" or "year": got "dya". Did you mean "day"?': lambda: (
        w.calendar("dya")
    ),
    'unit must be "day", "week", "month", "quarter" or "year": got "hour". '
    'For other lengths use tumbling("1 hour").': lambda: w.calendar("hour"),
    'tz must name a time zone: got "Berlin"; did you mean "Europe/Berlin"?': lambda: w.calendar(
        "day", "Berlin"
    ),
    'tz must name a time zone: got "Europe/Lodnon"; did you mean "Europe/London"?': lambda: w.calendar(
        "day", "Europe/Lodnon"
    ),
    'tz must name a time zone: got "CEST"; write a place, like "Europe/Berlin", or "UTC"': lambda: w.calendar(
        "day", "CEST"
    ),
    'tz must name a time zone: got 2; write a place, like "Europe/Berlin", or "UTC"': lambda: w.calendar(
        "day", 2
    ),
    'offset must be a duration: got 6; for example "6 hours"': lambda: w.calendar("day", offset=6),
    'offset must lie inside every day: got "1 day"; give 0 to 1 day, without the latter': lambda: w.calendar(
        "day", offset="24 hours"
    ),
    # numbers of tuples
    "n must be at least 1: got 0; for example 100": lambda: w.count(0),
    "n must be at least 1: got -3; did you mean 3?": lambda: w.count(-3),
    "n must be a whole number: got 2.5; for example 100": lambda: w.count(2.5),
    "n must be a whole number: got 2.0; did you mean 2?": lambda: w.count(2.0),
    "n must be a whole number: got True; for example 100": lambda: w.count(True),
    "every must be at least 1: got 0; leave it out to tumble": lambda: w.count(5, every=0),
    'every must be a whole number: got "5 seconds"; it counts tuples': lambda: w.slide_by_tuple(
        "1 minute", every="5 seconds"
    ),
    "min_count must be at least 1: got 0; for example 100": lambda: w.threshold("speed > 1", min_count=0),
    'emit_partial must be True or False: got "no"; write emit_partial=True, or leave it out': lambda: w.count(
        5, emit_partial="no"
    ),
    # other measures
    'slide must be positive: got 0; did you mean tumbling(10, measure="km")?': lambda: w.sliding(
        10, 0, measure="km"
    ),
    f'length must be a plain number: got "1 minute"; {KM}': lambda: w.tumbling("1 minute", measure="km"),
    f"length must be finite: got inf; {KM}": lambda: w.tumbling(float("inf"), measure="km"),
    f"gap must be a number: got True; {KM}": lambda: w.session(True, measure="km"),
    'measure must be the name of a column: got 7; for example measure="km"': lambda: w.tumbling(5, measure=7),
    'measure must be the name of a column: got ""; for example measure="km"': lambda: w.delta(
        "x", 5, measure=""
    ),
    "lengths on a measure must have at most 15 digits: got 1e-17; use another unit": lambda: w.tumbling(
        1e-17, measure="km"
    ),
    "every must be at least a 1000000th of length: got 1; make it larger": lambda: w.sliding(
        10**9, 1, measure="km"
    ),
    "gap must be below 2**62: got 1e+30; use a coarser unit for the column": lambda: w.session(
        1e30, measure="km"
    ),
    "length must be a multiple of step: got 0.3 and 0.2; the next multiple is 0.4": lambda: w.cumulate(
        0.3, 0.2, measure="km"
    ),
    "max_length must be longer than gap: got 0.5 and a gap of 5; "
    "did you mean session(0.5, max_length=5)?": lambda: w.session(5, max_length=0.5, measure="km"),
    'emit_empty must be left out on another measure: got measure="km"; '
    "leave it out, or lay the windows on time": lambda: w.tumbling(5, measure="km", emit_empty=True),
    # frames
    "by must not be negative: got -1; did you mean 1?": lambda: w.delta("price", by=-1),
    'by must be a plain number: got "2 seconds"; for example 0.5': lambda: w.delta("price", by="2 seconds"),
    "step must be positive: got 0; for example 0.5": lambda: w.boundary("price", step=0),
    "step must be positive: got -2; did you mean 2?": lambda: w.boundary("price", step=-2),
    'aggregate must be an aggregate: got "sum"; for example a.sum("amount")': lambda: w.until("sum", 5),
    "limit must be finite: got nan; for example 100": lambda: w.until(a.sum("x"), float("nan")),
    "limit must be a value: got None; for example 100": lambda: w.until(a.mean("x"), None),
    "punctuation needs a predicate, or both begin and end: got begin; for example "
    "punctuation(\"kind == 'start'\")": lambda: w.punctuation(begin="v > 1"),
    # the user's own
    'function must be a function: got "f"; pass the function itself, not its name': lambda: w.discretize("f"),
    "evict must be a function: got 3; pass the function itself, not its name": lambda: w.trigger(len, 3),
    'columns must be names of columns: got 5; for example columns=["price"]': lambda: w.discretize(
        len, columns=5
    ),
    # arguments of other windows
    "tumbling takes no every: got 5; did you mean sliding(length, every=5)?": lambda: w.tumbling(10, every=5),
    "session takes no emit_empty: got True; only tumbling, sliding, cumulate, calendar, fixed_band and "
    "landmark windows on time lie somewhere when they are empty": lambda: w.session(5, emit_empty=True),
    'count takes no measure: got "km"; tumbling, sliding, cumulate, session, punctuation, threshold, delta, '
    "boundary and until take one": lambda: w.count(5, measure="km"),
    "sliding takes no slide: got 5; it takes length, every, offset, measure, emit_empty. "
    'Did you mean "every"?': (lambda: w.sliding(10, slide=5)),
}


@pytest.mark.parametrize("message", REFUSED, ids=lambda message: message[:40])
def test_a_refusal_gives_the_rule_the_value_and_the_cure(message: str) -> None:
    with pytest.raises(QueryError) as caught:
        REFUSED[message]()
    assert str(caught.value) == message


def test_only_context_free_classes_may_emit_empty_windows() -> None:
    with pytest.raises(QueryError, match="emit_empty must be left out of Visits: got True; only subclasses"):

        class Visits(w.ForwardContextFree):
            emit_empty = True


def test_names_of_columns_may_be_one_text() -> None:
    assert w.discretize(len, columns="price").columns == ("price",)
    assert w.trigger(len, len, columns=["price", "side"]).columns == ("price", "side")


def test_zones_may_be_objects() -> None:
    from zoneinfo import ZoneInfo

    assert w.calendar("day", dt.UTC) == w.calendar("day")
    assert w.calendar("day", ZoneInfo("Europe/Berlin")) == w.calendar("day", "Europe/Berlin")
