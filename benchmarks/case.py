"""A workload with the tuples it reads and what must come out, and how an engine is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.expected import Expected, Sums, expected
from benchmarks.streams import Arrivals
from benchmarks.workloads import Workload

__all__ = ["Ask", "Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """A workload over a stream that lies in memory."""

    workload: Workload
    arrivals: Arrivals
    wanted: Expected

    @classmethod
    def of(cls, workload: Workload, tuples: int) -> Case:
        """Make this number of tuples, and compute the expected results."""
        arrivals = workload.shape.generate(tuples)
        return cls(workload, arrivals, expected(workload.query, arrivals))


@dataclass(frozen=True, slots=True)
class Ask:
    """What an engine does with a case. The tuples are in its own format already."""

    run: Callable[[], Any]
    """From the tuples to its results: this is timed."""
    sums: Callable[[Any], Sums]
    """The sums of these results."""
    combines: Callable[[Any], int] | None = None
    """How often it combined; None if the engine does not count."""
