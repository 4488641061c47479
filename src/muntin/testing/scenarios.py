"""Scenarios as plain values, and their comparison between an engine and the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.testing.engines import EmbeddedEngine, Engine, OracleEngine, Record
from muntin.testing.rows import Row, compare
from muntin.timeline import INF

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Action", "Scenario", "check", "play"]


@dataclass(frozen=True)
class Action:
    """One step: process rows, advance to a watermark, add or remove a window, snapshot, finish."""

    name: str
    value: Any = None
    window: Any = None

    def __str__(self) -> str:
        if self.name == "process":
            return "process " + ("; ".join(_shown(row) for row in self.value) or "nothing")
        added = "" if self.window is None else f" = {self.window!r}"
        return self.name + ("" if self.value is None else f" {self.value}") + added


@dataclass(frozen=True)
class Scenario:
    """A query, the types of its input, and the steps of a stream. Times are int, as in `Row`."""

    query: Any
    schema: Any
    actions: tuple[Action, ...]

    def __repr__(self) -> str:
        return f"{self.query!r}\n" + "".join(f"  {action}\n" for action in self.actions)


def play(engine: Engine, action: Action) -> list[Row]:
    """Perform an action and return the emitted rows."""
    if action.name == "finish":
        return engine.finish()
    verbs: dict[str, Any] = {
        "process": engine.process,
        "advance": engine.advance,
        "remove": engine.remove,  # which returns no rows
    }
    return verbs[action.name](action.value) or []


def check(
    scenario: Scenario, engine_factory: Callable[[Any, pa.Schema], Engine] = EmbeddedEngine
) -> list[Row]:
    """Play a scenario on an engine and on the oracle and return all rows.

    An AssertionError shows the first step at which they differ, and how. Rows are
    compared step by step, in any order but for one: a retraction comes before
    its replacement.
    """
    engine: Engine = engine_factory(scenario.query, scenario.schema)
    oracle = OracleEngine(scenario.query, scenario.schema)
    everything: list[Row] = []
    for number, action in enumerate(scenario.actions):
        where = f"step {number}, {action}"
        if action.name == "snapshot":
            engine = engine.restored(engine.snapshot())
        elif action.name == "add":
            window, since = action.window, engine.add(action.value, action.window, None)
            latest = INF if hasattr(window, "lift") else oracle.latest_start(window)
            assert since <= latest, f"{where}\nstarts at {since}, later than {latest}"
            oracle.add(action.value, window, since)
        else:
            actual, expected = play(engine, action), play(oracle, action)
            difference = compare(actual, expected)
            assert not difference, f"{where}\n{difference}"
            misplaced = _retracts_behind(actual)
            assert not misplaced, f"{where}\nretracted after its replacement: {misplaced[0]}"
            unsorted = _out_of_order(actual, expected)
            assert not unsorted, f"{where}\nwindows of the same edges out of order: {unsorted[0]}"
            everything += actual
        if action.name in ("advance", "finish"):
            late, expected_late = _numbers(engine.take_late()), _numbers(oracle.take_late())
            assert late == expected_late, f"{where}\nlate {late}\nexpected {expected_late}"
    return everything


def _retracts_behind(rows: list[Row]) -> list[Row]:
    """Retractions that follow another row of their window."""
    replaced = set()
    misplaced = []
    for row in rows:
        if row.kind != "retract":
            replaced.add((row.window_name, row.keys))
        elif (row.window_name, row.keys) in replaced:
            misplaced.append(row)
    return misplaced


def _out_of_order(actual: list[Row], expected: list[Row]) -> list[Row]:
    """Rows of windows with the same edges that are not in the order of their tuples."""
    places: dict[Any, list[int]] = {}
    for number, row in enumerate(expected):
        places.setdefault(_edges(row), []).append(number)
    misplaced = []
    for row in actual:
        number = places[_edges(row)].pop(0)
        if compare([row], [expected[number]]):
            misplaced.append(row)
    return misplaced


def _edges(row: Row) -> tuple[Any, ...]:
    keys = tuple("nan" if key != key else key for key in row.keys)
    return (keys, row.window_name, row.start, row.end, row.low, row.high, row.kind)


def _numbers(late: list[tuple[str, Record]]) -> Counter[tuple[str, Any]]:
    """Late tuples by window and `id`, a column that numbers the rows of every scenario."""
    return Counter((name, row["id"]) for name, row in late)


def _shown(row: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value!r}" for name, value in row.items() if value is not None)
