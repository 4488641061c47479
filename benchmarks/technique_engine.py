"""The workloads as the window techniques of the papers answer them.

They have sums without keys. Panes, Pairs and Cutty have tumbling and sliding windows of streams in order;
the others take late tuples and sessions as well, and the tuple buffer windows on counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.baselines.any_order import AnyOrder
from benchmarks.baselines.slice_techniques import Cutty, Pairs, Panes
from benchmarks.baselines.technique import Technique, Totals
from benchmarks.baselines.tuple_techniques import AggregateBuckets, AggregateTree, TupleBuckets, TupleBuffer
from benchmarks.case import Ask, Case
from benchmarks.expected import Sums
from benchmarks.streams import BATCH, LATENESS
from benchmarks.workloads import Workload
from muntin.windows.count import Count
from muntin.windows.periodic import Periodic
from muntin.windows.session import Session

__all__ = ["TECHNIQUES", "ask_technique", "batch_for", "can_answer"]

TECHNIQUES: dict[str, type[Technique]] = {
    "tuple buffer": TupleBuffer,
    "tuple buckets": TupleBuckets,
    "aggregate buckets": AggregateBuckets,
    "aggregate tree": AggregateTree,
    "Panes": Panes,
    "Pairs": Pairs,
    "Cutty": Cutty,
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """The windows of a workload as the techniques take them: by kind, with the names of their queries."""

    periodic: dict[str, tuple[int, int]]
    gaps: dict[str, int]
    counts: dict[str, int]

    @property
    def names(self) -> list[str]:
        return [*self.periodic, *self.gaps, *self.counts]


def can_answer(technique: type[Technique], workload: Workload) -> bool:
    """Whether a technique can express a workload.

    >>> from benchmarks.workloads import chosen
    >>> late = chosen(("W2 N=20",))[0]
    >>> can_answer(AggregateBuckets, late), can_answer(Pairs, late)
    (True, False)
    """
    asked = _asked(workload)
    if workload.query.keys or [one.constructor for _, one in workload.query.aggregates] != ["sum"]:
        return False
    if len(asked.names) < len(workload.query.windows):
        return False
    if not issubclass(technique, AnyOrder):
        return not (asked.gaps or asked.counts or workload.shape.late)
    return technique is TupleBuffer or not asked.counts


def batch_for(technique: type[Technique], batch: int) -> int:
    """How many tuples a technique takes at once: buckets of tuples would need gigabytes for large batches."""
    return min(batch, BATCH) if technique is TupleBuckets else batch


def ask_technique(technique: type[Technique], case: Case, batch: int) -> Ask:
    """How a technique computes the windows of a case, in batches of `batch` tuples."""
    asked, arrivals = _asked(case.workload), case.arrivals
    given: dict[str, Any] = {"windows": list(asked.periodic.values())}
    if issubclass(technique, AnyOrder):
        given |= {"gaps": list(asked.gaps.values()), "lag": LATENESS if case.workload.shape.late else 0}
    if asked.counts:
        given["counts"] = list(asked.counts.values())

    def run() -> tuple[list[Totals], int]:
        one = technique(**given)
        parts = [
            one.process(arrivals.time[i : i + batch], arrivals.value[i : i + batch])
            for i in range(0, len(arrivals), batch)
        ]
        parts.append(one.finish())
        return parts, one.combines

    def sums(found: tuple[list[Totals], int]) -> Sums:
        query = np.concatenate([part.query for part in found[0]])
        total = np.concatenate([part.total for part in found[0]])
        totals = np.bincount(query, weights=total, minlength=len(asked.names)).tolist()
        # Techniques emit empty windows, too: the number of windows is not compared.
        windows = {name: case.wanted.sums[name][0] for name in asked.names}
        return {name: (windows[name], float(one)) for name, one in zip(windows, totals, strict=True)}

    return Ask(run, sums, lambda found: found[1])


def _asked(workload: Workload) -> _Asked:
    named = workload.query.windows
    return _Asked(
        {name: (w.length, w.slide) for name, w in named if isinstance(w, Periodic)},
        {name: w.gap for name, w in named if isinstance(w, Session)},
        {name: w.n for name, w in named if isinstance(w, Count) and w.every == w.n},
    )
