"""Random queries and streams for hypothesis, small enough to shrink to something readable.

    from hypothesis import given
    from muntin.testing.scenarios import check
    from muntin.testing.strategies import scenarios

    @given(scenarios())
    def test_my_engine(scenario):
        check(scenario, MyEngine)

A stream is drawn as a flat list of integers, each of which encodes one small
item (a row, the end of a batch, an advance and so on) whose time is relative to
the items before it. 0 encodes no item, so hypothesis shrinks a stream by removing
items. A window is one integer as well. So a scenario of any length takes a few
milliseconds to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import muntin as mt
from muntin.testing.scenarios import Action, Scenario
from muntin.testing.strategy_aggregates import AGGREGATES
from muntin.testing.strategy_picks import INTEGERS, STAMPS, Clock, Picks
from muntin.testing.strategy_windows import FAMILIES, window

__all__ = ["queries", "scenarios"]

_ON_INTEGERS = tuple(family for family in FAMILIES if family != "calendar")
_LATENESS = (0, 0, 3, 10, 40, 100)
_SILENCES = (1, 2, 3, 5, 8, 13, 20, 50)

_COLUMNS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "k": (pa.string(), ["x", "y", None, "x"]),
    "j": (pa.int64(), [1, 2, 1, None, 1]),
    "i": (pa.int64(), [0, 1, 2, None, 5, -3, 2]),
    "f": (pa.float64(), [1.0, 0.5, None, -2.25, float("nan"), 8.0, 0.5, 3.75, 1.0]),
    "s": (pa.string(), ["a", "b", None, "", "b", "zz"]),
    "b": (pa.bool_(), [True, False, None]),
    "m": (pa.int64(), [0, 0, -1, 2, -3, 0, 1, 0]),  # plus the time
    "d": (pa.float64(), [0.0, 0.5, 0.25, 0.1, 0.75]),  # plus m
    "g": (pa.int64(), [3, 1, 7, 2, 5]),  # lengths of time: durations where times are timestamps
}
_ROWS = [{name: v[number % len(v)] for name, (_, v) in _COLUMNS.items()} for number in range(126)]
_STEPS = (0, 0, 1, 1, 2, 3, 5, 9, -1, -1, -2, -3, -5, -9, -20)
_AHEAD = (0, 1, 2, 5, 12, 40, -1, -2, -3, -4, -6, -8, -11, -15)
_FURTHEST = 200
"""The largest distance of a tuple behind the newest: with a greater lateness none is late."""
# Hypothesis draws integers up to 24 bits evenly, and larger ones mostly small.
_CODES = st.integers(0, 2**24 - 1)
_WINDOWS = st.lists(_CODES, min_size=1, max_size=4)
_CHOSEN = st.lists(st.integers(0, len(AGGREGATES) - 1), min_size=1, max_size=4, unique=True)
_KINDS = ("nothing", *["row"] * 7, "row at the final time", "batch", "advance", "advance", "again")


class _Ranges(NamedTuple):
    """The windows and aggregates to choose from, the ranges of times and lengths, and the keys."""

    families: Sequence[str]
    aggregates: Sequence[str] = tuple(AGGREGATES)
    early: bool = False
    lateness: Sequence[int] = _LATENESS
    stretches: Sequence[int] = (1,)  # of the lengths of a window
    steps: Sequence[int] = _STEPS
    ahead: Sequence[int] = _AHEAD
    keys: Sequence[Any] = ()  # in addition to those of the rows
    silences: Sequence[int] = ()  # after which a key is forgotten
    live_aggregates: bool = False  # whether aggregates are added and removed, as windows are
    changes: bool = False  # whether only changes are emitted


_WIDE: dict[str, Any] = {
    "lateness": (0, 0, 10, 100, 150, 400),
    "stretches": (1, 1, 10, 40),
    "steps": (*_STEPS, 30, 130, -60, -150),
    "ahead": (*_AHEAD, 150, -40, -120),
    "keys": ("x", "y", "z", "", "xy", "é"),
}


def queries(
    families: Sequence[str] = _ON_INTEGERS,
    clock: Clock = INTEGERS,
    *,
    early: bool = False,
    lateness: Sequence[int] = _LATENESS,
) -> SearchStrategy[Any]:
    """A query of one to four windows, one to four aggregates and up to two keys.

    The stream must have the columns that `scenarios` makes. Lengths are in units of
    `clock`.
    """
    ranges = _Ranges(families, early=early, lateness=lateness)
    drawn = st.tuples(_WINDOWS, _CHOSEN, _CODES)
    return drawn.map(lambda codes: _query(codes[0], codes[1], Picks(codes[2], clock), ranges))


def scenarios(
    families: Sequence[str] = _ON_INTEGERS,
    *,
    stamps: bool = False,
    early: bool = False,
    lateness: Sequence[int] | None = None,
    live: bool = False,
    live_aggregates: bool = False,
    snapshots: bool = False,
    wide: bool = False,
    forget: bool = False,
    changes: bool = False,
    items: int = 60,
    aggregates: Sequence[str] = tuple(AGGREGATES),
) -> SearchStrategy[Scenario]:
    """A query of these families and a stream for it, disordered, with ties, nulls and several keys.

    `stamps`: a timestamp column instead of integers, which calendar windows need.
    `live`: windows are added and removed, with `live_aggregates` aggregates, too.
    `snapshots`: the engine is restored here and there. `wide`: longer windows, silences
    and lateness, and more keys. `forget`: silent keys are forgotten. `changes`: only
    changes are emitted. `items`: how long a stream becomes. `aggregates`: from which to
    choose, by their names in `muntin.testing.strategy_aggregates.AGGREGATES`.

    >>> from hypothesis import find
    >>> find(scenarios(("session",)), lambda scenario: True)
    mt.windows(w0=w.session(gap=1)).aggregate(n=a.count()).on('t', late='route')
      finish
    """
    kinds = _KINDS + ("snapshot",) * snapshots + ("add", "remove") * live
    ranges = _Ranges(families, aggregates, early)._replace(**_WIDE if wide else {})
    if lateness is not None:
        ranges = ranges._replace(lateness=lateness)
    if forget:
        ranges = ranges._replace(silences=_SILENCES)
    ranges = ranges._replace(changes=changes, live_aggregates=live_aggregates)

    def build(windows: list[int], chosen: list[int], other: int, codes: list[int]) -> Scenario:
        pick = Picks(other)
        ending = pick((True, True, True, False))
        pick.clock = pick(STAMPS) if stamps else INTEGERS
        stream = _Stream(_query(windows, chosen, pick, ranges), pick.clock, ranges)
        for code in codes:
            stream.item(Picks(code), kinds)
        return stream.scenario(ending)

    codes = st.lists(_CODES, min_size=min(16, items), max_size=items)
    return st.tuples(_WINDOWS, _CHOSEN, _CODES, codes).map(lambda drawn: build(*drawn))


def _query(windows: list[int], chosen: list[int], pick: Picks, ranges: _Ranges) -> Any:
    names = dict.fromkeys(ranges.aggregates[number % len(ranges.aggregates)] for number in chosen)
    picked = [_window(Picks(code), pick.clock, ranges) for code in windows]
    query = mt.windows(**{f"w{i}": window for i, window in enumerate(picked)})
    keys = pick([(), ("k",), ("k",), ("k", "j")])
    policies = {
        "allowed_lateness": pick.span(ranges.lateness),
        "early": pick([mt.each_batch(), mt.every(pick.clock.span(5))]) if ranges.early else None,
        "late": "route",
        "emit": mt.on_change() if ranges.changes else mt.on_close(),
        "forget_keys_after": pick.span(ranges.silences) if ranges.silences else None,
    }
    limited = {name: _over_some(AGGREGATES[name], len(windows), pick) for name in names}
    return query.aggregate(**limited).by(*keys).on("t", **policies)


def _over_some(aggregate: Any, windows: int, pick: Picks) -> Any:
    """The aggregate over all windows, or over some of them."""
    if windows == 1 or pick((False, False, True)) is False:
        return aggregate
    names = [f"w{i}" for i in range(windows) if pick((True, False))]
    return aggregate.over(*names or ["w0"])


def _window(pick: Picks, clock: Clock, ranges: _Ranges) -> Any:
    pick.clock = clock._replace(stretch=pick(ranges.stretches))
    return window(pick, ranges.families)


class _Stream:
    """Turns drawn items into actions; times are relative to the newest row before."""

    def __init__(self, query: Any, clock: Clock, ranges: _Ranges) -> None:
        self._query, self._clock, self._ranges = query, clock, ranges
        self._actions: list[Action] = []
        self._names = [name for name, _ in query.windows]
        self._gone: list[str] = []
        self._aggregates = [name for name, _ in query.aggregates]
        self._rows: list[dict[str, Any]] = []
        self._newest = 0
        self._watermark = -50
        self._highest = -50
        self._lateness = query.allowed_lateness // clock.unit
        self._arrived = 0

    def item(self, pick: Picks, kinds: Sequence[str]) -> None:
        """Perform a drawn item."""
        kind = pick(kinds)
        if kind == "row":
            self._row(self._newest + pick(self._ranges.steps), pick)
        elif kind == "row at the final time":  # exactly there it is in time, before it is late
            final = self._highest - self._lateness
            self._row(max(final + pick((0, 0, 1, -1)), self._newest - _FURTHEST), pick)
        elif kind == "batch":
            self._batch()  # two in a row make an empty one
        elif kind == "advance":
            self._watermark = self._newest + pick(self._ranges.ahead)
            self._highest = max(self._highest, self._watermark)
            self._act("advance", self._clock.inside(self._watermark))
        elif kind == "again":  # the same watermark once more, or a lower one
            self._act("advance", self._clock.inside(self._watermark + pick((0, -3))))
        elif kind == "snapshot":
            self._act("snapshot")
        elif kind == "add" and self._ranges.live_aggregates and pick((False, True)):
            names = [name for name in self._ranges.aggregates if name not in self._aggregates]
            self._aggregates.append(pick(names))
            self._act("add", self._aggregates[-1], AGGREGATES[self._aggregates[-1]])
        elif kind == "remove" and self._ranges.live_aggregates and pick((False, True)):
            if len(self._aggregates) > 1:
                self._act("remove", self._aggregates.pop(pick(range(len(self._aggregates)))))
        elif kind == "add":
            again = pick((False, True)) and self._gone  # a name that was free already
            self._names.append(self._gone.pop() if again else f"a{len(self._actions)}")
            self._act("add", self._names[-1], _window(pick, self._clock, self._ranges))
        elif kind == "remove" and len(self._names) > 1:
            self._gone.append(self._names.pop(pick(range(len(self._names)))))
            self._act("remove", self._gone[-1])

    def scenario(self, ending: bool) -> Scenario:
        """All that was drawn; `ending`: the stream ends, so that every window closes."""
        if ending:
            self._act("finish")
        types = {name: type_ for name, (type_, _) in _COLUMNS.items()}
        types["g"] = self._clock.length_type
        schema = pa.schema([("t", self._clock.type), ("id", pa.int64()), *types.items()])
        return Scenario(self._query, schema, tuple(self._actions))

    def _row(self, time: int, pick: Picks) -> None:
        row = {"t": self._clock.value(time), "id": self._arrived, **pick(_ROWS)}
        row["m"] += time
        row["d"] += row["m"]
        row["g"] = self._clock.span(row["g"])
        if (key := pick((None, *self._ranges.keys))) is not None:
            row["k"] = key
        self._rows.append(row)
        self._newest = max(self._newest, time)
        self._arrived += 1

    def _batch(self) -> None:
        self._actions.append(Action("process", self._rows))
        self._rows = []

    def _act(self, name: str, value: Any = None, window: Any = None) -> None:
        if self._rows:
            self._batch()
        self._actions.append(Action(name, value, window))
