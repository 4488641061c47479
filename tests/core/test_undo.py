"""What a step that fails puts back: everything that it may have changed."""

from __future__ import annotations

from typing import Any

import pytest
from muntin.slicing.parts import Threads
from muntin.slicing.undo import parts_of, whole_or_nothing

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import _OnThreads
from muntin.slicing.operator import SlicingOperator
from muntin.windows.base import Window

ROWS = [{"t": t, "k": "ab"[t % 2], "v": t % 5} for t in range(40)]
QUERIES: dict[str, dict[str, Window]] = {
    "on time": {"ten": w.tumbling(10), "more": w.sliding(20, every=5)},
    "sessions": {"visit": w.session(3), "day": w.landmark(0, every=10)},
    "empty windows": {"ten": w.tumbling(10, emit_empty=True)},
    "kept tuples": {"three": w.count(3), "calls": w.punctuation(mt.col("v") > 3)},
}


def engine_of(windows: dict[str, Window]) -> SlicingOperator:
    """An operator that has taken in tuples, late and bad ones too, and emitted windows."""
    query = mt.windows(**windows).aggregate(total=a.sum("v")).by("k")
    op = query.on("t", allowed_lateness=5, late="route", bad="route").operator()
    op.process(ROWS)
    op.advance(30)
    op.process([{"t": None, "k": "a", "v": 1}, {"t": 1, "k": "c", "v": 1}, {"t": 27, "k": "a", "v": 1}])
    op.advance(35)
    op.process([{"t": 33, "k": "a", "v": 1}, {"t": 2, "k": "a", "v": 1}])
    op.flush()
    return op._engine


def attributes(part: Any) -> dict[str, Any]:
    """All of them by name, in slots or not."""
    names = vars(part) if not hasattr(part, "__slots__") else part.__slots__
    return {name: getattr(part, name) for name in names}


@pytest.mark.parametrize("windows", QUERIES.values(), ids=QUERIES)
def test_what_is_changed_in_place_is_named(windows: dict[str, Window]) -> None:
    """Otherwise a list that a failed step has added to would keep what it added."""
    for part in parts_of(engine_of(windows)):
        found = {name for name, value in attributes(part).items() if isinstance(value, list | dict | set)}
        assert found <= set(getattr(part, "IN_PLACE", ())), type(part).__name__


def test_what_is_changed_in_place_on_threads_is_named() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t")
    with Threads.borrowed(2) as threads:
        operator = _OnThreads(query, None, threads)
        operator.process(ROWS)
    engine = operator._engine
    found = {name for name, value in attributes(engine).items() if isinstance(value, list | dict | set)}
    assert found == set(engine.IN_PLACE)


class StepError(Exception):
    pass


def change_everything(engine: SlicingOperator) -> None:
    """As a step would that changes all there is, and fails then."""
    for part in parts_of(engine):
        for name, value in attributes(part).items():
            if isinstance(value, list):
                value.append("more")
            elif isinstance(value, dict):
                value["more"] = "more"
            elif name not in ("in_step", "binding", "live", "windows"):  # which the undo itself reads
                setattr(part, name, None)
    for query in engine.live.queries:
        query.late += 1
    raise StepError


@pytest.mark.parametrize("windows", QUERIES.values(), ids=QUERIES)
def test_everything_that_a_failed_step_changed_is_put_back(windows: dict[str, Window]) -> None:
    """All attributes of all parts are other ones in the step, and the old ones behind it."""
    engine = engine_of(windows)
    parts = parts_of(engine)
    before = [attributes(part) for part in parts]
    contents = [{k: list(v) for k, v in found.items() if isinstance(v, list | dict)} for found in before]
    with pytest.raises(StepError), whole_or_nothing(engine, sliced=True):
        change_everything(engine)
    for part, known, listed in zip(parts, before, contents, strict=True):
        for name, value in attributes(part).items():
            where = f"{type(part).__name__}.{name}"
            if name in listed:
                assert list(value) == listed[name], where
            else:
                assert value is known[name], where
    assert [q.late for q in engine.live.queries] == [q.late for q in engine_of(windows).live.queries]
