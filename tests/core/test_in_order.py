"""A stream declared in order gives what watermarks by hand give, with fewer slices and hardly more tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import muntin as mt
from muntin.connectors.embedded import Operator
from muntin.testing.engines import rows_of_table
from muntin.testing.rows import compare
from muntin.testing.scenarios import Scenario
from muntin.testing.strategies import scenarios

FEWER = max(10, settings.default.max_examples // 4)
"""Each property below is about all windows; together they make up the number."""


def check_in_order(scenario: Scenario, sizes: list[int], looks: bool = False) -> None:
    """All rows of the scenario in the order of their times, in batches of these sizes.

    `looks`: early results look beyond the watermark; at a moment a key may have one tuple more kept.
    """
    rows = [row for action in scenario.actions if action.name == "process" for row in action.value]
    rows.sort(key=lambda row: row["t"])
    declared: Operator = scenario.query.operator(in_order=True)
    by_hand: Operator = scenario.query.operator()

    def same(left: mt.Results, right: mt.Results, where: Any) -> None:
        rows = [rows_of_table(one.to_arrow(nested=True), scenario.query.keys) for one in (left, right)]
        difference = compare(*rows)
        assert not difference, f"{where}\n{difference}"

    at = 0
    while at < len(rows):
        part = rows[at : at + sizes[at % len(sizes)]]
        table = pa.Table.from_pylist(part, schema=scenario.schema)
        expected = mt.Results.concat([by_hand.process(table), by_hand.advance(part[-1]["t"])])
        same(declared.process(table), expected, part)
        at += len(part)
    more = looks * len({tuple(row.get(key) for key in scenario.query.keys) for row in rows})
    # Tuples are dropped slice by slice, and in order slices are fewer.
    kept = declared.stats().kept_tuples
    assert kept <= by_hand.stats().kept_tuples + more + beside_the_oldest(declared)
    assert declared.stats().slices <= by_hand.stats().slices + more
    same(declared.finish(), by_hand.finish(), "finish")


def beside_the_oldest(operator: Operator) -> int:
    """How many tuples are in one slice with the oldest of each key."""
    if operator._engine.binding is None:  # no tuple came
        return 0
    table = operator._engine.state.slices
    _, oldest = np.unique(table.key, return_index=True)
    return int((table.n[oldest] - 1).sum())


@settings(max_examples=FEWER)
@given(scenarios(), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_a_declared_order_changes_no_result(scenario: Scenario, sizes: list[int]) -> None:
    check_in_order(scenario, sizes)


@settings(max_examples=FEWER)
@given(
    scenarios(("ranks", "frames", "measures", "user")), st.lists(st.integers(1, 3), min_size=1, max_size=5)
)
def test_windows_that_depend_on_tuples_change_no_result(scenario: Scenario, sizes: list[int]) -> None:
    check_in_order(scenario, sizes)


@settings(max_examples=FEWER)
@given(scenarios(early=True), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_early_results_come_as_they_do_by_hand(scenario: Scenario, sizes: list[int]) -> None:
    check_in_order(scenario, sizes, looks=True)
