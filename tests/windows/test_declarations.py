"""What users write: rules, messages, and the way back from a description to the window."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from dataclasses import is_dataclass
from decimal import Decimal
from typing import Any

import pyarrow.compute as pc
import pytest

from muntin import aggregates as a
from muntin import windows as w
from muntin.expressions import parse
from muntin.timeline import Micros
from muntin.windows.base import Context, Window
from muntin.windows.cutty import Discretize
from muntin.windows.triggers import TimedTrigger, Trigger

EXAMPLES = {
    "tumbling 1 minute": w.tumbling("1 minute"),
    "tumbling 10, offset 3": w.tumbling(10, offset=13),
    "tumbling 1 hour, offset 45 minutes, also empty": w.tumbling(
        "1 hour", offset="-15 minutes", emit_empty=True
    ),
    "sliding 10 minutes every 5 seconds": w.sliding("10 minutes", every="5 seconds"),
    "tumbling 1 minute ": w.sliding("1 minute", every=dt.timedelta(minutes=1)),
    "tumbling 0.5 on km": w.tumbling(0.5, measure="km"),
    "sliding 10 every 2, offset 1 on km": w.sliding(10, 2, 1, measure="km"),
    "cumulate 1 hour by 1 minute, offset 5 seconds, also empty": w.cumulate(
        "1 hour", "1 minute", "5 seconds", emit_empty=True
    ),
    "session 30 seconds": w.session("30 seconds"),
    "session 30 seconds, at most 1 hour": w.session("30 seconds", max_length="1 hour"),
    "session timeout": w.session(pc.field("timeout")),
    "session seconds(timeout * 60), at most 1 hour": w.session(parse("seconds(timeout * 60)"), "1 hour"),
    "session 5 on km": w.session(5, measure="km"),
    "session 0.5, at most 10 on km": w.session(0.5, max_length=10, measure="km"),
    "cumulate 100 by 10 on km": w.cumulate(100, 10, measure="km"),
    "cumulate 0.3 by 0.1, offset 0.05 on km": w.cumulate(0.3, 0.1, 0.05, measure="km"),
    "count 100": w.count(100),
    "count 100 every 10, also partial": w.count(100, every=10, emit_partial=True),
    "fixed band of 1 day from 2024-01-01T00:00:00+00:00": w.fixed_band("2024-01-01", "1 day"),
    "fixed band of 10 from -5, also empty": w.fixed_band(-5, 10, emit_empty=True),
    "landmark from 0 every 10, also empty": w.landmark(0, 10, emit_empty=True),
    "calendar day in UTC, also empty": w.calendar("day", emit_empty=True),
    "landmark from 1970-01-01T00:00:00+00:00 every 1 hour": w.landmark(0, "1 hour"),
    "calendar week in Europe/Berlin, offset 6 hours": w.calendar("week", "Europe/Berlin", "6 hours"),
    "punctuation where kind == 'start'": w.punctuation(pc.field("kind") == "start"),
    "punctuation from speed > 100 to speed < 9 on km": w.punctuation(
        begin="speed > 100", end="speed < 9", measure="km"
    ),
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
    for key in [name for name in parameters if name.endswith("expression")]:  # as the reader of files does
        argument = "column" if key == "expression" else key.removesuffix("_expression")
        parameters[argument] = parse(str(parameters.pop(key)))
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
    named = {type(window) for window in EXAMPLES.values()} | {Discretize, Trigger, TimedTrigger}
    kinds, shipped = [Window], set()
    for kind in kinds:
        kinds += kind.__subclasses__()
        # With slots, a dataclass is a second class of its name.
        if is_dataclass(kind) and getattr(sys.modules[kind.__module__], kind.__name__, None) is kind:
            shipped |= {kind} if kind.__module__.startswith("muntin.windows.") else set()
    assert shipped == named
    assert {kind.constructor for kind in shipped if isinstance(kind.constructor, str)} < set(w.__all__)
