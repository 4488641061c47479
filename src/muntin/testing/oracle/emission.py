"""One named window in the oracle: which tuples count for it, and what it emits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from muntin.testing.oracle.aggregates import aggregate_value
from muntin.testing.oracle.settings import Settings
from muntin.testing.oracle.time_windows import is_context_free, latest_end
from muntin.testing.oracle.tuples import Arrival, Found, Tuples, View, runs
from muntin.testing.oracle.windows import find_windows, is_plain_session
from muntin.testing.rows import Row
from muntin.timeline import INF

__all__ = ["Emitted", "Key", "NamedWindow", "numbers"]

Key = tuple[Any, ...]
Identity = tuple[Any, ...]


@dataclass
class Emitted:
    """What was last said about a window."""

    aggregates: dict[str, Any]
    content: frozenset[int]
    due: int
    revision: int
    finalized: bool  # it was complete at least once
    live: bool = True  # False after a retraction


@dataclass
class NamedWindow:
    """One named window: the tuples that it accepted and what it emitted, per key."""

    name: str
    window: Any
    since: int
    settings: Settings
    accepted: dict[Key, list[Arrival]] = field(default_factory=dict)
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
            items, rejected = self._judge_key(key, items, watermark)
            self.accepted.setdefault(key, []).extend(items)
            self.accepted[key].sort(key=lambda item: (item.time, item.seq))
            late += rejected
        return late

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

    def windows(self, key: Key, view: View) -> dict[Identity, Found]:
        """The windows of a key as they stand now, by identity."""
        found: dict[Identity, Found] = {}
        for window in find_windows(self.window, tuple(self.accepted.get(key, [])), view):
            if is_context_free(self.window) and window.start < self.since:
                continue
            # Windows between tuples of one time may have equal edges: number them.
            number = 0
            while (identity := (window.start, window.end, window.low, window.high, number)) in found:
                number += 1
            found[identity] = window
        return found

    def emit(self, before: int, now: int, view: View, early: bool) -> list[Row]:
        """The rows of one step: the watermark went from `before` to `now`."""
        retracts, results = [], []
        for key in self.accepted:
            emitted = self.emitted.setdefault(key, {})
            windows = self.windows(key, view)
            for identity, said in emitted.items():
                if said.live and identity not in windows and said.due + self.lateness > before:
                    said.live = False
                    said.revision += 1
                    retracts.append(self._row(key, identity, said, "retract"))
            for identity, window in windows.items():
                known = emitted.get(identity)
                kind = self._kind(window, known, before, now, early)
                if kind is not None:
                    emitted[identity] = self._describe(window, known, kind)
                    results.append(self._row(key, identity, emitted[identity], kind))
        return retracts + results

    def _kind(self, window: Found, known: Emitted | None, before: int, now: int, early: bool) -> str | None:
        """The kind of row that this window gives now; None: it gives none."""
        due = INF if window.open else window.due
        if due + self.lateness <= before and self._frozen(window, known):
            return None
        changed = known is None or not known.live or known.content != numbers(window)
        if due <= now:
            if known is None or not known.finalized:
                return "final"
            return "update" if changed else None
        return "early" if early and changed and window.content else None

    def _frozen(self, window: Found, known: Emitted | None) -> bool:
        """Whether a window that expired stays as it is.

        One that nobody knew before is new, however early its end lies: a tuple
        at the watermark may close a frame at the watermark, and the next tuple
        after a silence makes its empty windows. Only a context free window that
        expired cannot be entered any more.
        """
        return known is not None or (is_context_free(self.window) and bool(window.content))

    def _describe(self, window: Found, known: Emitted | None, kind: str) -> Emitted:
        return Emitted(
            aggregates={
                name: aggregate_value(aggregate, window.content)
                for name, aggregate in self.settings.aggregates.items()
            },
            content=numbers(window),
            due=INF if window.open else window.due,
            revision=0 if known is None else known.revision + 1,
            finalized=kind != "early" or (known is not None and known.finalized),
        )

    def _row(self, key: Key, identity: Identity, emitted: Emitted, kind: str) -> Row:
        start, end, low, high, _ = identity
        return Row(key, self.name, start, end, emitted.aggregates, kind, emitted.revision, low, high)


def numbers(window: Found) -> frozenset[int]:
    """The content of a window as a set that can be compared."""
    return frozenset(item.seq for item in window.content)
