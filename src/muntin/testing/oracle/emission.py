"""One named window in the oracle: which tuples count for it, and what it emits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from muntin.testing.oracle.aggregates import aggregate_value
from muntin.testing.oracle.changes import Changes
from muntin.testing.oracle.time_windows import is_context_free, latest_end, spanned
from muntin.testing.oracle.tuples import Arrival, Instance, Tuples, View, runs
from muntin.testing.oracle.windows import find_windows, is_plain_session
from muntin.testing.rows import Row
from muntin.timeline import INF, NEG_INF

__all__ = ["Key", "NamedWindow"]

Key = tuple[Any, ...]
Identity = tuple[Any, ...]


@dataclass
class Emitted:
    """The latest row of a window, and the window as it was then."""

    row: Row
    window: Instance
    finalized: bool  # it was complete then
    live: bool = True  # False after a retraction


@dataclass
class NamedWindow:
    """One named window of a query: the tuples that it accepted and what it emitted, per key."""

    name: str
    window: Any
    since: int
    query: Any
    known_since: int = NEG_INF  # windows that ended by then were over before the query was there
    accepted: dict[Key, list[Arrival]] = field(default_factory=dict)
    in_time: dict[Key, list[tuple[int, int]]] = field(default_factory=dict)  # see `_extents`
    emitted: dict[Key, dict[Identity, Emitted]] = field(default_factory=dict)
    known_from: dict[str, int] = field(default_factory=dict)  # per aggregate the least start of its windows

    def __post_init__(self) -> None:
        self.changes = Changes(self.query.forget_keys_after)  # of use with `mt.on_change()` only
        forget, name = self.query.forget_keys_after, type(self.window).__name__
        self.lateness = int(self.query.allowed_lateness)
        self.forget = INF if forget is None else int(forget)
        self.context_free = is_context_free(self.window)
        self.emits_empty = self.context_free and bool(self.window.emit_empty)
        # Whether windows end with the life of their key, not only by time or with their last tuple.
        self.ends_with_key = (
            forget is not None
            and name not in ("Landmark", "Session", "CappedSession", "ReachingSession")
            and (self.emits_empty or not self.context_free)
            and not (name == "SlideByTuple" and self.window.every == 1)
        )

    def compute(self, query: Any, since: dict[str, int]) -> None:
        """Other aggregates from now on, each of windows that begin at its `since` or later."""
        self.query, self.known_from = query, since
        names = [name for name, _ in query.aggregates]
        for windows in self.emitted.values():
            for latest in windows.values():
                values = {name: latest.row.aggregates.get(name) for name in names}
                latest.row = latest.row._replace(aggregates=values)
        self.changes.compute(names)

    # ---- which tuples count --------------------------------------------------

    def judge(self, pending: Iterable[tuple[Key, Arrival]], watermark: int) -> list[Arrival]:
        """Accept the pending tuples that are not late and return those that are."""
        late = []
        final = watermark - self.lateness
        arrivals: dict[Key, list[Arrival]] = {}
        for key, item in pending:
            arrivals.setdefault(key, []).append(item)
        if is_plain_session(self.window):
            for key, tuples in self.accepted.items():
                self.accepted[key] = self._in_living_sessions(tuples, final)
        for key, items in arrivals.items():
            accepted = self.accepted.setdefault(key, [])
            verdicts = self._verdicts(items, accepted, final)
            late += [item for item, in_time in verdicts if not in_time]
            taken = [item for item, in_time in verdicts if in_time]
            accepted += taken
            accepted.sort()
            if self.emits_empty:
                counted = taken + [item for item in items if item.time >= max(final, self.since)]
                self.in_time.setdefault(key, []).extend(
                    (max(item.time, final), item.time) for item in counted
                )
        return late

    def _verdicts(
        self, items: list[Arrival], accepted: list[Arrival], final: int
    ) -> list[tuple[Arrival, bool]]:
        """The tuples that are in windows of this query, each with whether one of these has not expired."""
        if self.context_free:
            ends = [(item, latest_end(self.window, item.time, self.since)) for item in items]
            return [(item, end > final) for item, end in ends if end is not None]
        items = [item for item in items if item.time >= self.since]
        if is_plain_session(self.window):  # judged after joining: with the tuples that touch it
            living = {item.seq for item in self._in_living_sessions([*accepted, *items], final)}
            return [(item, item.seq in living) for item in items]
        return [(item, item.time >= final) for item in items]

    def _in_living_sessions(self, tuples: Iterable[Arrival], final: int) -> list[Arrival]:
        sessions = find_windows(self.window, tuple(sorted(tuples)), View(INF, False, INF))
        return [item for session in sessions if session.end >= final for item in session.content]

    # ---- what is emitted -----------------------------------------------------

    def windows(self, key: Key, view: View) -> dict[Identity, Instance]:
        """The current windows of a key, by identity."""
        instances: dict[Identity, Instance] = {}
        for life, window in self._instances(key, view):
            if self.context_free and (window.start < self.since or window.end <= self.known_since):
                continue  # from before the query was there
            # A window is known by its edges on its own measure: late tuples may shift those in time.
            # The next life of a key may have the same edges on ranks or a measure.
            edges = (window.start, window.end) if window.low is None else (life, window.low, window.high)
            # Windows between tuples of one time may have equal edges: number them.
            number = 0
            while (identity := (*edges, number)) in instances:
                number += 1
            instances[identity] = window
        return instances

    def _instances(self, key: Key, view: View) -> list[tuple[int, Instance]]:
        """All windows, each with the time of the first tuple in the life of its key."""
        tuples = tuple(self.accepted.get(key, []))
        if self.emits_empty:
            extents = self._extents(key)
            instances = [one for pair in extents for one in spanned(self.window, tuples, view, *pair)]
            return [(0, window) for window in {(one.start, one.end): one for one in instances}.values()]
        if not self.ends_with_key:
            return [(0, window) for window in find_windows(self.window, tuples, view)]
        lives = runs(tuples, lambda run, item: item.time - run[-1].time >= self.forget)
        return [(life[0].time, window) for life in lives for window in self._of_life(life, view)]

    def _of_life(self, life: Tuples, view: View) -> list[Instance]:
        """At its end open windows close, as at the end of a stream."""
        end = life[-1].time + self.forget
        view = view._replace(until=end)
        if end > view.upto:
            return find_windows(self.window, life, view)
        ended_windows = find_windows(self.window, life, view._replace(closing=True))
        return [one._replace(complete_at=min(one.complete_at, end)) for one in ended_windows]

    def _extents(self, key: Key) -> list[tuple[int, int]]:
        """The times of empty windows: from the first to the last tuple that was in time, in a window or not.

        A tuple does not count for windows that had expired at its arrival. Where silent
        keys are forgotten, each life has an extent. A tuple before the final time
        belongs to no life: its extent covers its own windows only.
        """
        in_time = self.in_time.get(key, [])
        if not self.ends_with_key:
            return [(min(first for first, _ in in_time), max(last for _, last in in_time))] if in_time else []
        lives: list[tuple[int, int]] = []
        for first, last in sorted(pair for pair in in_time if pair[0] <= pair[1]):
            if lives and first - lives[-1][1] < self.forget:
                first, last = lives[-1][0], max(last, lives.pop()[1])
            lives.append((first, last))
        return lives + [pair for pair in in_time if pair[0] > pair[1]]

    def emit(self, before: int, now: int, view: View, early: bool) -> list[Row]:
        """The rows of one step: the watermark went from `before` to `now`."""
        retracts, results = [], []
        for key in self.accepted:
            emitted = self.emitted.setdefault(key, {})
            windows = self.windows(key, view)
            for identity in sorted(emitted.keys() - windows.keys()):
                latest = emitted[identity]
                if latest.live and latest.window.complete_at + self.lateness > before:
                    latest.live = False
                    latest.row = latest.row._replace(kind="retract", revision=latest.row.revision + 1)
                    retracts.append((identity, latest.row, latest.window.complete_at))
            for identity, window in windows.items():
                known = emitted.get(identity)
                if known is None and self.emits_empty and window.complete_at + self.lateness <= before:
                    window = window._replace(content=())  # its tuples arrived after it had expired
                kind = self._kind(window, known, before, now, early)
                if kind is not None:
                    values = {name: self._value(name, one, window) for name, one in self.query.aggregates}
                    revision = 0 if known is None else known.row.revision + 1
                    edges, measured = (window.start, window.end), (window.low, window.high, identity[-1])
                    row = Row(key, self.name, *edges, values, kind, revision, *measured)
                    results.append((identity, row, window.complete_at))
                    # Not by `complete_at`: after an early row a late tuple may prolong the life of a key.
                    emitted[identity] = Emitted(row, window, finalized=kind != "early")
        if type(self.query.emit).__name__ == "OnChange":
            return self.changes.filtered(retracts + results, before - self.lateness)
        return [row for _, row, _ in retracts + results]

    def _value(self, name: str, aggregate: Any, window: Instance) -> Any:
        """The value of an aggregate; null where it is over other windows, or came after the window began."""
        if aggregate.only is not None and self.name not in aggregate.only:
            return None
        if window.start < self.known_from[name]:
            return None
        return aggregate_value(aggregate, window.content)

    def _kind(
        self, window: Instance, known: Emitted | None, before: int, now: int, early: bool
    ) -> str | None:
        """The kind of row that this window gives now; None: it gives none."""
        if self._frozen(window, known, before):
            return None
        changed = known is None or not known.live or _shape(known.window) != _shape(window)
        if window.complete_at <= now:
            if known is None or (known.live and not known.finalized):
                return "final"
            return "update" if changed else None  # also one that was retracted and is back
        return "early" if early and changed and window.content else None

    def _frozen(self, window: Instance, known: Emitted | None, before: int) -> bool:
        """Whether a window has expired, as it was emitted, and so stays as it is.

        One that was never complete before is new, however early its end is: a
        tuple at the watermark may close a frame at the watermark, and the next
        tuple after a silence makes its empty windows. Only a context free window
        that expired cannot be entered any more.
        """
        if known is not None and known.finalized:  # one that was retracted may return
            return known.live and known.window.complete_at + self.lateness <= before
        return self.context_free and bool(window.content) and window.complete_at + self.lateness <= before


def _shape(window: Instance) -> tuple[Any, ...]:
    """Edges in time and content. Known by its edges on a measure, a window may move in time."""
    return (window.start, window.end, [item.seq for item in window.content])
