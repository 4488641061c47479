"""Behind the shuffle: one stateful call per key group and micro-batch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from muntin.connectors.spark.payload import pack_results, take_in
from muntin.connectors.spark.state import Stored, read, token_of, write
from muntin.errors import SnapshotError
from muntin.query import QuerySpec
from muntin.slicing.operator import SlicingOperator

__all__ = ["WindowProcessor"]

HEAD, PARTS = "head", "parts"

_cached: OrderedDict[tuple[str, int], Stored] = OrderedDict()
"""Operators of this worker process; one is only used if its token is that of the committed state."""
_MOST_CACHED = 64


class WindowProcessor(StatefulProcessor):
    """Takes the payloads of a key group in, moves its watermark on, and gives results as payloads.

    A group is called in every micro-batch in which there are tuples or the watermark has moved: a
    timer one millisecond after the watermark sees to that, and so windows close without new input.
    """

    def __init__(self, query: QuerySpec, schema: pa.Schema, run: str) -> None:
        self.query = query
        self.schema = schema
        self.run = run

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.handle = handle
        self.head = handle.getValueState(HEAD, "head binary")
        self.parts = handle.getMapState(PARTS, "path string", "body binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:
        """The payloads of one group."""
        frame = pd.concat(list(rows))
        yield from self._step(key, frame, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """The watermark has moved."""
        yield from self._step(key, None, timerValues)

    def close(self) -> None:
        """Nothing is held open."""

    def _step(self, key: Any, packed: pd.DataFrame | None, timer_values: Any) -> Iterator[pd.DataFrame]:
        watermark = timer_values.getCurrentWatermarkInMs()
        stored = self._load(int(key[0]))
        operator = stored.operator
        results = []
        if packed is not None:
            newest = packed["newest"].max()
            payloads = [bytes(payload) for payload in packed["payload"].dropna()]
            results.append(take_in(operator, self.schema, payloads, None if pd.isna(newest) else int(newest)))
        if watermark > 0:  # 0 is Spark's way to say that there is none yet
            results.append(operator.advance(watermark * 1000))
        self._save(stored)
        _cached[self.run, int(key[0])] = stored
        while len(_cached) > _MOST_CACHED:
            _cached.popitem(last=False)
        self.handle.registerTimer(max(watermark, 0) + 1)
        found = [pack_results(table) for table in results if table.num_rows]
        if found:
            yield pd.DataFrame({"payload": found})

    def _load(self, group: int) -> Stored:
        head = self.head.get()
        if head is None:
            return Stored(SlicingOperator(self.query))
        # Taken out: if this step fails, what it did to the operator is not used again.
        cached = _cached.pop((self.run, group), None)
        if cached is not None and cached.token == token_of(head[0]):
            return cached
        return read(bytes(head[0]), self._part, self.query)

    def _part(self, path: str) -> bytes:
        found = self.parts.getValue((path,))
        if found is None:
            raise SnapshotError(f"the state has lost {path}; start from an older checkpoint")
        return bytes(found[0])

    def _save(self, stored: Stored) -> None:
        written = write(stored)
        for path, body in written.changed.items():
            self.parts.updateValue((path,), (body,))
        for path in written.gone:
            self.parts.removeKey((path,))
        self.head.update((written.head,))
