"""A streaming query of Spark that a page shows: its micro-batches, and the state after each."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.connectors import spark
from muntin.dashboard.shown_stream import ShownStream, replanned
from muntin.dashboard.slice_strip import Look
from muntin.dashboard.times import units
from muntin.dashboard.written_items import read_item
from muntin.errors import DataError, MuntinError, QueryError
from muntin.planning.plan import Explanation
from muntin.timeline import NEG_INF

if TYPE_CHECKING:
    import datetime as dt

    from muntin.connectors.spark.query_changes import Controlled
    from muntin.dsl import Query

__all__ = ["SparkStream", "Watched"]

FOLLOWING = ("key", "aggregate", "add", "remove")
"""The commands for a stream that the page does not feed."""
MOST_BATCHES = 12
PAUSE = 0.3
"""Seconds between two reads of the progress of a stream that the page does not feed."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A running streaming query, as `start()` returned it, and what the page needs to show it."""

    session: Any
    running: Any
    query: Query
    """The query of Muntin that it runs."""
    checkpoint: str
    frame: Any = None
    """The streaming DataFrame, for the plan on it."""
    control: Controlled | None = None
    """With it the page can add and remove windows."""
    feed: Iterator[pa.Table] | None = None
    """Writes tables to the source of the stream and yields them. With it the page plays the stream."""
    results: Callable[[], pa.Table | None] | None = None
    """Returns the results since the last call."""
    close: Callable[[], None] = lambda: None
    """Called at the end; the page itself leaves the streaming query running."""


class SparkStream(ShownStream):
    """Shows a streaming query, and feeds it where `Watched` has a feed.

    `begin` starts or finds the streaming query; it is called in the thread of the page, because a session
    takes seconds to start.
    """

    verbs: Sequence[str] = ("play", "pause", "step", *FOLLOWING)
    aggregates_are_fixed = True
    loading = "Spark is starting. Its first micro-batch takes 10 to 30 seconds."

    def __init__(self, title: str, query: Query, begin: Callable[[], Watched], about: str = "") -> None:
        super().__init__(title, about, query)
        self._begin, self._asked = begin, query
        self._plan = query.explain()
        self._watched: Watched | None = None
        self._look: Look | None = None
        self._counters: dict[str, int] = {}
        self._batches: deque[dict[str, Any]] = deque(maxlen=MOST_BATCHES)
        self._seen = -1
        self._wake = threading.Event()
        self._steps = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    # Commands. --------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="muntin dashboard", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=60)

    def play(self) -> None:
        """Feed one micro-batch after the other."""
        if self.state == "paused":
            self.state = "playing"
            self._wake.set()

    def pause(self) -> None:
        """Finish this micro-batch, and feed no further one."""
        if self.state == "playing":
            self.state = "paused"

    def step(self) -> None:
        """Feed one micro-batch."""
        if self.state == "paused":
            self._steps += 1
            self._wake.set()

    def add(self, kind: str, name: str, text: str) -> None:
        item = read_item(kind, name, text)
        if kind != "window":
            raise QueryError(
                "the aggregates of a stream on Spark are fixed; windows can change while it runs"
            )
        self._controlled().add(**{name: item})
        self._changed(f'"{name}" ({item.describe()}) is served from the next micro-batch on')

    def remove(self, kind: str, name: str) -> None:
        if kind != "window":
            raise QueryError(
                "the aggregates of a stream on Spark are fixed; windows can change while it runs"
            )
        self._controlled().remove(name)
        self._changed(f'"{name}" is no longer served from the next micro-batch on')

    def _controlled(self) -> Controlled:
        if self._watched is None or self._watched.control is None:
            raise QueryError(
                "the windows of this stream cannot change: it was not started with query.control(path)"
            )
        return self._watched.control

    def _changed(self, text: str) -> None:
        before = self._plan
        query = replace(self._asked, windows=tuple(self._controlled().served().items()))
        self.query, self._plan = query, self._explained(query)
        self._note("change", text, replanned(before, self._plan))

    def _explained(self, query: Query) -> Explanation:
        frame = None if self._watched is None else self._watched.frame
        return query.explain() if frame is None else query.explain(frame)

    # The stream. ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            watched = self._begin()
            try:
                with self.lock:
                    self._watched = watched
                    self._plan = self._explained(self._asked)
                    self.state = "playing"
                    if watched.feed is None:
                        self.verbs = FOLLOWING
                    self.version += 1
                self._follow(watched)
            finally:
                watched.close()
        except Exception as error:
            with self.lock:
                self.state, self.error = "error", _first_line(error)
                self.version += 1
            if not isinstance(error, MuntinError) and type(error).__module__.partition(".")[0] != "pyspark":
                raise

    def _follow(self, watched: Watched) -> None:
        while not self._closed:
            if self.state != "playing" and not self._steps and watched.feed is not None:
                self._wake.wait(PAUSE)
                self._wake.clear()
                continue
            tuples = None
            if watched.feed is not None:
                self._steps = max(0, self._steps - 1)
                tuples = next(watched.feed, None)
                if tuples is None:
                    self.state = "ended"
                    self.version += 1
                    return
                watched.running.processAllAvailable()  # with the micro-batch that closes windows
            else:
                self._wake.wait(PAUSE)
            if watched.running.exception() is not None:
                raise DataError(_first_line(watched.running.exception()))
            if watched.feed is None and not watched.running.isActive:
                self.state = "ended"
                self.version += 1
                return
            if self._has_new_batches(watched) and not self._closed:
                self._observe(watched, tuples)

    def _has_new_batches(self, watched: Watched) -> bool:
        new = [
            p for p in watched.running.recentProgress if p.batchId > self._seen and "addBatch" in p.durationMs
        ]
        for progress in new:
            self._seen = progress.batchId
            self._batches.appendleft(_batch(progress))
        return bool(new)

    def _observe(self, watched: Watched, tuples: pa.Table | None) -> None:
        """Look at the state after a micro-batch. The jobs of Spark run without the lock."""
        try:
            state = spark.state(watched.session, watched.checkpoint, query=watched.query)
            stats = watched.query.stats(watched.running)
            slices, opened = state.slices().toArrow(), state.open_windows().toArrow()
        except QueryError:
            return  # no micro-batch has any state yet
        results = None if watched.results is None else watched.results()
        with self.lock:
            before = NEG_INF if self._look is None else self._look.watermark
            if tuples is not None:
                self.history.take(tuples, before)
            else:
                self.history.newest = _micros(stats.newest)
                self.history.taken = stats.tuples
                self.history.given = stats.windows + stats.updates + stats.retractions
                self.history.know_keys(slices.select(self.history.key_names))
            watermark = NEG_INF if state.watermark is None else _micros(state.watermark) or NEG_INF
            self._look = Look(self.query, slices, opened, watermark)
            counters = {name: value for name, value in asdict(stats).items() if isinstance(value, int)}
            self._counters = counters
            if not self.aggregates and self.history.keys:
                self.key = self.key or self.history.keys[0]
                self._know_aggregates(opened)
            if results is not None:
                self._given(results)
            self.history.sample(counters)
            self.version += 1

    # What it shows. ---------------------------------------------------------------------------------

    def look(self) -> Look:
        if self._look is None:
            raise QueryError("the first micro-batch has not ended yet")
        return replace(self._look, query=self.query)

    @property
    def has_look(self) -> bool:
        return self._look is not None

    def counters(self) -> Mapping[str, int]:
        return self._counters

    def late_by_window(self) -> Mapping[str, int]:
        return {}

    def explanation(self) -> Explanation:
        return self._plan

    def extras(self) -> Mapping[str, Any]:
        remark = "the newest first; times as Spark reports them"
        return {"batches": {"rows": list(self._batches), "remark": remark}}


def _batch(progress: Any) -> dict[str, Any]:
    durations, rate = progress.durationMs, progress.processedRowsPerSecond
    watermark = (progress.eventTime or {}).get("watermark", "1970")  # Spark's word for none
    return {
        "batch": progress.batchId,
        "started": progress.timestamp[11:19],
        "rows": f"{progress.numInputRows:,}",
        "rate": f"{rate:,.0f}" if rate == rate else "-",
        "milliseconds": durations.get("triggerExecution", 0),
        "adding": f"{durations.get('addBatch', 0):,}",
        "watermark": "none yet" if watermark.startswith("1970") else watermark.replace("T", " ")[:16],
    }


def _micros(moment: dt.datetime | None) -> int | None:
    return None if moment is None else int(units(pa.array([moment]))[0].as_py())


def _first_line(error: object) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:600]
