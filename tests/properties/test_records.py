"""Single records wait in a buffer: the results are the same as with each of them sliced at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.connectors.embedded import Operator
from muntin.errors import DataError
from muntin.testing.rows import same_value
from muntin.testing.scenarios import Scenario
from muntin.testing.strategies import scenarios

FORESEEABLE = ("time", "session", "session")
WRONG: dict[str, list[Any]] = {"t": [None, "soon", 2**70], "i": ["many", 1.5], "f": ["x"], "k": [5]}
LAGS = st.sampled_from([0, 0, 2, 5, 12, 40])
FEWER = settings(max_examples=settings.default.max_examples // 5, report_multiple_bugs=False)


def outcome(op: Operator, data: object) -> Any:
    """What a step tells: its rows, or its error."""
    try:
        return op.process(data).to_pylist()
    except DataError as error:
        return str(error)


def state(op: Operator) -> list[Any]:
    """What else can be seen of an operator."""
    stats = op.stats()
    outputs = [op.take_late().to_pylist(), op.take_bad().to_pylist()]
    return [op.watermark, stats.tuples, stats.late, stats.bad, *outputs]


def rows_of(scenario: Scenario) -> list[dict[str, Any]]:
    return [dict(row) for action in scenario.actions if action.name == "process" for row in action.value]


def replay(query: Any, steps: Iterable[dict[str, Any] | str], **options: Any) -> None:
    """Two operators get the same records, one of them as batches of one record, which never wait."""
    waiting, sliced = query.operator(**options), query.operator(**options)
    for step in steps:
        if isinstance(step, dict):
            assert same_value(outcome(waiting, step), outcome(sliced, [step])), step
            assert waiting.watermark == sliced.watermark
        elif step == "snapshot":
            waiting = Operator.restore(waiting.snapshot(), query)
        elif step == "advance":
            assert same_value(state(waiting), state(sliced))
    assert same_value(waiting.finish().to_pylist(), sliced.finish().to_pylist())
    assert same_value(state(waiting), state(sliced))


@FEWER
@given(scenarios(FORESEEABLE, snapshots=True), LAGS, st.booleans())
def test_records_that_wait_change_nothing(scenario: Scenario, lag: int, typed: bool) -> None:
    steps: list[Any] = []
    for action in scenario.actions:
        steps += action.value if action.name == "process" else [action.name]
    replay(scenario.query, steps, watermark_lag=lag, schema=scenario.schema if typed else None)


@settings(max_examples=settings.default.max_examples // 10, report_multiple_bugs=False)
@given(st.booleans().flatmap(lambda early: scenarios(early=early, items=30)), LAGS)
def test_nor_where_none_may_wait(scenario: Scenario, lag: int) -> None:
    replay(scenario.query, rows_of(scenario), watermark_lag=lag, schema=scenario.schema)


@FEWER
@given(scenarios(FORESEEABLE), st.lists(st.integers(0, 59), max_size=3))
def test_streams_in_order(scenario: Scenario, misplaced: list[int]) -> None:
    rows = sorted(rows_of(scenario), key=lambda row: row["t"])
    for place in misplaced:  # which is an error
        if place < len(rows):
            rows.append(rows.pop(place))
    replay(scenario.query, rows, in_order=True)


@FEWER
@given(
    scenarios(FORESEEABLE),
    st.sampled_from(["fail", "skip", "route"]),
    st.dictionaries(st.integers(0, 40), st.sampled_from([(c, v) for c, vs in WRONG.items() for v in vs])),
    LAGS,
)
def test_bad_records_among_them(
    scenario: Scenario, bad: str, wrong: dict[int, tuple[str, Any]], lag: int
) -> None:
    query = scenario.query.on("t", allowed_lateness=scenario.query.allowed_lateness, late="route", bad=bad)
    rows = rows_of(scenario)
    for number, (column, value) in wrong.items():
        if number < len(rows):
            rows[number][column] = value
    replay(query, rows, watermark_lag=lag, schema=scenario.schema)
