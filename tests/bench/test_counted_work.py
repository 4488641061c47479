"""Costs grow as they should: counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log2
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.core import drive
from benchmarks.streams import PER_SECOND
from benchmarks.workloads import Workload, chosen, lengths
from muntin import aggregates as a
from muntin.aggregates.base import Groups
from muntin.aggregates.partials.counts import Values
from muntin.aggregates.partials.exact_sums import ExactSum
from muntin.dsl import windows
from muntin.expressions import as_expr
from muntin.slicing import plan_cache
from muntin.slicing import step as step_module
from muntin.slicing.stats import Stats
from muntin.windows import session, tumbling

TUPLES = 60 * PER_SECOND
PARTIALS = 2
"""A sum has two: the total, and how many values it has."""


def final(workload: Workload, tuples: int = TUPLES) -> tuple[Stats, int]:
    run = drive(workload, workload.shape.generate(tuples).batches(10_000))
    return run.stats, run.slices


@pytest.mark.parametrize("name", ["W1", "W2"])
def test_a_tuple_is_combined_once_however_many_windows_there_are(name: str) -> None:
    found = {workload.name: final(workload)[0] for workload in chosen((name,))}
    assert len(found) == 4
    assert {stats.update_combines for stats in found.values()} == {PARTIALS * TUPLES}


Handed = dict[object, npt.NDArray[np.int64]]
"""For each partial, how many times it was handed each tuple."""


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Handed]:
    """What the partials of a sum lift, where the value of each tuple is its own number.

    By the general route: the compiled step lifts inside of its one call.
    """
    found: Handed = {}
    monkeypatch.setattr(step_module, "numeric_results", lambda *arguments: None)
    plan_cache.forget_plans()  # a plan holds the functions that its partials had when it was made

    def counting(kind: type[ExactSum] | type[Values]) -> None:
        lift = kind.lift

        def noting(self: Any, g: Groups, needs: Any) -> Any:
            times = found.setdefault(self, np.zeros(TUPLES, dtype=np.int64))
            np.add.at(times, taken(g), 1)
            return lift(self, g, needs)

        monkeypatch.setattr(kind, "lift", noting)

    counting(ExactSum)
    counting(Values)
    yield found
    plan_cache.forget_plans()


def taken(g: Groups) -> npt.NDArray[np.int64]:
    """The values of the tuples that are in a group."""
    values = g.values[as_expr("value")]
    numbers = (values if g.chosen is None else values.take(g.chosen)).to_numpy()
    assert len(numbers) == len(g.time)
    if g.group is not None:
        return numbers[g.group >= 0]
    assert g.offsets is not None
    return numbers[g.offsets[0] : g.offsets[-1]] if g.n else numbers[:0]


def with_windows(n: int, late: bool) -> Workload:
    """W1, or with late tuples W2, with a number of tumbling windows."""
    named = {f"t{length}": tumbling(f"{length} ms") for length in lengths(n)}
    query = windows(**named, **({"visit": session("1 second")} if late else {}))
    workload = chosen(("W2 N=1" if late else "W1 N=1",))[0]
    return replace(workload, query=query.aggregate(total=a.sum("value")).on("at"))


@pytest.mark.parametrize("late", [False, True], ids=["W1", "W2"])
@pytest.mark.parametrize("n", [1, 10, 100])
def test_every_partial_is_handed_every_tuple_exactly_once(n: int, late: bool, handed: Handed) -> None:
    workload = with_windows(n, late)
    arrivals = replace(workload.shape.generate(TUPLES), value=np.arange(TUPLES))
    run = drive(workload, arrivals.batches(10_000))
    assert {type(partial) for partial in handed} == {ExactSum, Values}
    assert len(handed) == PARTIALS
    assert all((times == 1).all() for times in handed.values())
    assert run.stats.update_combines == sum(int(times.sum()) for times in handed.values())


@pytest.mark.parametrize("workload", chosen(("W1", "W2", "W3 100")), ids=lambda workload: workload.name)
def test_a_window_is_merged_from_logarithmically_many_partials(workload: Workload) -> None:
    stats, slices = final(workload)
    assert stats.merge_combines <= PARTIALS * stats.windows * (2 * log2(slices + 1) + 1)


@pytest.mark.parametrize(
    "workload", chosen(("M", "W1", "W2", "W3", "W7")), ids=lambda workload: workload.name
)
def test_slices_and_memory_do_not_grow_with_the_stream(workload: Workload) -> None:
    once, four_times = peaks(workload, TUPLES), peaks(workload, 4 * TUPLES)
    assert four_times[0] <= 1.1 * once[0]
    assert four_times[1] <= 1.25 * once[1]
    assert four_times[2] == once[2] == 0


def peaks(workload: Workload, tuples: int) -> tuple[int, int, int]:
    """The most slices, bytes of state and kept tuples between two batches of five seconds each."""
    late = workload.shape.late
    operator = workload.query.operator(in_order=not late, watermark_lag="2 seconds" if late else None)
    seen = []
    for batch in workload.shape.generate(tuples).batches(5 * PER_SECOND):
        operator.process(batch)
        stats = operator.stats()
        seen.append((stats.slices, stats.state_bytes, stats.kept_tuples))
    slices, size, kept = zip(*seen, strict=True)
    return max(slices), max(size), max(kept)
