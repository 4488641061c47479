"""A stream that a page shows and controls: the common base of embedded streams and those of Spark."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

import pyarrow as pa

from muntin.dashboard.history import History, Key, of_key
from muntin.dashboard.slice_strip import Look
from muntin.dashboard.zoomed_lines import ZoomedLines, finest_width, numeric
from muntin.dsl import Query
from muntin.errors import QueryError, nearest
from muntin.planning.plan import Explanation

__all__ = ["Note", "ShownStream"]

MOST_NOTES = 30
SPEEDS = (0.1, 100.0)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened: a change of the query with its re-planning, an error."""

    kind: str
    """"change", "error" or "check"."""
    at: int | None
    """The newest event time then."""
    text: str
    lines: tuple[str, ...] = ()


class ShownStream(ABC):
    """Commands of the page, and the data that it shows.

    One thread makes steps, others read: each holds `lock`. `version` increases with every change; a page
    that has shown this version waits.
    """

    verbs: Sequence[str] = (
        "play",
        "pause",
        "step",
        "restart",
        "speed",
        "choose",
        "key",
        "aggregate",
        "add",
        "remove",
    )
    """The commands that it obeys."""
    aggregates_are_fixed = False
    loading = "The stream is starting."

    def __init__(self, title: str, about: str, query: Query) -> None:
        self.title, self.about, self.query = title, about, query
        self.lock = threading.RLock()
        self.state, self.error = "loading", ""
        self.speed = 1.0
        self.version = 0
        self.notes: deque[Note] = deque(maxlen=MOST_NOTES)
        self._forget()

    def _forget(self) -> None:
        """Begin with nothing seen."""
        self.history = History(self.query.time, self.query.keys)
        self.key: Key | None = None
        self.aggregates: list[str] = []
        self.aggregate: str | None = None
        self.lines: ZoomedLines | None = None

    # What it shows. ---------------------------------------------------------------------------------

    @property
    def has_look(self) -> bool:
        """Whether `look` can be called yet."""
        return True

    @abstractmethod
    def look(self) -> Look:
        """What the stream holds now."""

    @abstractmethod
    def counters(self) -> Mapping[str, int]:
        """The counters of the engine by name."""

    @abstractmethod
    def late_by_window(self) -> Mapping[str, int]:
        """The late tuples of each window; empty where the engine counts them together."""

    @abstractmethod
    def explanation(self) -> Explanation:
        """The plan of the query."""

    def extras(self) -> Mapping[str, Any]:
        """Sections of the page that only this kind of stream has."""
        return {}

    # What the page commands. --------------------------------------------------------------------------

    @abstractmethod
    def start(self) -> None:
        """Start the stream in a new thread."""

    @abstractmethod
    def close(self) -> None:
        """End the thread and the processes that it started."""

    @abstractmethod
    def add(self, kind: str, name: str, text: str) -> None:
        """Serve another window or aggregate, written as in a query file."""

    @abstractmethod
    def remove(self, kind: str, name: str) -> None:
        """Stop serving it."""

    def choose_key(self, label: str) -> None:
        """Show another key."""
        labels = {self.label(key): key for key in self.history.keys}
        if label not in labels:
            raise QueryError(f'no tuple has the key "{label[:60]}" yet.{nearest(label, labels)}')
        self.key = labels[label]
        self._draw_lines_anew()

    def choose_aggregate(self, name: str) -> None:
        """Show another aggregate in the strip and the lines."""
        if name not in self.aggregates:
            raise QueryError(f'there is no numeric aggregate "{name[:60]}".{nearest(name, self.aggregates)}')
        self.aggregate = name
        self._draw_lines_anew()

    def set_speed(self, speed: float) -> None:
        """Play faster or more slowly than at speed 1."""
        low, high = SPEEDS
        if not low <= speed <= high:
            raise QueryError(f"the speed must be from {low} to {high:g}: got {str(speed)[:20]}")
        self.speed = float(speed)

    # What subclasses call. ----------------------------------------------------------------------------

    @staticmethod
    def label(key: Key) -> str:
        """A key as the page shows it."""
        return " · ".join("null" if part is None else str(part) for part in key)

    def _given(self, results: pa.Table) -> None:
        """Take flat results in."""
        if self.key is None and self.history.keys:
            self.key = self.history.keys[0]
        if not results.num_rows:
            return
        self.history.give(results)
        if not self.aggregates:
            self._know_aggregates(results)
        if self.lines is not None and self.key is not None:
            self.lines.add(of_key(results, self.history.key_names, self.key))

    def _know_aggregates(self, table: pa.Table) -> None:
        """Learn from a table with their columns which aggregates are numbers."""
        self.aggregates = numeric(table, [name for name, _ in self.query.aggregates])
        if self.aggregate not in self.aggregates:
            self.aggregate = next(iter(self.aggregates), None)
        self._draw_lines_anew()

    def _draw_lines_anew(self) -> None:
        """Lines of this key and aggregate, from the results in memory."""
        if self.aggregate is None or self.key is None:
            return
        width = finest_width(self.query, self.history.timed)
        self.lines = ZoomedLines(width, self.aggregate, self.query.allowed_lateness)
        results = self.history.results.table()
        if results is not None:
            self.lines.add(of_key(results, self.history.key_names, self.key))

    def _note(self, kind: str, text: str, lines: Sequence[str] = ()) -> None:
        self.notes.appendleft(Note(kind, self.history.newest, text, tuple(lines)))
        self.version += 1


def replanned(before: Explanation, after: Explanation) -> list[str]:
    """The lines of the explanation that a change of the query changed, as - and + lines.

    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> def plan(**windows):
    ...     return mt.windows(**windows).aggregate(n=a.count()).on("t").explain()
    >>> for line in replanned(plan(ten=w.tumbling(10)), plan(ten=w.tumbling(10), five=w.tumbling(5)))[:2]:
    ...     print(line)
    - computes  1 aggregate over 1 window (ten) from slices: 0.1 a unit of time
    + computes  1 aggregate over 2 windows (ten, five) from shared slices: 0.2 a unit of time
    """
    old, new = (
        [*(f"{name}  {text}" for name, text in one.summary), *map(str.strip, one.details.splitlines())]
        for one in (before, after)
    )
    differences = unified_diff(old, new, n=0, lineterm="")
    return [
        f"{line[0]} {line[1:]}" for line in differences if line[0] in "+-" and line[:3] not in ("+++", "---")
    ]
