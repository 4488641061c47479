"""Driving a tuple-driven window through calls, and comparing it with its definition.

A *reference* takes a window, the tuples of a key and what is known, and returns all
windows, from the definition alone. `check` passes random tuples in random calls and
compares after each of them.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Context
from muntin.windows.tuple_driven import EARLIER, Tuples

COLUMNS = {
    "flag": pa.bool_(),
    "price": pa.int64(),
    "ratio": pa.float64(),
    "cash": pa.decimal128(12, 2),
    "km": pa.int64(),
    "litres": pa.float64(),
}


class Row(NamedTuple):
    time: int
    flag: bool | None
    price: int | None
    ratio: float | None
    cash: Any
    km: int
    litres: float


class Found(NamedTuple):
    """Ranks from the first tuple of the key."""

    begin: int
    end: int
    start: int
    stop: int
    complete_at: int
    low: Any = None
    high: Any = None


@dataclass
class View:
    """What is known: the promise `upto`, whether all is over, the newest tuple of the stream."""

    upto: int
    closing: bool
    newest: int


Reference = Callable[[Any, list[Row], View], list[Found]]


def pieces(rows: list[Row], breaks: Callable[[list[Row], Row], bool]) -> list[tuple[int, int]]:
    """(begin, end) of the runs of tuples: one that breaks the run before starts the next."""
    begins: list[int] = []
    for i, row in enumerate(rows):
        if not begins or breaks(rows[begins[-1] : i], row):
            begins.append(i)
    return list(pairwise([*begins, len(rows)]))


def between(rows: list[Row], parts: list[tuple[int, int]], view: View, measure: str | None) -> list[Found]:
    """Frames that end at the tuple that starts the next piece."""
    found = []
    position = positions(rows, measure)
    for begin, end in parts:
        if end < len(rows):
            time = rows[end].time
            found.append(Found(begin, end, rows[begin].time, time, time, position[begin], position[end]))
        elif view.closing:
            last = len(rows) - 1
            stop = rows[last].time + 1
            found.append(Found(begin, end, rows[begin].time, stop, INF, position[begin], position[last]))
    return found


def positions(rows: list[Row], measure: str | None) -> list[Any]:
    if measure is None:
        return [None] * len(rows)
    return [max(getattr(row, measure) for row in rows[: i + 1]) for i in range(len(rows))]


@st.composite
def streams(draw: Any) -> list[list[Row]]:
    rows = st.builds(
        Row,
        time=st.integers(-40, 40),
        flag=st.sampled_from([True, False, None]),
        price=st.none() | st.integers(-8, 8),
        ratio=st.none() | st.sampled_from([math.nan, -2.5, 0.0, 0.5, 3.0, 7.25]),
        cash=st.none() | st.integers(-800, 800).map(lambda cents: pa.scalar(cents).as_py()),
        km=st.integers(-12, 12),
        litres=st.integers(-24, 24).map(lambda x: x / 2),
    )
    keys = draw(st.lists(st.lists(rows, max_size=12), min_size=1, max_size=4))
    return [[in_cents(row) for row in sorted(key, key=lambda row: row.time)] for key in keys]


def in_cents(row: Row) -> Row:
    return row if row.cash is None else row._replace(cash=Decimal(row.cash) / 100)


def tuples_of(window: Any, keys: list[list[Row]], bases: list[int], lo: list[int], hi: list[int]) -> Tuples:
    rows = [row for key, b, e in zip(keys, lo, hi, strict=True) for row in key[b:e]]
    ranks = [base + i for base, b, e in zip(bases, lo, hi, strict=True) for i in range(b, e)]
    offsets = np.cumsum([0, *(e - b for b, e in zip(lo, hi, strict=True))])
    columns = {e: pa.array([getattr(r, e.column) for r in rows], COLUMNS[e.column]) for e in window.inputs()}
    return Tuples(offsets, np.array([r.time for r in rows], np.int64), np.array(ranks, np.int64), columns)


@dataclass
class Driver:
    """Passes the tuples of all keys in calls, as an operator would."""

    window: Any
    reference: Reference
    keys: list[list[Row]]
    bases: list[int]

    def __post_init__(self) -> None:
        self.contexts = self.window.initial(len(self.keys))
        self.passed = [0] * len(self.keys)
        self.kept = [0] * len(self.keys)
        self.found: list[list[Found]] = [[] for _ in self.keys]
        self.newest = max((row.time for key in self.keys for row in key), default=0)

    @property
    def promise(self) -> int:
        """The highest time before which every tuple has been passed."""
        ahead = [key[n].time for key, n in zip(self.keys, self.passed, strict=True) if n < len(key)]
        return min(ahead, default=80)

    def cut(self, contexts: Any, lo: list[int], upto: int, closing: bool = False) -> list[list[Found]]:
        tuples = tuples_of(self.window, self.keys, self.bases, lo, self.passed)
        cuts = self.window.cut(contexts, tuples, upto, closing=closing, partial=closing, newest=self.newest)
        edges = list(zip(cuts.edge_segment.tolist(), cuts.edge_rank.tolist(), strict=True))
        assert edges == sorted(set(edges))
        found: list[list[Found]] = [[] for _ in self.keys]
        for i, (s, begin, end) in enumerate(
            zip(cuts.segment.tolist(), cuts.begin.tolist(), cuts.end.tolist(), strict=True)
        ):
            assert {(s, begin), (s, end)} <= set(edges)
            low, high = (None, None) if cuts.low is None else (cuts.low[i].item(), cuts.high[i].item())
            start = cuts.start[i].item()
            if start == EARLIER:
                start = self.keys[s][begin - self.bases[s]].time
            times = start, cuts.stop[i].item(), cuts.complete_at[i].item()
            found[s].append(Found(begin - self.bases[s], end - self.bases[s], *times, low, high))
        return found

    def step(self, sizes: list[int], upto: int, early: bool) -> None:
        lo = list(self.kept) if self.window.context is Context.FORWARD_AWARE else list(self.passed)
        self.passed = [
            min(n + size, len(key)) for key, n, size in zip(self.keys, self.passed, sizes, strict=True)
        ]
        upto = min(upto, self.promise)
        if early:  # a look ahead on (shallow) copies changes nothing
            before = copy.deepcopy(self.contexts)
            self.check(self.cut(self.contexts.copy(), lo, upto, closing=True), upto, closing=True)
            assert same(before, self.contexts)
        new = self.cut(self.contexts, lo, upto)
        self.check(new, upto, closing=False)
        for mine, more, oldest in zip(self.found, new, self.kept, strict=True):
            assert all(window.begin >= oldest for window in more)
            mine += more
        self.keep()

    def keep(self) -> None:
        if self.contexts.dtype == object:  # as through a snapshot
            for i, context in enumerate(self.contexts):
                self.contexts[i] = json.loads(json.dumps(context))
        seen = np.array([base + n for base, n in zip(self.bases, self.passed, strict=True)])
        kept = self.window.keep_from(self.contexts, seen)
        assert (kept <= seen).all()
        self.kept = [int(rank) - base for rank, base in zip(kept, self.bases, strict=True)]
        if self.window.context is Context.FORWARD_FREE:
            key, begin = self.window.open_begins(self.contexts, seen)
            for i, oldest in enumerate(self.kept):
                begins = [int(r) - self.bases[i] for k, r in zip(key, begin, strict=True) if k == i]
                assert min(begins, default=self.passed[i]) == oldest
                assert self.open_begins(i) <= set(begins)

    def open_begins(self, key: int) -> set[int]:
        """The begins of the windows that only closing shows."""
        rows = self.keys[key][: self.passed[key]]
        closed = self.reference(self.window, rows, View(self.upto, False, self.newest))
        shown = self.reference(self.window, rows, View(self.upto, True, self.newest))
        return {found.begin for found in shown if found not in closed}

    def check(self, new: list[list[Found]], upto: int, closing: bool) -> None:
        """All windows so far are those of the tuples so far."""
        self.upto = max(upto, getattr(self, "upto", NEG_INF))
        view = View(self.upto, closing, self.newest)
        for mine, more, rows, n in zip(self.found, new, self.keys, self.passed, strict=True):
            assert sorted(mine + more, key=str) == sorted(
                self.reference(self.window, rows[:n], view), key=str
            )


def same(a: Any, b: Any) -> bool:
    return str(a.tolist()) == str(b.tolist())


def check(window: Any, reference: Reference, keys: list[list[Row]], data: Any) -> None:
    """The windows are those of the definition, however the tuples are split into calls."""
    bases = data.draw(st.lists(st.integers(0, 3), min_size=len(keys), max_size=len(keys)))
    driver = Driver(window, reference, keys, bases)
    sizes = st.lists(st.integers(0, 5), min_size=len(keys), max_size=len(keys))
    for _ in range(data.draw(st.integers(0, 5))):
        driver.step(data.draw(sizes), data.draw(st.integers(-60, 60)), data.draw(st.booleans()))
    driver.step([12] * len(keys), 80, early=False)
    driver.step([0] * len(keys), 90, early=True)
