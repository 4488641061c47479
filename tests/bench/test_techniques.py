"""The window techniques of the papers give the sums that Muntin gives, whatever the batches."""

from __future__ import annotations

import numpy as np
import pytest

from muntin import aggregates as a
from muntin.baselines.slice_techniques import Cutty, Pairs, Panes
from muntin.baselines.technique import Technique
from muntin.baselines.tuple_techniques import AggregateBuckets, AggregateTree, TupleBuckets, TupleBuffer
from muntin.bench.techniques import TECHNIQUES, measure_techniques
from muntin.dsl import windows
from muntin.windows import sliding

ALL = (TupleBuffer, TupleBuckets, AggregateBuckets, AggregateTree, Panes, Pairs, Cutty)
WHOLE = [(10, 10), (60, 4), (12, 6), (7, 7)]
BROKEN = [(10, 4), (9, 2), (5, 3), (100, 30), (3, 5)]


def cases() -> list[tuple[type[Technique], list[tuple[int, int]]]]:
    whole = [(technique, WHOLE) for technique in ALL]
    return whole + [(technique, BROKEN) for technique in ALL if technique is not Cutty]


@pytest.mark.parametrize("batch", [1, 37, 1_000])
@pytest.mark.parametrize(("technique", "asked"), cases())
def test_sums_are_those_of_the_engine(
    technique: type[Technique], asked: list[tuple[int, int]], batch: int
) -> None:
    rng = np.random.default_rng(3)
    time = np.cumsum(rng.integers(0, 3, 300)) + 5 + np.where(np.arange(300) > 150, 400, 0)
    value = rng.integers(1, 100, 300)
    asked = [one for one in asked if one[0] % one[1] == 0 or technique is not Cutty]
    found: dict[tuple[int, int], int] = {}
    one = technique(asked)
    for i in range(0, 300, batch):
        parts = one.process(time[i : i + batch], value[i : i + batch])
        found |= {(q, s): t for q, s, t in zip(parts.query, parts.start, parts.total, strict=True)}
    parts = one.finish()
    found |= {(q, s): t for q, s, t in zip(parts.query, parts.start, parts.total, strict=True)}
    named = {f"w{i}": sliding(length, slide) for i, (length, slide) in enumerate(asked)}
    results = windows(**named).aggregate(total=a.sum("v")).on("t").run({"t": time, "v": value})
    wanted = {(int(row["query"][1:]), row["window"]["start"]): row["total"] for row in results.to_pylist()}
    assert {key: total for key, total in found.items() if total} == wanted
    assert one.combines > 0


def test_cutty_tells_what_it_cannot_cut() -> None:
    with pytest.raises(ValueError, match="multiple of slide here: got 10 and 4"):
        Cutty([(10, 4)])


def test_every_technique_is_measured_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measure_techniques(5_000, ("W1 N=10", "W3 1 s"), rounds=1)
    assert [m.technique for m in found if m.workload == "W3 1 s"] == [*TECHNIQUES, "Muntin"]
    per_tuple = {m.technique: m.combines_per_tuple for m in found if m.workload == "W1 N=10"}
    assert per_tuple["aggregate buckets"] == 10  # one for each window that holds the tuple
    assert per_tuple["Muntin"] < 1.5
    right = TupleBuffer._totals
    monkeypatch.setattr(TupleBuffer, "_totals", lambda *asked: right(*asked) + 1)
    with pytest.raises(AssertionError, match="W1 N=10, TupleBuffer: windows and sums of"):
        measure_techniques(5_000, ("W1 N=10",), rounds=1)
