"""What holds for every query, shown on the oracle: its own results must be consistent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings

from muntin.testing import Oracle, OracleEngine, Row, compare
from muntin.testing.scenarios import Action, Scenario, play
from muntin.testing.strategies import scenarios

EVERY_TUPLE_COUNTS = (1000,)  # a lateness beyond every stream


def played(scenario: Scenario) -> list[list[Row]]:
    oracle = OracleEngine(scenario.query, scenario.schema)
    return [play(oracle, action) for action in scenario.actions]


def all_rows(scenario: Scenario) -> list[Row]:
    return [row for rows in played(scenario) for row in rows]


def in_one_go(scenario: Scenario) -> list[Row]:
    """The same tuples as a bounded table: nothing is early, late or revised."""
    oracle = Oracle(replace(scenario.query, early=None))
    oracle.process([row for action in scenario.actions if action.name == "process" for row in action.value])
    return oracle.finish()


def place_of(row: Row) -> tuple[Any, ...]:
    """What a window is known by: its edges on its own measure."""
    edges = (row.start, row.end) if row.low is None else (row.low, row.high)
    return (row.window_name, row.keys, *edges)


def view(rows: list[Row]) -> list[Row]:
    """What a reader knows who replaces windows by their updates and forgets what is retracted."""
    known: dict[Any, Row] = {}
    for row in rows:
        if row.kind == "retract":
            assert not compare([known.pop(place_of(row))], [said(row)])
        else:
            known[place_of(row)] = said(row)
    return list(known.values())


def said(row: Row) -> Row:
    """A row without its history, and without the edges in time of a window on another measure.

    A tuple that closes such a window earlier moves its end and not its content: no news.
    """
    row = row._replace(kind="final", revision=0)
    return row if row.low is None else row._replace(start=0, end=0)


def have_own_edges(rows: list[Row]) -> bool:
    """Whether no two windows have equal edges, which tuples of one time can make."""
    return all(number == 1 for number in Counter(place_of(row) for row in rows).values())


@given(scenarios(lateness=EVERY_TUPLE_COUNTS))
def test_revisions_lead_to_the_recomputed_result(scenario: Scenario) -> None:
    scenario = ended(scenario)
    expected = [said(row) for row in in_one_go(scenario)]
    if have_own_edges(in_one_go(scenario)) and not endless(scenario):
        assert not compare(view(all_rows(scenario)), expected)


@given(scenarios(lateness=EVERY_TUPLE_COUNTS, early=True))
def test_early_results_lead_there_too(scenario: Scenario) -> None:
    scenario = ended(scenario)
    expected = [said(row) for row in in_one_go(scenario)]
    rows = all_rows(scenario)
    if have_own_edges(in_one_go(scenario)) and not endless(scenario) and not shown_twice(rows):
        assert not compare(view(rows), expected)


@given(scenarios(lateness=(0,)))
def test_without_lateness_nothing_is_revised(scenario: Scenario) -> None:
    for row in all_rows(scenario):
        assert (row.kind, row.revision) == ("final", 0)


@given(scenarios(("time", "session"), early=True))
def test_revisions_count_up(scenario: Scenario) -> None:
    seen: dict[Any, Row] = {}
    for rows in played(scenario):
        for row in rows:
            before = seen.get(place_of(row))
            assert row.revision == (0 if before is None else before.revision + 1)
            assert row.kind != "retract" or (before is not None and before.kind != "retract")
            assert row.kind != "update" or before is not None
            seen[place_of(row)] = row


@given(scenarios())
@settings(max_examples=50)
def test_batches_do_not_matter(scenario: Scenario) -> None:
    single = []
    for action in scenario.actions:
        if action.name == "process":
            single += [Action("process", [row]) for row in action.value]
        else:
            single.append(action)
    assert not compare(all_rows(replace(scenario, actions=tuple(single))), all_rows(scenario))


def ended(scenario: Scenario) -> Scenario:
    if scenario.actions and scenario.actions[-1].name == "finish":
        return scenario
    return replace(scenario, actions=(*scenario.actions, Action("finish")))


def endless(scenario: Scenario) -> bool:
    """Whether a window goes on after the last tuple as long as the watermark does."""
    return any(window.endless or window.unprompted for _, window in scenario.query.windows)


def shown_twice(rows: list[Row]) -> bool:
    return any(number > 1 for number in Counter((place_of(row), row.revision) for row in rows).values())
