"""Edges that the user's code gives: integers, and the same ones from every method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import UserCodeError

ROWS = {"t": [1, 3, 7, 12, 14], "v": [1, 2, 4, 8, 16]}


def run(window: Any) -> list[tuple[int, int, int]]:
    rows = mt.windows(x=window).aggregate(x=a.sum("v")).on("t").run(ROWS).to_pylist()
    return [(row["window"]["start"], row["window"]["end"], row["x"]) for row in rows]


class Tens(w.ContextFree):
    """Windows of 10, whose edges are of a type to be chosen."""

    def __init__(self, of: Any = int) -> None:
        self.of = of

    def next_edge(self, time: int) -> Any:
        return self.of(time - time % 10 + 10)

    def containing(self, time: int) -> Any:
        return [(self.of(time - time % 10), self.of(time - time % 10 + 10))]


def test_integers_of_any_library_are_edges() -> None:
    for of in (int, np.int64, np.int32):
        assert run(Tens(of)) == [(0, 10, 7), (10, 20, 24)]


@pytest.mark.parametrize(
    "of", [float, np.float64, str, lambda edge: edge + 0.5], ids=["float", "np", "str", "+"]
)
def test_other_edges_are_refused(of: Any) -> None:
    with pytest.raises(UserCodeError, match=r"Tens: an edge must be an integer: got .*; use // instead of /"):
        run(Tens(of))


class Shifted(Tens):
    """`containing` shifts a side of the windows, and `next_edge` does not know it."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__()
        self.by = start, end

    def containing(self, time: int) -> Any:
        ((start, end),) = Tens.containing(self, time)
        start, end = start - self.by[0], end + self.by[1]
        return [(start, end)] if start <= time < end else []


@pytest.mark.parametrize(
    ("start", "end", "side"), [(5, 0, "start"), (0, 5, "end"), (3, 3, "start"), (0, 1, "end")]
)
def test_windows_between_edges_that_are_none_are_refused(start: int, end: int, side: str) -> None:
    """Slices are not cut there: without the check such a window would get tuples of its neighbours."""
    told = rf"containing must give edges that next_edge gives as well: got .* let next_edge give the {side}"
    with pytest.raises(UserCodeError, match=told):
        run(Shifted(start, end))
    op = mt.windows(x=Shifted(start, end), ten=w.tumbling(10)).aggregate(x=a.sum("v")).on("t").operator()
    op.process(ROWS)
    with pytest.raises(UserCodeError, match=told):
        op.advance(100)
    op.remove("x")
    assert op.finish()["x"].to_pylist() == [7, 24]


class Both(Tens):
    """Overlapping windows with all of their edges: of 10 and of 5."""

    def next_edge(self, time: int) -> int:
        return time - time % 5 + 5

    def containing(self, time: int) -> Any:
        return [(time - time % size, time - time % size + size) for size in (5, 10)]


def test_windows_with_all_their_edges_are_served() -> None:
    assert run(Both()) == [(0, 5, 3), (0, 10, 7), (5, 10, 4), (10, 15, 24), (10, 20, 24)]


class Ranks(w.ForwardContextAware):
    """Each tuple alone, by ranks of a type to be chosen."""

    columns = ("v",)

    def __init__(self, of: Any, keep: Any = int) -> None:
        self.of, self.keep = of, keep

    def observe(self, state: Any, record: w.Record) -> tuple[Any, list[tuple[Any, Any]]]:
        return state, [(self.of(record.rank), self.of(record.rank + 1))]

    def keep_rank(self, state: Any, rank: int) -> Any:
        return self.keep(rank)


def test_ranks_are_integers() -> None:
    assert [x for _, _, x in run(Ranks(np.int64))] == ROWS["v"]
    with pytest.raises(
        UserCodeError, match=r"Ranks: a rank or a time that observe gives must be an integer: got 0.0 for Rec"
    ):
        run(Ranks(float))
    with pytest.raises(
        UserCodeError, match=r"Ranks: the rank that keep_rank gives must be an integer: got 2.5"
    ):
        run(Ranks(int, lambda rank: rank / 2 + (0.5 if rank % 2 == 0 else 0)))
    assert math.isclose(sum(x for _, _, x in run(Ranks(int))), sum(ROWS["v"]))
