"""The oracle: what a query must answer, recomputed from the raw tuples.

It stores every tuple, and at each step computes every window anew. It shares no
code with the engine but the declarations that users write, so that a mistake in
one cannot hide in the other. Slow on purpose, and meant to be read as the
definition of windows, lateness and revisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from muntin.errors import DataError, QueryError, nearest
from muntin.testing.oracle.additions import Storage
from muntin.testing.oracle.emission import Key, NamedWindow
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
        self._query = query
        self._period = getattr(query.early, "period", None)  # None for early results after each batch
        self._windows = {name: NamedWindow(name, window, NEG_INF, query) for name, window in query.windows}
        self._since = dict.fromkeys((name for name, _ in query.aggregates), NEG_INF)
        self._computed = list(self._since)
        for window in self._windows.values():
            window.compute(query, self._since)
        self._watermark = NEG_INF
        self._upto = NEG_INF  # the watermark without the INF of finish()
        self._newest = NEG_INF
        self._arrived = 0
        self._pending: list[tuple[Key, Arrival]] = []
        self._judged: list[tuple[int, list[tuple[Key, Arrival]]]] = []
        self.late: list[tuple[str, Mapping[str, Any]]] = []
        self._storage = Storage()
        self._storage.serve((window for _, window in query.windows), NEG_INF)

    def process(self, rows: Iterable[Mapping[str, Any]]) -> list[Row]:
        """Take rows that arrived; returns early results if the query wants them after each batch."""
        arrived: list[tuple[Key, Arrival]] = []
        for row, time in [(row, self._time(row)) for row in rows]:  # a bad tuple refuses them all
            if time is not None:
                key = tuple(row[column] for column in self._query.keys)
                arrived.append((key, Arrival(time, self._arrived, row)))
                self._arrived += 1
        # Older tuples wait until the watermark moves: tuples that arrive meanwhile may join their sessions.
        final = self._watermark - int(self._query.allowed_lateness)
        self._judge([(key, item) for key, item in arrived if item.time >= final])
        self._pending += [(key, item) for key, item in arrived if item.time < final]
        if self._query.early is None or self._period is not None:
            return []
        return self._emit(self._watermark, early=True)

    def advance(self, watermark: object) -> list[Row]:
        """Raise the watermark (a lower one is ignored) and return the results that are complete."""
        before = self._watermark
        now = max(before, int(instant(watermark)))
        self._upto = now if now < INF else self._upto
        return self._step(now, self._period is not None and now // self._period > before // self._period)

    def finish(self) -> list[Row]:
        """End the stream: every window closes."""
        return self._step(INF, early=False)

    def latest_start(self, window: Any) -> int:
        """Where the instances of a window that is added now begin at the latest."""
        lateness = int(self._query.allowed_lateness)
        return self._storage.latest_start(window, self._newest_arrived(), self._watermark, lateness)

    def _newest_arrived(self) -> int:
        return max(self._newest, *(item.time for _, item in self._pending), NEG_INF)

    def _serve(self) -> None:
        """Note which windows there are now."""
        self._storage.serve((one.window for one in self._windows.values()), self._newest_arrived())

    def add(self, name: str, window: Any, since: int | None) -> int:
        """Start another named window, which may begin at `since`; or compute another aggregate."""
        if hasattr(window, "lift"):
            self._set_aggregates((*self._query.aggregates, (name, window)), {name})
            return self._since[name]
        if since is None:
            raise ValueError("the oracle needs `since`, the start of the new window")
        if name in self._windows:
            raise QueryError(f'window names must differ: "{name}" runs already')
        added = self._watermark if since > NEG_INF else NEG_INF
        new = NamedWindow(name, window, since, self._query, added)
        for watermark, tuples in self._judged:
            new.judge(tuples, watermark)
        self._windows[name] = new
        self._serve()
        self._set_aggregates(self._query.aggregates, set())
        return since

    def remove(self, name: str) -> None:
        """Stop a named window; its pending results are never emitted."""
        if name in dict(self._query.aggregates):
            self._set_aggregates(tuple(one for one in self._query.aggregates if one[0] != name), set())
            return
        if name not in self._windows:
            raise QueryError(f'no window "{name}" runs.{nearest(name, self._windows)}')
        removed = self._windows.pop(name)
        self.late += [(name, item.row) for item in removed.judge(self._pending, self._watermark)]
        self._serve()
        self._set_aggregates(self._query.aggregates, set())

    def _set_aggregates(self, aggregates: Any, new: set[str]) -> None:
        """Other aggregates, or other windows that have them.

        An aggregate that is new, or that no window had so far, is known of the windows that begin after all
        tuples that have arrived.
        """
        names = [name for name, one in aggregates if any(map(one.is_over, self._windows))]
        newest = self._newest_arrived()
        later = NEG_INF if newest == NEG_INF else newest + 1
        for name in names:
            if name in new or name not in self._computed:
                self._since[name] = later
        self._computed = names
        self._query = replace(self._query, aggregates=aggregates)
        for window in self._windows.values():
            window.compute(self._query, self._since)

    def _step(self, now: int, early: bool) -> list[Row]:
        before = self._watermark
        if now > before:
            self._judge(self._pending)
            self._pending = []
        self._watermark = now
        return self._emit(before, early)

    def _judge(self, tuples: list[tuple[Key, Arrival]]) -> None:
        """Decide about these tuples, all together, by the watermark under which they arrived."""
        self._newest = max([self._newest, *(item.time for _, item in tuples)])
        for window in self._windows.values():
            self.late += [(window.name, item.row) for item in window.judge(tuples, self._watermark)]
        self._judged.append((self._watermark, tuples))

    def _emit(self, before: int, early: bool) -> list[Row]:
        """The rows of all windows: the watermark went up from `before`."""
        now = self._watermark
        view = View(self._upto, now == INF or self._query.early is not None, self._newest)
        return [row for window in self._windows.values() for row in window.emit(before, now, view, early)]

    def _time(self, row: Mapping[str, Any]) -> int | None:
        """The time of a row; None for a bad tuple that is to be skipped."""
        trouble = self._trouble(row)
        if not trouble:
            return int(instant(row[self._query.time]))
        if self._query.bad == "fail":
            raise DataError(trouble)
        return None

    def _trouble(self, row: Mapping[str, Any]) -> str:
        for column in (self._query.time, *self._query.keys):
            if column not in row:
                return f'no column "{column}".{nearest(column, row)}'
        value = row[self._query.time]
        if value is None:
            return f'the time column "{self._query.time}" must not be null'
        if isinstance(value, int) and abs(value) > LIMIT:
            return f"times must lie within +-2**62: got {value}"
        for name in (named.window.measure for named in self._windows.values()):
            if name is not None and row.get(name) is None:
                return f'the measure "{name}" must not be null'
        return ""
