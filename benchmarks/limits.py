"""Two limits of the machine, measured in the same run: bare sums over known slices, and a plain copy."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.streams import Arrivals, Column

__all__ = ["copy_rate", "reduceat_rate"]

_ROUNDS = 5


def reduceat_rate(value: Column, bounds: Column) -> float:
    """Million tuples per second of `np.add.reduceat` where tuples are sorted and slices are known."""
    return _rate(len(value), lambda: np.add.reduceat(value, bounds))


def copy_rate(arrivals: Arrivals) -> float:
    """Million tuples per second of a copy of the columns that the query reads, into memory that is there."""
    pairs = [(np.zeros_like(column), column) for column in arrivals.columns()]

    def copy() -> None:
        for to, column in pairs:
            np.copyto(to, column)

    return _rate(len(arrivals), copy)


def _rate(tuples: int, work: Callable[[], object]) -> float:
    """Of the best of a few runs."""
    best = float("inf")
    for _ in range(_ROUNDS):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return tuples / max(best, 1e-9) / 1e6
