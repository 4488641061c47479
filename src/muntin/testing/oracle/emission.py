"""One named window in the oracle: which tuples count for it, and what it emits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from muntin.testing.oracle.aggregates import aggregate_value
from muntin.testing.oracle.settings import Settings
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
    """The latest row of a window."""

    window: Instance
    ordinal: int
    aggregates: dict[str, Any]
    content: frozenset[int]
    due: int
    revision: int
    finalized: bool  # it was complete then
    live: bool = True  # False after a retraction


@dataclass
class NamedWindow:
    """One named window: the tuples that it accepted and what it emitted, per key."""

    name: str
    window: Any
    since: int
    settings: Settings
    known_since: int = NEG_INF  # windows that ended by then were over before the query was there
    accepted: dict[Key, list[Arrival]] = field(default_factory=dict)
    extent: dict[Key, list[tuple[int, int]]] = field(default_factory=dict)  # times of empty windows
    emitted: dict[Key, dict[Identity, Emitted]] = field(default_factory=dict)

    # ---- which tuples count --------------------------------------------------

    def judge(self, pending: Iterable[tuple[Key, Arrival]], watermark: int) -> list[Arrival]:
        """Accept the pending tuples that are not late and return those that are."""
        late = []
        arrivals: dict[Key, list[Arrival]] = {}
        for key, item in pending:
            arrivals.setdefault(key, []).append(item)
        if is_plain_session(self.window):
            self._drop_expired_sessions(watermark)
        for key, items in arrivals.items():
            taken, rejected = self._judge_key(key, items, watermark)
            self.accepted.setdefault(key, []).extend(taken)
            self.accepted[key].sort(key=lambda item: (item.time, item.seq))
            if self.emits_empty:
                self._note_extent(key, items, taken, watermark)
            late += rejected
        return late

    def _note_extent(self, key: Key, items: list[Arrival], taken: list[Arrival], watermark: int) -> None:
        """From the first to the last tuple that was in time, also if it is in no window.

        A tuple does not count for windows that had expired at its arrival. Where silent
        keys are forgotten, each life has an extent. A tuple before the final time
        belongs to no life: its extent covers its own windows only.
        """
        final = watermark - self.lateness
        extents = self.extent.setdefault(key, [])
        for item in items:
            if item in taken or item.time >= max(final, self.since):
                extents.append((max(item.time, final), item.time))
        if not self.ends_with_key:
            firsts, lasts = zip(*extents, strict=True) if extents else ((INF,), (NEG_INF,))
            extents[:] = [(min(firsts), max(lasts))] if extents else []
            return
        alone = [pair for pair in extents if pair[0] > pair[1]]
        lives: list[tuple[int, int]] = []
        for first, last in sorted(pair for pair in extents if pair[0] <= pair[1]):
            if lives and first - lives[-1][1] < self.forget:
                first, last = lives[-1][0], max(last, lives.pop()[1])
            lives.append((first, last))
        extents[:] = lives + alone

    def _judge_key(
        self, key: Key, items: list[Arrival], watermark: int
    ) -> tuple[list[Arrival], list[Arrival]]:
        """The tuples that count, and those that are late; others are in no window of this query at all."""
        if is_context_free(self.window):
            ends = {item.seq: latest_end(self.window, item.time, self.since) for item in items}
            items = [item for item in items if ends[item.seq] is not None]
            alive = {seq for seq, end in ends.items() if end is not None and end + self.lateness > watermark}
        else:
            items = [item for item in items if item.time >= self.since]
            if is_plain_session(self.window):
                alive = self._in_living_sessions(key, items, watermark)
            else:
                alive = {item.seq for item in items if item.time >= watermark - self.lateness}
        late = [item for item in items if item.seq not in alive]
        return [item for item in items if item.seq in alive], late

    @property
    def lateness(self) -> int:
        """The allowed lateness."""
        return self.settings.lateness

    @property
    def forget(self) -> int:
        """The span of event time without tuples after which a key is forgotten."""
        return INF if self.settings.forget is None else self.settings.forget

    @property
    def ends_with_key(self) -> bool:
        """Whether windows end with the life of their key."""
        name = type(self.window).__name__
        if self.settings.forget is None or name in ("Landmark", "Session", "CappedSession"):
            return False
        if is_context_free(self.window):
            return self.emits_empty
        return name != "SlideByTuple" or bool(self.window.every > 1)

    @property
    def emits_empty(self) -> bool:
        """Whether windows without a tuple are emitted as well."""
        return is_context_free(self.window) and bool(self.window.emit_empty)

    def _sessions(self, tuples: Iterable[Arrival]) -> list[Tuples]:
        ordered = tuple(sorted(tuples, key=lambda item: (item.time, item.seq)))
        return runs(ordered, lambda run, item: bool(item.time - run[-1].time > self.window.gap))

    def _expired(self, session: Tuples, watermark: int) -> bool:
        return bool(session[-1].time + self.window.gap + self.lateness < watermark)

    def _in_living_sessions(self, key: Key, items: list[Arrival], watermark: int) -> set[int]:
        """A session is judged after joining: with the pending tuples that touch it."""
        together = self._sessions([*self.accepted.get(key, []), *items])
        return {item.seq for session in together if not self._expired(session, watermark) for item in session}

    def _drop_expired_sessions(self, watermark: int) -> None:
        for key, tuples in self.accepted.items():
            living = [session for session in self._sessions(tuples) if not self._expired(session, watermark)]
            self.accepted[key] = [item for session in living for item in session]

    # ---- what is emitted -----------------------------------------------------

    def windows(self, key: Key, view: View) -> dict[Identity, Instance]:
        """The current windows of a key, by identity."""
        instances: dict[Identity, Instance] = {}
        for life, window in self._instances(key, view):
            if is_context_free(self.window) and self._unserved(window):
                continue
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
            extents = self.extent.get(key, [])
            instances = [one for pair in extents for one in spanned(self.window, tuples, view, *pair)]
            return [(0, window) for window in {(one.start, one.end): one for one in instances}.values()]
        if not self.ends_with_key:
            return [(0, window) for window in find_windows(self.window, tuples, view)]
        lives = runs(tuples, lambda run, item: bool(item.time - run[-1].time >= self.forget))
        return [(life[0].time, window) for life in lives for window in self._of_life(life, view)]

    def _of_life(self, life: Tuples, view: View) -> list[Instance]:
        """At its end open windows close, as at the end of a stream."""
        end = life[-1].time + self.forget
        view = view._replace(until=end)
        if end > view.upto:
            return find_windows(self.window, life, view)
        closed = find_windows(self.window, life, view._replace(closing=True))
        return [one._replace(due=end if one.open else min(one.due, end), open=False) for one in closed]

    def _unserved(self, window: Instance) -> bool:
        """Context free windows from before the query was there."""
        return bool(window.start < self.since or window.end <= self.known_since)

    def emit(self, before: int, now: int, view: View, early: bool) -> list[Row]:
        """The rows of one step: the watermark went from `before` to `now`."""
        retracts, results = [], []
        for key in self.accepted:
            emitted = self.emitted.setdefault(key, {})
            windows = self.windows(key, view)
            for identity, latest in sorted(emitted.items(), key=lambda pair: pair[0]):
                if latest.live and identity not in windows and latest.due + self.lateness > before:
                    latest.live = False
                    latest.revision += 1
                    retracts.append(self._row(key, latest, "retract"))
            for identity, window in windows.items():
                known = emitted.get(identity)
                if known is None and self._came_too_late(window, before):
                    window = window._replace(content=())
                kind = self._kind(window, known, before, now, early)
                if kind is not None:
                    emitted[identity] = self._describe(window, identity[-1], known, kind)
                    results.append(self._row(key, emitted[identity], kind))
        return retracts + results

    def _kind(
        self, window: Instance, known: Emitted | None, before: int, now: int, early: bool
    ) -> str | None:
        """The kind of row that this window gives now; None: it gives none."""
        due = INF if window.open else window.due
        if self._frozen(window, known, before):
            return None
        changed = known is None or not known.live or known.content != numbers(window)
        # Known by its edges on a measure, a window also changes when it moves in time.
        if known is not None and known.window[:2] != window[:2]:
            changed = True
        if due <= now:
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
        if known is not None and known.finalized:
            return known.live and known.due + self.lateness <= before  # one that was retracted may return
        expired = not window.open and window.due + self.lateness <= before
        return expired and is_context_free(self.window) and bool(window.content)

    def _came_too_late(self, window: Instance, before: int) -> bool:
        """Whether a window had expired at the arrival of its tuples: it is emitted empty."""
        return self.emits_empty and window.due + self.lateness <= before

    def _describe(self, window: Instance, ordinal: int, known: Emitted | None, kind: str) -> Emitted:
        return Emitted(
            window=window,
            ordinal=ordinal,
            aggregates={
                name: aggregate_value(aggregate, window.content)
                for name, aggregate in self.settings.aggregates.items()
            },
            content=numbers(window),
            due=INF if window.open else window.due,
            revision=0 if known is None else known.revision + 1,
            finalized=kind != "early",  # a late tuple may prolong the life of a key, and open it again
        )

    def _row(self, key: Key, emitted: Emitted, kind: str) -> Row:
        window, values = emitted.window, (emitted.aggregates, kind, emitted.revision)
        edges = (window.low, window.high, emitted.ordinal)
        return Row(key, self.name, window.start, window.end, *values, *edges)


def numbers(window: Instance) -> frozenset[int]:
    """The content of a window as a set that can be compared."""
    return frozenset(item.seq for item in window.content)
