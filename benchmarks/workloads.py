"""The workloads of `python -m benchmarks core`: the two of the first milestone, W1 to W7, and P1 to P5.

Each has a goal, and the rate that Scotty's own core reaches on a machine of this kind (Java, one thread,
warm; million tuples per CPU second).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.streams import BATCH, Shape
from muntin import aggregates as a
from muntin.aggregates.base import Aggregate
from muntin.dsl import Query, windows
from muntin.errors import QueryError
from muntin.windows import count, session, sliding, tumbling
from muntin.windows.base import Window

__all__ = ["LARGE_BATCH", "Workload", "chosen", "lengths", "workloads"]

LARGE_BATCH = 1_048_576

KEYS = 100_000


@dataclass(frozen=True, slots=True)
class Workload:
    """A query over a stream."""

    name: str
    told: str
    query: Query
    shape: Shape = field(default_factory=Shape)
    batch: int | None = None
    """The size of its batches, where the user does not choose it."""
    scotty: float | None = None
    goal: float | None = None
    times_tuples: int = 1
    """The factor by which it reads more tuples than the others."""


def chosen(only: tuple[str, ...]) -> list[Workload]:
    """The workloads that have one of these names, or whose names begin so; without any, all.

    >>> [workload.name for workload in chosen(("W3", "W2 N=1"))]
    ['W2 N=1', 'W3 1 s', 'W3 100 ms']
    """
    known = workloads()
    names = {workload.name for workload in known}
    begins = tuple(one for one in only if one not in names)
    found = [w for w in known if not only or w.name in only or (begins and w.name.startswith(begins))]
    if not found:
        raise QueryError(
            f"no workload begins with {', '.join(only)}; there are M1, M2, W1 to W7 and P1 to P5"
        )
    return found


def lengths(n: int) -> list[int]:
    """N distinct lengths in milliseconds, spread over 1 to 20 s.

    >>> lengths(4)
    [1000, 7333, 13666, 20000]
    """
    return [int(length) for length in np.linspace(1_000, 20_000, n)]


def workloads() -> list[Workload]:
    """All of them, in the order of the table."""
    return [*_milestone(), *_w1(), *_w2(), *_w3(), _w4(), _w5(), _w6(), _w7(), *_p()]


def _milestone() -> list[Workload]:
    seconds: dict[str, Window] = {f"s{i}": tumbling(f"{i} seconds") for i in range(1, 21)}
    late: dict[str, Window] = {**seconds, "visit": session("1 second")}
    return [
        Workload("M1", "20 tumbling of 1 to 20 s", _sum(seconds), batch=BATCH, goal=30),
        Workload("M2", "M1, session, 20% late", _sum(late), Shape(late=True), BATCH, goal=15),
    ]


def _w1() -> list[Workload]:
    known = {1: (47, 300), 10: (46, 250), 100: (21, 150), 1000: (0.65, 40)}
    return [
        Workload(f"W1 N={n}", f"{n} tumbling", _sum(_tumbling(n)), scotty=scotty, goal=goal)
        for n, (scotty, goal) in known.items()
    ]


def _w2() -> list[Workload]:
    known = {1: (25, 60), 20: (23.5, 60), 100: (13.5, 50), 1000: (0.53, 15)}
    late = Shape(late=True)
    return [
        Workload(f"W2 N={n}", f"{n} tumbling, session, 20% late", _sum(_w2_windows(n)), late, None, *numbers)
        for n, numbers in known.items()
    ]


def _w3() -> list[Workload]:
    known = {"1 s": (45, 250), "100 ms": (16.6, 150)}
    return [
        Workload(
            f"W3 {slide}",
            f"60 s every {slide}",
            _sum({"w": sliding("60 s", slide)}),
            scotty=scotty,
            goal=goal,
        )
        for slide, (scotty, goal) in known.items()
    ]


def _w4() -> Workload:
    """Scotty's number is for inserts only: its results are missing."""
    query = _sum({"c": count(1_000)})
    return Workload("W4", "1,000 tuples, 20% late", query, Shape(late=True), None, 8.4, 20)


def _w5() -> Workload:
    query = windows(**_w2_windows(20)).aggregate(middle=a.median("value")).on("at")
    return Workload("W5", "median over W2 N=20", query, Shape(late=True), None, 0.85, 8)


def _w6() -> Workload:
    """A tuple per key and second; twice the tuples, so that the sliding windows fill."""
    named = {"ten": tumbling("10 s"), "sixty": sliding("60 s", "10 s")}
    query = windows(**named).aggregate(total=a.sum("value"), mean=a.mean("value")).by("key").on("at")
    shape = Shape(keys=KEYS, per_second=KEYS)
    return Workload("W6", "100,000 keys, sum and mean", query, shape, goal=10, times_tuples=2)


def _w7() -> Workload:
    """100 tumbling, 80 sliding and 20 session windows, drawn once."""
    rng = np.random.default_rng(7)
    named: dict[str, Window] = {f"t{i}": tumbling(f"{rng.integers(1, 200) * 100} ms") for i in range(100)}
    for i in range(80):
        slide = int(rng.integers(1, 50)) * 100
        named[f"s{i}"] = sliding(f"{slide * int(rng.integers(2, 20))} ms", f"{slide} ms")
    named |= {f"g{i}": session(f"{rng.integers(5, 40) * 100} ms") for i in range(20)}
    shape = Shape(late=True, pauses=True)
    return Workload("W7", "200 mixed, pauses, 20% late", _sum(named), shape, goal=10)


def _p() -> list[Workload]:
    """What any engine of tables is asked, too: over a stream in order, and over keys with late tuples."""
    total, seconds = a.sum("value"), (1, 2, 3, 5, 6, 8, 10, 12, 15, 20)
    ten: dict[str, Window] = {f"s{i}": tumbling(f"{i} s") for i in seconds}
    asked: dict[str, tuple[str, dict[str, Window], Aggregate]] = {
        "P1": ("10 s", {"w": tumbling("10 s")}, total),
        "P2": ("60 s every 1 s", {"w": sliding("60 s", "1 s")}, total),
        "P3": ("ten tumbling", ten, total),
        "P4": ("session 1 s", {"w": session("1 s")}, total),
        "P5": ("median of 10 s", {"w": tumbling("10 s")}, a.median("value")),
    }
    in_order, late = Shape(pauses=True), Shape(late=True, keys=50, pauses=True)
    queries = {
        name: windows(**named).aggregate(total=one).on("at") for name, (_, named, one) in asked.items()
    }
    told = {name: text for name, (text, _, _) in asked.items()}
    return [
        *(Workload(name, f"{told[name]}, pauses", query, in_order) for name, query in queries.items()),
        *(
            Workload(f"{name} keys", f"{told[name]}, 50 keys, late", query.by("key"), late)
            for name, query in queries.items()
        ),
    ]


def _tumbling(n: int) -> dict[str, Window]:
    return {f"t{length}": tumbling(f"{length} ms") for length in lengths(n)}


def _w2_windows(n: int) -> dict[str, Window]:
    return {**_tumbling(n), "visit": session("1 second")}


def _sum(named: dict[str, Window]) -> Query:
    return windows(**named).aggregate(total=a.sum("value")).on("at")
