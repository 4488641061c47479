"""Costs grow as they should: counted, not timed."""

from __future__ import annotations

from math import log2

import pytest

from muntin.bench.core import drive
from muntin.bench.streams import PER_SECOND
from muntin.bench.workloads import Workload, chosen
from muntin.slicing.stats import Stats

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
