"""The oracle: what a query must answer, recomputed from the raw tuples.

It stores every tuple, and at each step computes every window anew. It shares no
code with the engine but the declarations that users write, so that a mistake in
one cannot hide in the other. Slow on purpose, and meant to be read as the
definition of windows, lateness and revisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muntin.errors import DataError, QueryError, nearest
from muntin.testing.oracle.emission import Key, NamedWindow
from muntin.testing.oracle.settings import settings_of
from muntin.testing.oracle.tuples import Arrival, View
from muntin.testing.rows import Row
from muntin.timeline import INF, LIMIT, NEG_INF, instant

__all__ = ["Oracle"]


class Oracle:
    """Answers a query from its raw tuples; the measure for every engine.

    >>> import muntin as mt
    >>> from muntin import aggregates as a, windows as w
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    >>> oracle = Oracle(query)
    >>> oracle.process([{"t": 3}, {"t": 12}, {"t": 7}])
    []
    >>> for row in oracle.advance(10):
    ...     print(row)
    ten [0, 10) n=2 final 0
    >>> oracle.process([{"t": 9}])
    []
    >>> oracle.advance(11), oracle.late
    ([], [('ten', {'t': 9})])
    """

    def __init__(self, query: Any) -> None:
        self._settings = settings_of(query)
        self._queries: dict[str, NamedWindow] = {}
        for name, window in self._settings.windows.items():
            self._queries[name] = NamedWindow(name, window, NEG_INF, self._settings)
        self._watermark = NEG_INF
        self._upto = NEG_INF  # the watermark without the INF of finish()
        self._newest = NEG_INF
        self._arrived = 0
        self._pending: list[tuple[Key, Arrival]] = []
        self._judged: list[tuple[int, list[tuple[Key, Arrival]]]] = []
        self.late: list[tuple[str, Mapping[str, Any]]] = []

    def process(self, rows: Iterable[Mapping[str, Any]]) -> list[Row]:
        """Take rows that arrived; returns early results if the query wants them after each batch."""
        times = [(row, self._time(row)) for row in rows]
        arrived: list[tuple[Key, Arrival]] = []
        for row, time in times:
            if time is None:  # a bad tuple that the user chose to skip
                continue
            key = tuple(row[column] for column in self._settings.keys)
            arrived.append((key, Arrival(time, self._arrived, row)))
            self._arrived += 1
        # Older tuples wait until the watermark moves: tuples that arrive meanwhile may join their sessions.
        final = self._watermark - self._settings.lateness
        self._judge([(key, item) for key, item in arrived if item.time >= final])
        self._pending += [(key, item) for key, item in arrived if item.time < final]
        if self._settings.early_each_batch:
            return self._emit(self._watermark, self._watermark, early=True)
        return []

    def advance(self, watermark: object) -> list[Row]:
        """Raise the watermark (a lower one is ignored) and return the results that are complete."""
        before = self._watermark
        now = max(before, int(instant(watermark)))
        period = self._settings.early_every
        return self._step(now, early=period is not None and now // period > before // period)

    def finish(self) -> list[Row]:
        """End the stream: every window closes."""
        return self._step(INF, early=False)

    def add_query(self, name: str, window: Any, since: int) -> None:
        """Start another named window, whose first window may start at `since`."""
        if name in self._queries:
            raise QueryError(f'query names must differ: "{name}" runs already')
        added = self._watermark if since > NEG_INF else NEG_INF
        query = NamedWindow(name, window, since, self._settings, added)
        for watermark, tuples in self._judged:
            query.judge(tuples, watermark)
        self._queries[name] = query

    def remove_query(self, name: str) -> None:
        """Stop a named window; its pending results are never emitted."""
        if name not in self._queries:
            raise QueryError(f'no query "{name}" runs.{nearest(name, self._queries)}')
        query = self._queries.pop(name)
        self.late += [(name, item.row) for item in query.judge(self._pending, self._watermark)]

    def _step(self, now: int, early: bool) -> list[Row]:
        before = self._watermark
        if now > before:
            self._judge(self._pending)
            self._pending = []
        self._watermark = now
        self._upto = now if now < INF else self._upto
        return self._emit(before, now, early)

    def _judge(self, tuples: list[tuple[Key, Arrival]]) -> None:
        """Decide about these tuples, all together, by the watermark under which they arrived."""
        self._newest = max([self._newest, *(item.time for _, item in tuples)])
        for query in self._queries.values():
            self.late += [(query.name, item.row) for item in query.judge(tuples, self._watermark)]
        self._judged.append((self._watermark, tuples))

    def _emit(self, before: int, now: int, early: bool) -> list[Row]:
        view = self._view(closing=now == INF)
        return [row for query in self._queries.values() for row in query.emit(before, now, view, early)]

    def _view(self, closing: bool = False) -> View:
        wants_early = self._settings.early_each_batch or self._settings.early_every is not None
        return View(self._upto, closing or wants_early, self._newest)

    def _time(self, row: Mapping[str, Any]) -> int | None:
        """The time of a row; None for a bad tuple that is to be skipped."""
        trouble = self._trouble(row)
        if not trouble:
            return int(instant(row[self._settings.time]))
        if self._settings.bad == "fail":
            raise DataError(trouble)
        return None

    def _trouble(self, row: Mapping[str, Any]) -> str:
        for column in (self._settings.time, *self._settings.keys):
            if column not in row:
                return f'no column "{column}".{nearest(column, row)}'
        value = row[self._settings.time]
        if value is None:
            return f'the time column "{self._settings.time}" must not be null'
        if isinstance(value, int) and abs(value) > LIMIT:
            return f"times must lie within +-2**62: got {value}"
        for query in self._queries.values():
            measure = getattr(query.window, "measure", None)
            if measure is not None and row.get(measure) is None:
                return f'the measure "{measure}" must not be null'
        return ""
