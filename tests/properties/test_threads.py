"""Several threads and one: the same rows, in the same order, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import muntin as mt
from muntin.errors import MuntinError
from muntin.slicing.emission import intermediate_watermarks, result_order, results
from muntin.slicing.parallel import by_time, key_numbering, steps, time_ranges
from muntin.slicing.parallel.compiled_queries import is_compiled
from muntin.testing.engines import EmbeddedEngine
from muntin.testing.scenarios import Scenario, play
from muntin.testing.strategies import scenarios
from muntin.testing.strategy_aggregates import AGGREGATES
from muntin.windows import tumbling

COMPILED = [
    name
    for name, aggregate in AGGREGATES.items()
    if is_compiled(mt.windows(ten=tumbling(10)).aggregate(x=aggregate).by("k").on("t"))
]

SOME = settings(
    max_examples=settings.default.max_examples,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def outcome(query: Any, table: pa.Table, threads: int) -> tuple[object, str]:
    """All that can be seen of a run; as text, where NaN equals NaN and -0.0 differs from 0.0."""
    try:
        result = query.run(table, threads=threads)
    except MuntinError as error:
        return type(error), str(error)
    return result.schema, repr(result.to_pylist())


@contextmanager
def little_is_shared(few: int) -> Iterator[None]:
    """`few` tuples, slices and rows are enough to be shared by threads."""
    small: list[tuple[Any, str, int]] = [
        (steps, name, few) for name in ("LEAST_TUPLES", "LEAST_SLICES", "LEAST_ROWS")
    ]
    small += [(time_ranges, "BLOCK", 4), (result_order, "LONG", 1), (results, "LEAST_FOR_RUNS", few)]
    small += [
        (by_time, "LONG", 1),
        (intermediate_watermarks, "WINDOWS_PER_STEP", 10 * few),
        (intermediate_watermarks, "WINDOWS_PER_KEY", 1),
    ]
    small += [(intermediate_watermarks, "LEAST_SLICES", few), (key_numbering, "FIRST", few)]
    with ExitStack() as stack:
        for module, name, value in small:
            stack.enter_context(patch.object(module, name, value))
        yield


@SOME
@given(
    scenario=scenarios(early=True, aggregates=COMPILED), few=st.sampled_from([1, 1, 5, steps.LEAST_TUPLES])
)
def test_threads_do_not_show(scenario: Scenario, few: int) -> None:
    """However little there is to do."""
    note(repr(scenario))
    rows = [row for action in scenario.actions if action.name == "process" for row in action.value]
    table = pa.Table.from_pylist(rows, schema=scenario.schema)
    with little_is_shared(few):
        assert outcome(scenario.query, table, 3) == outcome(scenario.query, table, 1)


def played(engine: EmbeddedEngine, action: Any) -> str:
    try:
        if action.name == "add":
            return repr(engine.add(action.value, action.window, None))
        return repr(play(engine, action))
    except MuntinError as error:
        return f"{type(error).__name__}: {error}"


@SOME
@given(
    scenario=st.booleans().flatmap(lambda early: scenarios(early=early, live=True, aggregates=COMPILED)),
    few=st.sampled_from([1, 1, 5]),
)
def test_threads_of_an_operator_do_not_show(scenario: Scenario, few: int) -> None:
    """Step by step, with late tuples, and windows that are added and removed."""
    note(repr(scenario))
    several, one = (EmbeddedEngine(scenario.query, scenario.schema, threads=n) for n in (3, 1))
    with little_is_shared(few):
        for number, action in enumerate(scenario.actions):
            assert played(several, action) == played(one, action), f"step {number}, {action}"
        assert repr(several.take_late()) == repr(one.take_late())


@settings(SOME, max_examples=settings.default.max_examples // 4)
@given(scenario=scenarios(stamps=True))
def test_threads_do_not_show_where_some_code_is_interpreted(scenario: Scenario) -> None:
    note(repr(scenario))
    rows = [row for action in scenario.actions if action.name == "process" for row in action.value]
    table = pa.Table.from_pylist(rows, schema=scenario.schema)
    assert outcome(scenario.query, table, 2) == outcome(scenario.query, table, 1)
