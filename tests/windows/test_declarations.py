"""What users write: rules, messages, and the way back from a description to the window."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pyarrow.compute as pc
import pytest

from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError
from muntin.expressions import parse
from muntin.timeline import Micros
from muntin.windows.base import Context, Window

EXAMPLES = {
    "tumbling 1 minute": w.tumbling("1 minute"),
    "tumbling 10, offset 3": w.tumbling(10, offset=13),
    "tumbling 1 hour, offset 45 minutes": w.tumbling("1 hour", offset="-15 minutes", emit_empty=True),
    "sliding 10 minutes every 5 seconds": w.sliding("10 minutes", every="5 seconds"),
    "tumbling 1 minute ": w.sliding("1 minute", every=dt.timedelta(minutes=1)),
    "tumbling 0.5 on km": w.tumbling(0.5, measure="km"),
    "sliding 10 every 2, offset 1 on km": w.sliding(10, 2, 1, measure="km"),
    "cumulate 1 hour by 1 minute, offset 5 seconds": w.cumulate("1 hour", "1 minute", "5 seconds"),
    "session 30 seconds": w.session("30 seconds"),
    "session 30 seconds, at most 1 hour": w.session("30 seconds", max_length="1 hour"),
    "session 5 on km": w.session(5, measure="km"),
    "count 100": w.count(100),
    "count 100 every 10": w.count(100, every=10, emit_partial=True),
    "fixed band of 1 day from 2024-01-01T00:00:00+00:00": w.fixed_band("2024-01-01", "1 day"),
    "fixed band of 10 from -5": w.fixed_band(-5, 10),
    "landmark from 1970-01-01T00:00:00+00:00 every 1 hour": w.landmark(0, "1 hour"),
    "calendar week in Europe/Berlin, offset 6 hours": w.calendar("week", "Europe/Berlin", "6 hours"),
    "punctuation where kind == 'start'": w.punctuation(pc.field("kind") == "start"),
    "threshold while speed > 100, at least 3 on km": w.threshold("speed > 100", 3, measure="km"),
    "delta of price by 0.5": w.delta("price", 0.5),
    "delta of price * 2 by 1": w.delta(parse("price * 2"), 1),
    "boundary of height at multiples of 100": w.boundary("height", 100),
    "boundary of col('my height') at multiples of 2": w.boundary("my height", 2),
    "until sum(litres) reaches 100": w.until(a.sum("litres"), 100),
    "until count() reaches 3 on km": w.until(a.count(), 3, measure="km"),
    "range of 1 minute every 10 tuples": w.slide_by_tuple("1 minute", every=10),
    "last 10 every 5 seconds, offset 1 second": w.last(10, "5 seconds", "1 second"),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_windows_describe_themselves(text: str) -> None:
    assert EXAMPLES[text].describe() == text.strip()


@pytest.mark.parametrize("text", EXAMPLES)
def test_parameters_make_an_equal_window(text: str) -> None:
    window = EXAMPLES[text]
    parameters = dict(window.parameters())
    if "expression" in parameters:  # as the reader of query files does
        parameters["column"] = parse(str(parameters.pop("expression")))
    again = getattr(w, window.constructor)(**parameters)
    assert again == window
    assert hash(again) == hash(window)
    assert type(again) is type(window)
    for value in parameters.values():
        assert not isinstance(value, Micros), "a span must be written as text"


@pytest.mark.parametrize("text", EXAMPLES)
def test_windows_are_frozen(text: str) -> None:
    window: Any = EXAMPLES[text]
    name = next(iter(window.__dataclass_fields__))
    with pytest.raises(AttributeError):
        setattr(window, name, 1)


def test_context_and_measure() -> None:
    assert w.tumbling(5).context is Context.FREE
    assert w.count(5).context is Context.FORWARD_FREE
    assert w.last(5, 5).context is Context.FORWARD_AWARE
    assert [x.on_measure for x in (w.tumbling(5), w.count(5), w.tumbling(5, measure="km"))] == [
        False,
        True,
        True,
    ]
    assert [str(e) for e in w.threshold("speed > 100", measure="km").inputs()] == ["speed > 100", "km"]
    assert w.sliding("10 seconds", "5 seconds", "1 second").spans() == (10_000_000, 5_000_000, 1_000_000)


REFUSED = [
    (
        lambda: w.sliding("1 minute", every="0 seconds"),
        'slide must be positive: got "0 seconds"; did you mean tumbling("1 minute")?',
    ),
    (lambda: w.tumbling(-5), "length must be positive: got -5"),
    (
        lambda: w.tumbling(2**61),
        "length must not exceed 2**60: got 2305843009213693952; use a coarser time column",
    ),
    (
        lambda: w.sliding("1 minute", every=5),
        'length and slide must be of one kind: got "1 minute" and 5; write all of them as durations',
    ),
    (
        lambda: w.cumulate(10, 3),
        "length must be a multiple of step: got 10 and 3; the next multiple is 12",
    ),
    (lambda: w.cumulate(10, 0), "step must be positive: got 0; did you mean tumbling(10)?"),
    (
        lambda: w.sliding(10, 0, measure="km"),
        'slide must be positive: got 0; did you mean tumbling(10, measure="km")?',
    ),
    (
        lambda: w.tumbling("1 minute", measure="km"),
        'length must be a plain number: got "1 minute"; it is in the unit of the column "km"',
    ),
    (lambda: w.tumbling(float("inf"), measure="km"), "length must be finite: got inf"),
    (lambda: w.tumbling(5, measure="km", emit_empty=True), "emit_empty must be left out on another measure"),
    (lambda: w.tumbling(5, measure=7), "measure must be the name of a column: got 7"),
    (lambda: w.tumbling(1e-17, measure="km"), "lengths on a measure must have at most 15 digits"),
    (lambda: w.session("0 s"), 'gap must be positive: got "0 seconds"'),
    (lambda: w.session(5, 0), "max_length must be positive: got 0; leave it out for no limit"),
    (lambda: w.session(5, 10, measure="km"), "max_length must be left out on another measure"),
    (lambda: w.session(True, measure="km"), "gap must be a number: got True"),
    (lambda: w.count(0), "n must be at least 1: got 0"),
    (lambda: w.count(2.5), "n must be a whole number: got 2.5"),
    (lambda: w.count(5, every=0), "every must be at least 1: got 0; leave it out to tumble"),
    (
        lambda: w.slide_by_tuple("1 minute", every="5 seconds"),
        'every must be a whole number: got "5 seconds"',
    ),
    (lambda: w.last(0, "5 seconds"), "n must be at least 1: got 0"),
    (lambda: w.threshold("speed > 1", min_count=0), "min_count must be at least 1: got 0"),
    (lambda: w.delta("price", by=-1), "by must not be negative: got -1; did you mean 1?"),
    (lambda: w.delta("price", by="2 seconds"), 'by must be a plain number: got "2 seconds"'),
    (lambda: w.boundary("price", step=0), "step must be positive: got 0"),
    (lambda: w.until("sum", 5), 'aggregate must be an aggregate: got "sum"; for example a.sum("amount")'),
    (lambda: w.until(a.sum("x"), float("nan")), "limit must be a value: got nan"),
    (lambda: w.discretize("f"), 'function must be a function: got "f"'),
    (lambda: w.trigger(len, 3), "evict must be a function: got 3"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_a_refusal_gives_the_rule_the_value_and_the_cure(make: Any, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_equal_grids_are_equal_windows() -> None:
    assert w.tumbling(10, offset=12) == w.sliding(10, every=10, offset=2)
    assert w.delta("price", by=Decimal("0.10")) == w.delta("price", by=Decimal("0.1"))


def test_declaring_windows_loads_no_compiler() -> None:
    code = (
        "import sys; from muntin import windows as w;"
        "w.count(5).initial(3); w.tumbling('1 minute').edges(0, 100);"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_window_class_is_covered() -> None:
    named = {type(window) for window in EXAMPLES.values()} | {w.Discretize, w.Trigger}
    public = {getattr(w, name) for name in w.__all__ if not name.islower()} - {w.Record}
    own = {w.ContextFree, w.ForwardContextFree, w.ForwardContextAware}
    assert public - own == named
    assert all(issubclass(kind, Window) for kind in public)
