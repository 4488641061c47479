"""Millions of windows are emitted in several steps: only the chunks of the results differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.slicing.emission import intermediate_watermarks as watermarks_module
from muntin.slicing.parallel import steps as steps_module

sys.path.insert(0, str(Path(__file__).parent))
from parted import AGGREGATES, WINDOWS, nearly_in_order, seen, stream  # beside this file, not installed


@pytest.fixture(autouse=True)
def everything_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little there is to do."""
    for few in ("LEAST_TUPLES", "LEAST_SLICES", "LEAST_ROWS"):
        monkeypatch.setattr(steps_module, few, 1)


@pytest.mark.parametrize("portion", [300, 17, 1])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_many_windows_come_in_portions(
    portion: int, threads: int, keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = mt.windows(**WINDOWS["edges"]).aggregate(**AGGREGATES["sums"]).by(*keys).on("t")
    tables = [nearly_in_order(3_000, 20), stream(3_000, 20)]
    whole = [seen(query.run(table)) for table in tables]
    for module, name, value in (
        (watermarks_module, "WINDOWS_PER_STEP", portion),
        (watermarks_module, "WINDOWS_PER_KEY", 1),
        (watermarks_module, "LEAST_SLICES", 1),
    ):
        monkeypatch.setattr(module, name, value)
    found = [query.run(table, threads=threads) for table in tables]
    assert list(map(seen, found)) == whole
    assert all(table["n"].num_chunks > 5 for table in found) == (portion < 300 or bool(keys))


@pytest.fixture
def tiny_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watermarks_module, "WINDOWS_PER_STEP", 5)
    monkeypatch.setattr(watermarks_module, "WINDOWS_PER_KEY", 1)
    monkeypatch.setattr(watermarks_module, "LEAST_SLICES", 1)


def late_stream(query: Any) -> list[Any]:
    """What each step brings, where late tuples change windows and many others come out."""
    operator = query.operator()
    operator.process({"t": [0, 5], "f": [1.0, 2.0]})
    found = [operator.advance(10)]
    operator.process({"t": [0, *range(10, 200)], "f": [0.5] * 191})
    found.append(operator.advance(300))
    operator.process({"t": [3, *range(300, 500)], "f": [0.5] * 201})
    found += [operator.finish(), operator.stats()]
    return [seen(table) if isinstance(table, mt.Results) else str(table) for table in found]


def test_late_tuples_change_windows_once_whatever_the_portions(request: pytest.FixtureRequest) -> None:
    windows = {"one": w.tumbling(1), "ten": w.sliding(10, 3)}
    query = mt.windows(**windows).aggregate(n=a.count(), s=a.sum("f")).on("t", allowed_lateness=10**9)
    whole = late_stream(query)
    request.getfixturevalue("tiny_portions")
    assert late_stream(query) == whole


@pytest.mark.parametrize("threads", [1, 2])
def test_trees_have_no_portions(threads: int, request: pytest.FixtureRequest) -> None:
    """They would be others, and round otherwise."""
    query = mt.windows(long=w.sliding(1000, 1), ten=w.tumbling(10)).aggregate(x=a.stddev("f")).on("t")
    table = nearly_in_order(3_000, 5)
    whole = seen(query.run(table))
    request.getfixturevalue("tiny_portions")
    found = query.run(table, threads=threads)
    assert seen(found) == whole
    assert found["x"].num_chunks <= threads
