"""A stream declared in order gives what watermarks by hand give, with fewer slices and hardly more tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.testing.engines import rows_of_table
from muntin.testing.rows import Row, compare, unmatched
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

    ahead: list[Row] = []
    """Windows that ended with the newest tuple; by hand, only a later watermark completes them."""
    instant = {name for name, window in scenario.query.windows if getattr(window, "timed", True) is False}

    def comparable(rows: list[Row]) -> list[Row]:
        """Without early rows of windows that a tuple ends: they may be complete when they first appear."""
        if not looks:
            return rows
        final = [row for row in rows if row.window_name not in instant or row.kind != "early"]
        return [row._replace(revision=0) if row.window_name in instant else row for row in final]

    def same(left: mt.Results, right: mt.Results, newest: int | None) -> None:
        nonlocal ahead
        rows, expected = (
            comparable(rows_of_table(one.to_arrow(nested=True), scenario.query.keys)) for one in (left, right)
        )
        ahead, missing = unmatched([*ahead, *rows], expected, lambda one, other: not compare([one], [other]))
        assert not missing, f"up to {newest}: {missing}"
        late = [row for row in ahead if row.window_name not in instant or row.end - 1 != newest]
        assert not late, f"up to {newest}: {late}"

    at = 0
    while at < len(rows):
        part = rows[at : at + sizes[at % len(sizes)]]
        table = pa.Table.from_pylist(part, schema=scenario.schema)
        expected = mt.Results.concat([by_hand.process(table), by_hand.advance(part[-1]["t"])])
        same(declared.process(table), expected, part[-1]["t"])
        at += len(part)
    more = looks * len({tuple(row.get(key) for key in scenario.query.keys) for row in rows})
    # Tuples are dropped slice by slice, and in order slices are fewer.
    kept = declared.stats().kept_tuples
    assert kept <= by_hand.stats().kept_tuples + more + beside_the_oldest(declared)
    if not (
        looks and scenario.query.explain(in_order=True).plan.splits_slices
    ):  # taking slices back joins them
        assert declared.stats().slices <= by_hand.stats().slices + more
    same(declared.finish(), by_hand.finish(), None)


def beside_the_oldest(operator: Operator) -> int:
    """How many tuples are in one slice with the oldest of each key."""
    if operator._engine.binding is None:  # no tuple came
        return 0
    table = operator._engine.state.slices
    _, oldest = np.unique(table.key, return_index=True)
    return int((table.n[oldest] - 1).sum())


@pytest.mark.parametrize(
    ("window", "ends"),
    [
        (w.count(3), [2, 5, 8]),
        (w.until(a.sum("v"), 3), [2, 5, 8]),
        (w.slide_by_tuple(4, every=3), [2, 5, 8]),
        (
            w.trigger(lambda buffer: buffer[-1].rank % 3 == 2, lambda buffer: max(0, len(buffer) - 2)),
            [2, 5, 8],
        ),
        (w.punctuation(mt.col("t") == 4), [4]),
        (w.last(2, every=5), [5]),  # a further tuple at 4 could belong to the window that ends at 5
    ],
    ids=lambda value: value.describe() if hasattr(value, "describe") else "",
)
def test_a_window_that_ends_with_a_tuple_comes_out_with_it(window: Any, ends: list[int]) -> None:
    """[scotty §5.3]: in order, the tuple itself is the watermark of the window that it ends."""
    op = mt.windows(x=window).aggregate(n=a.count()).on("t").operator(in_order=True)
    came = [t for t in range(9) if len(op.process({"t": [t], "v": [1]}))]
    assert came == ends


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
