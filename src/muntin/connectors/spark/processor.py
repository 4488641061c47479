"""The reduce side: one stateful call per key group and micro-batch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from muntin.connectors.spark.checkpoints import HEAD, STATE
from muntin.connectors.spark.group_state import Stored, head_missing, read, size_of, token_of, write
from muntin.connectors.spark.packed_rows import CHANGE, CLOCK, NEVER, NEWEST, PAYLOAD
from muntin.connectors.spark.result_columns import as_columns, as_payloads
from muntin.connectors.spark.step import Given, Job, step
from muntin.connectors.spark.stream_stats import counted
from muntin.connectors.spark.workers import exempt_modules, message_first
from muntin.slicing.operator import SlicingOperator

__all__ = ["WindowProcessor"]

# Not as text: each task would have the JVM parse the text of each schema, twice.
PATHS, BODIES = (
    StructType([StructField("path", StringType())]),
    StructType([StructField("body", BinaryType())]),
)
AT_ONCE = 1 << 25
"""Bytes of a state whose parts are read in one message, which must be less than 2 GB."""

_cached: OrderedDict[tuple[str, int], Stored] = OrderedDict()
"""Operators of this worker process; one is used only if its token is that of the committed state."""
_MOST_CACHED = 64
"""The most operators in memory: a worker serves a few key groups of each of its streams."""


class WindowProcessor(StatefulProcessor):
    """Takes in the payloads of a key group, advances its watermark, and returns results and counters.

    A group is called in every micro-batch with tuples or a new watermark: a timer one millisecond after
    the watermark calls it without tuples. So windows complete without new input.
    """

    def __init__(self, job: Job, run: str, plain: bool) -> None:
        self.job = job
        self.run = run
        self.plain = plain
        """Whether results leave as columns."""
        self.done: set[int] = set()

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.handle = handle
        self.state = handle.getMapState(STATE, PATHS, BODIES)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:
        """The payloads of one group."""
        frame = pd.concat(list(rows))
        newest, clock = int(frame[NEWEST].max()), int(frame[CLOCK].max())
        given = Given(
            tuple(bytes(payload) for payload in frame[PAYLOAD].dropna()),
            None if newest == NEVER else newest,
            tuple(frame[CHANGE].dropna()),
            None if clock == NEVER else clock,
            _watermark(timerValues),
            _now(timerValues),
        )
        # A group has one task per micro-batch, and this object lives as long as the task.
        self.done.add(int(key[0]))
        yield from self._step(int(key[0]), given)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """The watermark has moved; a group with input in this micro-batch knows it already."""
        if int(key[0]) not in self.done:
            given = Given(watermark=_watermark(timerValues), now=_now(timerValues))
            yield from self._step(int(key[0]), given)

    def close(self) -> None:
        """The end of a task."""
        exempt_modules()

    def _step(self, group: int, given: Given) -> Iterator[pd.DataFrame]:
        with message_first():
            stored = self._load(group)
            results = step(stored, self.job, given)
        written = self._save(stored)
        _cached[self.run, group] = stored
        while len(_cached) > _MOST_CACHED:
            _cached.popitem(last=False)
        self.handle.registerTimer((given.watermark or 0) // 1000 + 1)
        counters = counted(stored, written)
        if self.plain:
            yield from as_columns(results, counters, self.job.outcome)
        else:
            yield as_payloads(results, counters)

    def _load(self, group: int) -> Stored:
        stored_head = self.state.getValue((HEAD,))
        if stored_head is None:
            self._require_nothing()
            return Stored(SlicingOperator(self.job.query), self.job.query, self.job.groups)
        head = bytes(stored_head[0])
        # Removed from the cache: if this step fails, its operator is not used again.
        cached = _cached.pop((self.run, group), None)
        if cached is not None and cached.token == token_of(head):
            return cached
        return read(head, self._bodies(head), self.job.query, self.job.groups, self.job.schema)

    def _require_nothing(self) -> None:
        """A SnapshotError where there are parts without a head."""
        if self.state.exists():
            raise head_missing()

    def _bodies(self, head: bytes) -> dict[str, bytes]:
        """All parts of the group, in one round trip where they are small."""
        if size_of(head) <= AT_ONCE:
            return {path: bytes(body) for (path,), (body,) in self.state.iterator() if path != HEAD}
        paths = [path for (path,) in list(self.state.keys()) if path != HEAD]
        parts = {path: self.state.getValue((path,)) for path in paths}
        return {path: bytes(part[0]) for path, part in parts.items() if part is not None}

    def _save(self, stored: Stored) -> int:
        written = write(stored)
        for path, body in (written.changed | {HEAD: written.head}).items():
            self.state.updateValue((path,), (body,))
        for path in written.gone:
            self.state.removeKey((path,))
        return written.nbytes


def _now(timer_values: Any) -> int | None:
    clock = timer_values.getCurrentProcessingTimeInMs()
    return int(clock) * 1000 if clock > 0 else None


def _watermark(timer_values: Any) -> int | None:
    watermark = timer_values.getCurrentWatermarkInMs()
    return int(watermark) * 1000 if watermark > 0 else None  # Spark's 0 means that there is none yet
