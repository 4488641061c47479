"""An embedded stream that a page plays: a thread pushes the steps of a feed into an operator."""

from __future__ import annotations

import threading
import time as clocks
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from muntin.connectors.embedded import Operator
from muntin.dashboard.feeds import Feed
from muntin.dashboard.shown_stream import ShownStream, replanned
from muntin.dashboard.slice_strip import Look
from muntin.dashboard.written_items import read_item
from muntin.errors import MuntinError, QueryError, nearest
from muntin.planning.plan import Explanation
from muntin.results import Results
from muntin.testing.engines import rows_of_table
from muntin.testing.rows import compare
from muntin.testing.transcript_files import Step

__all__ = ["LiveStream"]

LONGEST_PAUSE = 0.25
"""Seconds that the thread sleeps at most; then it reads the speed again."""
MOST_STEPS = 20
"""Steps per second: a step has a fixed cost, and more cannot be seen. At higher speeds inputs are joined."""


class LiveStream(ShownStream):
    """Plays a feed: all of it, or the transcripts of a file one at a time.

    >>> from muntin.dashboard.feeds import Feed
    >>> from muntin.testing.transcript_files import Step
    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    >>> steps = (Step("input", {"t": [1, 4, 12]}), Step("watermark", 10))
    >>> stream = LiveStream([Feed("two steps", query, lambda: steps, rate=1)])
    >>> for _ in range(3):
    ...     stream.step()
    >>> stream.state, stream.history.taken, stream.history.given
    ('ended', 3, 1)
    """

    def __init__(self, feeds: Sequence[Feed], speed: float = 1.0) -> None:
        self.feeds = feeds
        super().__init__(feeds[0].title, feeds[0].about, feeds[0].query)
        self.set_speed(speed)
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self.choose(feeds[0].title)

    def choose(self, title: str) -> None:
        """Begin with another feed."""
        titles = {feed.title: feed for feed in self.feeds}
        if title not in titles:
            raise QueryError(f'there is no stream "{title[:60]}".{nearest(title, titles)}')
        self.feed = titles[title]
        self.notes.clear()
        self.restart()

    def restart(self) -> None:
        """Begin again with the first step, and the query as it was."""
        feed = self.feed
        self.title, self.about, self.query = feed.title, feed.about, feed.query
        self._forget()
        self.steps_done, self.error = 0, ""
        self.operator: Operator = self.query.operator(**self._options())
        self._stats = self.operator.stats()
        self._steps: Iterator[Step] = iter(feed.steps())
        self._ahead: Step | None = None
        self._plan = self.query.explain()
        self.state = "playing" if feed.plays else "paused"
        self.version += 1

    def _options(self) -> dict[str, Any]:
        return {name: value for name, value in self.feed.options.items() if value is not None}

    # Playing. ---------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread = threading.Thread(target=self._play, name="muntin dashboard", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def play(self) -> None:
        """Make steps until the stream ends or `pause` is called."""
        if self.state == "paused":
            self.state = "playing"
        elif self.state in ("ended", "error"):
            self.restart()
            self.state = "playing"
        self.version += 1
        self._wake.set()

    def pause(self) -> None:
        """Make no further steps."""
        if self.state == "playing":
            self.state = "paused"
            self.version += 1

    def step(self, together: int = 1) -> None:
        """Make the next step: tuples, a watermark, a change of the query, or the end.

        Up to this number of tables of tuples are taken in `together`, if they follow each other.
        """
        with self.lock:
            if self.state in ("ended", "error"):
                return
            try:
                step = self._joined(together) if together > 1 or self._ahead else next(self._steps, None)
                if step is None:
                    self.state = "ended"
                else:
                    self._make(step)
            except MuntinError as error:
                self.state, self.error = "error", str(error)
            except Exception as error:
                # A thread that ends unseen would leave a page that says "playing".
                self.state, self.error = "error", f"{type(error).__name__}: {error}"
                raise
            finally:
                self.version += 1
                if self.history.sample_is_old():
                    self._stats = self.operator.stats()
                    self.history.sample(self.counters())

    def _joined(self, most: int) -> Step | None:
        """The next step, with the tuples of those after it as long as they are tables of the same columns."""
        first, self._ahead = self._ahead or next(self._steps, None), None
        tables: list[pa.Table] = []
        step = first
        while step is not None and isinstance(step.value, pa.Table | pa.RecordBatch):
            if tables and step.value.schema != tables[0].schema:
                break
            table = step.value
            tables.append(table if isinstance(table, pa.Table) else pa.Table.from_batches([table]))
            if len(tables) == most:
                return Step("input", pa.concat_tables(tables))
            step = next(self._steps, None)
        if not tables:
            return first
        self._ahead = step
        return Step("input", pa.concat_tables(tables))

    def _play(self) -> None:
        ready = clocks.monotonic()
        while not self._closed:
            if self.state != "playing":
                self._wake.wait(LONGEST_PAUSE)
                self._wake.clear()
                ready = clocks.monotonic()
                continue
            pause = ready - clocks.monotonic()
            if pause > 0:
                clocks.sleep(min(pause, LONGEST_PAUSE))
                continue
            with self.lock:  # so that nothing moves once `pause` has returned
                rate = self.feed.rate * self.speed
                together = max(1, round(rate / MOST_STEPS))
                if self.state == "playing":
                    self.step(together)
            # Where steps take longer than the speed allows, it does not catch up later.
            ready = max(ready, clocks.monotonic() - LONGEST_PAUSE) + together / rate

    def _make(self, step: Step) -> None:
        self.steps_done += 1
        before = self.query
        try:
            results = self._perform(step)
        except MuntinError as error:
            if step.error is None:
                raise
            self._note("check", f"step {self.steps_done}: the expected error: {error}")
            return
        flat = results.to_arrow()
        if before is self.query or flat.num_rows:
            self._given(flat)
        if not self.aggregates and self.history.keys:
            self._know_aggregates(self.operator.open_windows().to_arrow())
        if self.feed.outline:
            self._check(step, results)

    def _perform(self, step: Step) -> Results:
        """The results of a step; inputs are remembered with the watermark before."""
        op = self.operator
        match step.action:
            case "input":
                watermark = op.watermark
                results = op.process(step.value)
                tuples = step.value
                table = pa.Table.from_pylist(tuples) if isinstance(tuples, list) else pa.table(tuples)
                self.history.take(table, watermark)
                return results
            case "watermark":
                return op.advance(step.value)
            case "finish":
                return op.finish()
            case "add":
                for name, window in step.value.items():
                    self._add_window(name, window)
            case _:
                self.remove("window", step.value)
        return Results(op.flush().to_arrow(nested=True))

    def _check(self, step: Step, results: Results) -> None:
        """Compare results with those that a transcript expects."""
        rows = rows_of_table(results.to_arrow(nested=True), self.query.keys)
        difference = compare(rows, step.expect)
        if difference:
            self._note(
                "error", f"step {self.steps_done}: differs from the transcript", difference.splitlines()
            )

    # Changes of the query. --------------------------------------------------------------------------

    def add(self, kind: str, name: str, text: str) -> None:
        item = read_item(kind, name, text)
        if name in dict(self.query.aggregates if kind == "window" else self.query.windows):
            raise QueryError(f'there is a window or an aggregate "{name}"; choose another name')
        if kind == "window":
            self._add_window(name, item)
            return
        added = self.operator.add(**{name: item})
        self._changed(replace(self.query, aggregates=(*self.query.aggregates, (name, item))), str(added))
        self._know_aggregates(self.operator.open_windows().to_arrow())

    def remove(self, kind: str, name: str) -> None:
        if kind == "window":
            self.operator.remove(name)
            windows = tuple(one for one in self.query.windows if one[0] != name)
            self._changed(replace(self.query, windows=windows), f'"{name}" is removed')
            return
        rest = tuple(one for one in self.query.aggregates if one[0] != name)
        if len(rest) == len(self.query.aggregates):
            raise QueryError(f'there is no aggregate "{name}".{nearest(name, dict(rest))}')
        self.operator.remove(name)
        self._changed(replace(self.query, aggregates=rest), f'"{name}" is removed')
        self._know_aggregates(self.operator.open_windows().to_arrow())

    def _add_window(self, name: str, window: Any) -> None:
        added = self.operator.add(**{name: window})
        windows = (*self.query.windows, (name, window))
        self._changed(replace(self.query, windows=windows), str(added))

    def _changed(self, query: Any, text: str) -> None:
        self.query, before = query, self._plan
        self._plan = query.explain()
        self._note("change", text, replanned(before, self._plan))

    # What it shows. ---------------------------------------------------------------------------------

    def look(self) -> Look:
        op = self.operator
        self._stats = op.stats()
        return Look(self.query, op.slices().to_arrow(), op.open_windows().to_arrow(), op.watermark)

    def counters(self) -> Mapping[str, int]:
        stats = self._stats
        return {
            name: value
            for name in stats.__dataclass_fields__
            if isinstance(value := getattr(stats, name), int)
        } | {"late": sum(stats.late.values())}

    def late_by_window(self) -> Mapping[str, int]:
        return self._stats.late

    def explanation(self) -> Explanation:
        return self._plan

    def extras(self) -> Mapping[str, Any]:
        outline = self.feed.outline
        titles = [feed.title for feed in self.feeds]
        replay = {"steps": outline, "done": self.steps_done} if outline else None
        return {"replay": replay, "titles": titles}
