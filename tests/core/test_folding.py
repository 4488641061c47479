"""Slices fold and tuples go as soon as they may, and no result tells when that happened."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings

from muntin.testing.engines import EmbeddedEngine, Record
from muntin.testing.rows import Row, compare
from muntin.testing.scenarios import Scenario, play
from muntin.testing.strategies import scenarios

FEWER = max(10, settings.default.max_examples // 4)
"""Each property below is about all windows; together they make up the number."""


class FoldingEngine(EmbeddedEngine):
    """Folds all that can be folded after every step, which looking at the statistics does."""

    def process(self, rows: Sequence[Record]) -> list[Row]:
        found = super().process(rows)
        self._operator.stats()
        return found

    def advance(self, watermark: int) -> list[Row]:
        found = super().advance(watermark)
        before = self._operator.stats()
        assert self._operator.stats() == before  # there is nothing more to fold
        return found


def check_folded(scenario: Scenario) -> None:
    plain = EmbeddedEngine(scenario.query, scenario.schema)
    folding = FoldingEngine(scenario.query, scenario.schema)
    for number, action in enumerate(scenario.actions):
        difference = compare(play(folding, action), play(plain, action))
        assert not difference, f"step {number}, {action}\n{difference}"
        assert [r["id"] for _, r in folding.take_late()] == [r["id"] for _, r in plain.take_late()]


@settings(max_examples=FEWER)
@given(scenarios())
def test_results_do_not_depend_on_when_slices_fold(scenario: Scenario) -> None:
    check_folded(scenario)


@settings(max_examples=FEWER)
@given(scenarios(("time", "session", "session")))
def test_sessions_and_fixed_edges_do_not_depend_on_it(scenario: Scenario) -> None:
    check_folded(scenario)


@settings(max_examples=FEWER)
@given(scenarios(early=True))
def test_early_results_do_not_depend_on_it(scenario: Scenario) -> None:
    check_folded(scenario)
