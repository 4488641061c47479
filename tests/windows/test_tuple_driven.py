"""Tuple-driven windows against a reference per key, whatever the split into calls."""

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
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import aggregates as a
from muntin import windows as w
from muntin.timeline import INF, NEG_INF
from muntin.windows.base import Context, Tuples

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
    due: int
    low: Any = None
    high: Any = None


# ---- the references: one per window, from its definition ---------------------------------


@dataclass
class View:
    """What is known: the promise `upto`, whether all is over, the newest tuple of the stream."""

    upto: int
    closing: bool
    newest: int


Reference = Callable[[Any, list[Row], View], list[Found]]


def count(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for low in range(0, len(rows), window.every):
        part = rows[low : low + window.n]
        if len(part) == window.n or view.closing:
            end = part[-1].time + 1
            due = end if len(part) == window.n else INF
            found.append(Found(low, low + len(part), part[0].time, end, due, low, low + window.n))
    return found


def capped(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for begin, end in pieces(
        rows,
        lambda run, row: row.time - run[-1].time > window.gap or row.time >= run[0].time + window.max_length,
    ):
        first, last = rows[begin].time, rows[end - 1].time
        stop = min(last + window.gap, first + window.max_length)
        due = min(last + window.gap + 1, first + window.max_length)
        if end < len(rows) or due <= view.upto or view.closing:
            found.append(Found(begin, end, first, stop, due))
    return found


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


def punctuation(window: Any, rows: list[Row], view: View) -> list[Found]:
    return between(rows, pieces(rows, lambda run, row: row.flag is True), view, window.measure)


def threshold(window: Any, rows: list[Row], view: View) -> list[Found]:
    parts = pieces(rows, lambda run, row: (row.flag is True) != (run[-1].flag is True))
    frames = [(b, e) for b, e in parts if rows[b].flag is True and e - b >= window.min_count]
    return between(rows, frames, view, window.measure)


def value_of(column: str) -> Callable[[Row], Any]:
    def value(row: Row) -> Any:
        found = getattr(row, column)
        return None if found is None or found != found else found

    return value


def delta(window: Any, rows: list[Row], view: View) -> list[Found]:
    value = value_of(window.column.column)

    def breaks(run: list[Row], row: Row) -> bool:
        reference = next((value(r) for r in run if value(r) is not None), None)
        return None not in (reference, value(row)) and abs(value(row) - reference) > window.by

    return between(rows, pieces(rows, breaks), view, window.measure)


def boundary(window: Any, rows: list[Row], view: View) -> list[Found]:
    value = value_of(window.column.column)

    def band(row: Row) -> Any:
        return None if value(row) is None else math.floor(value(row) / window.step)

    def breaks(run: list[Row], row: Row) -> bool:
        reference = next((band(r) for r in run if band(r) is not None), None)
        return None not in (reference, band(row)) and band(row) != reference

    return between(rows, pieces(rows, breaks), view, window.measure)


def until(window: Any, rows: list[Row], view: View) -> list[Found]:
    aggregate, found, begin = window.aggregate, [], 0
    position = positions(rows, window.measure)
    for end in range(1, len(rows) + 1):
        partial = aggregate.identity()
        for rank in range(begin, end):
            values = [getattr(rows[rank], e.column) for e in aggregate.inputs]
            partial = aggregate.combine(partial, aggregate.lift(*values, at=(rows[rank].time, rank)))
        value = aggregate.lower(partial)
        if value is not None and (value >= window.limit or value != value):
            stop = rows[end - 1].time + 1
            marks = position[begin], position[end - 1]
            found.append(Found(begin, end, rows[begin].time, stop, stop, *marks))
            begin = end
    if view.closing and begin < len(rows):
        stop, marks = rows[-1].time + 1, (position[begin], position[-1])
        found.append(Found(begin, len(rows), rows[begin].time, stop, INF, *marks))
    return found


def slide_by_tuple(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for rank in range(window.every - 1, len(rows), window.every):
        time = rows[rank].time
        begin = min(i for i in range(rank + 1) if rows[i].time > time - window.length)
        found.append(Found(begin, rank + 1, time + 1 - window.length, time + 1, time + 1))
    return found


def last(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    edges = range(-200, 400)
    for edge in (e for e in edges if (e - window.offset) % window.every == 0 and rows and e > rows[0].time):
        if edge <= view.upto or (view.closing and edge - window.every <= view.newest):
            before = [i for i, row in enumerate(rows) if row.time < edge]
            begin = max(0, len(before) - window.n)
            found.append(Found(begin, len(before), rows[begin].time, edge, edge))
    return found


def measured_periodic(window: Any, rows: list[Row], view: View) -> list[Found]:
    position = positions(rows, window.measure)
    found = []
    for number in range(-200, 200):
        low = window.offset + number * window.slide
        high = low + window.length
        inside = [i for i, at in enumerate(position) if low <= at < high]
        beyond = [i for i, at in enumerate(position) if at >= high]
        if inside and (beyond or view.closing):
            due = rows[beyond[0]].time if beyond else INF
            stop = rows[inside[-1]].time + 1
            found.append(Found(inside[0], inside[-1] + 1, rows[inside[0]].time, stop, due, low, high))
    return found


def measured_session(window: Any, rows: list[Row], view: View) -> list[Found]:
    position = positions(rows, window.measure)
    cuts = [i for i in range(1, len(rows)) if position[i] - position[i - 1] > window.gap]
    parts = list(zip([0, *cuts], [*cuts, len(rows)], strict=True)) if rows else []
    return [
        found._replace(low=position[found.begin], high=position[found.end - 1] + window.gap)
        for found in between(rows, parts, view, None)
    ]


def discretize(window: Any, rows: list[Row], view: View) -> list[Found]:
    found, begun = [], []
    for rank, row in enumerate(rows):
        begins, ends = turns(row.price, rank)
        found += [Found(b, rank, rows[b].time, row.time, row.time) for b in begun[:ends]]
        begun = begun[ends:] + [rank] * begins
    if view.closing and rows:
        stop = rows[-1].time + 1
        found += [Found(b, len(rows), rows[b].time, stop, INF) for b in begun]
    return found


def turns(price: int | None, rank: int) -> tuple[int, int]:
    return (price or 0) % 3, rank % 3


def trigger(window: Any, rows: list[Row], view: View) -> list[Found]:
    found, buffer = [], []
    for rank, row in enumerate(rows):
        buffer = [*buffer, rank]
        buffer = buffer[older_than_ten([rows[i].time for i in buffer]) :]
        if buffer and sum(rows[i].price or 0 for i in buffer) % 2:
            found.append(Found(buffer[0], rank + 1, rows[buffer[0]].time, row.time + 1, row.time + 1))
    return found


def older_than_ten(times: list[int]) -> int:
    return sum(times[-1] - time > 10 for time in times)


class Visits(w.ForwardContextFree):
    """A window from each flagged tuple to the third one after it; the state is changed in place."""

    columns = ("flag",)

    def initial_state(self) -> Any:
        return {"open": []}

    def observe(self, state: Any, record: w.Record) -> tuple[Any, int, int]:
        ends = sum(record.rank - begin >= 3 for begin in state["open"])
        del state["open"][:ends]
        begins = int(record["flag"] is True)
        state["open"] += [record.rank] * begins
        return state, begins, ends


def visits(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for begin, row in enumerate(rows):
        if row.flag is True and begin + 3 < len(rows):
            time = rows[begin + 3].time
            found.append(Found(begin, begin + 3, row.time, time, time))
        elif row.flag is True and view.closing:
            found.append(Found(begin, len(rows), row.time, rows[-1].time + 1, INF))
    return found


class Peaks(w.ForwardContextAware):
    """Each new highest price, with up to two tuples before it; the state is changed in place."""

    columns = ("price",)

    def initial_state(self) -> Any:
        return {"highest": -100}

    def observe(self, state: Any, record: w.Record) -> tuple[Any, list[tuple[int, int]]]:
        price = record["price"]
        if price is None or price <= state["highest"]:
            return state, []
        state["highest"] = price
        return state, [(max(0, record.rank - 2), record.rank + 1)]

    def keep_rank(self, state: Any, rank: int) -> int:
        return max(0, rank - 2)


def peaks(window: Any, rows: list[Row], view: View) -> list[Found]:
    found = []
    for rank, row in enumerate(rows):
        before = [r.price for r in rows[:rank] if r.price is not None]
        if row.price is not None and row.price > max(before, default=-100):
            begin = max(0, rank - 2)
            found.append(Found(begin, rank + 1, rows[begin].time, row.time + 1, row.time + 1))
    return found


small = st.integers(1, 6)
WINDOWS: dict[str, tuple[st.SearchStrategy[Any], Reference]] = {
    "count": (st.builds(w.count, small, st.none() | small), count),
    "session": (st.builds(w.session, small, st.integers(1, 20)), capped),
    "punctuation": (
        st.builds(w.punctuation, st.just("flag"), measure=st.sampled_from([None, "km", "litres"])),
        punctuation,
    ),
    "threshold": (
        st.builds(w.threshold, st.just("flag"), st.integers(1, 3), measure=st.sampled_from([None, "km"])),
        threshold,
    ),
    "delta": (
        st.builds(
            w.delta, st.sampled_from(["price", "ratio", "cash"]), small, measure=st.sampled_from([None, "km"])
        ),
        delta,
    ),
    "boundary": (st.builds(w.boundary, st.sampled_from(["price", "ratio", "cash"]), small), boundary),
    "until": (
        st.builds(
            w.until,
            st.sampled_from(
                [a.count(), a.count("price")]
                + [f(c) for f in (a.sum, a.min, a.max, a.mean, a.stddev) for c in ("price", "ratio")]
            ),
            st.integers(-3, 6),
            measure=st.sampled_from([None, "litres"]),
        ),
        until,
    ),
    "slide_by_tuple": (st.builds(w.slide_by_tuple, small, small), slide_by_tuple),
    "last": (st.builds(w.last, small, st.integers(2, 9), st.integers(0, 3)), last),
    "measured sliding": (
        st.builds(w.sliding, small, small, st.integers(0, 3), measure=st.sampled_from(["km", "litres"])),
        measured_periodic,
    ),
    "measured session": (
        st.builds(w.session, small, measure=st.sampled_from(["km", "litres"])),
        measured_session,
    ),
    "discretize": (st.just(w.discretize(lambda r: turns(r["price"], r.rank), columns=["price"])), discretize),
    "trigger": (
        st.just(
            w.trigger(
                lambda buffer: sum(r["price"] or 0 for r in buffer) % 2 == 1,
                lambda buffer: older_than_ten([r.time for r in buffer]),
                columns=["price"],
            )
        ),
        trigger,
    ),
    "forward context free": (st.just(Visits()), visits),
    "forward context aware": (st.just(Peaks()), peaks),
}


# ---- driving a window through calls --------------------------------------------------------


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
            times = cuts.start[i].item(), cuts.stop[i].item(), cuts.due[i].item()
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


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data(), keys=streams())
def test_windows_do_not_depend_on_the_split(name: str, data: Any, keys: list[list[Row]]) -> None:
    windows, reference = WINDOWS[name]
    bases = data.draw(st.lists(st.integers(0, 3), min_size=len(keys), max_size=len(keys)))
    driver = Driver(data.draw(windows), reference, keys, bases)
    sizes = st.lists(st.integers(0, 5), min_size=len(keys), max_size=len(keys))
    for _ in range(data.draw(st.integers(0, 5))):
        driver.step(data.draw(sizes), data.draw(st.integers(-60, 60)), data.draw(st.booleans()))
    driver.step([12] * len(keys), 80, early=False)
    driver.step([0] * len(keys), 90, early=True)
