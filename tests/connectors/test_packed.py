"""Packed micro-batches without Spark: partitions, key groups and the split state, against the oracle."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from muntin.connectors.spark.packing import GROUP, Packing
from muntin.connectors.spark.payload import pack_results, take_in, unpack_results
from muntin.connectors.spark.state import Stored, read, write
from muntin.connectors.spark.tuples import can_slice
from muntin.query import EachBatch
from muntin.slicing.operator import ARRIVAL, SlicingOperator
from muntin.testing import Transcript, load_transcripts, replay
from muntin.testing.engines import Record, rows_of_table
from muntin.testing.rows import Row
from muntin.testing.scenarios import Scenario, check
from muntin.testing.strategies import scenarios

FOLDER = Path(__file__).parents[1] / "transcripts"
sys.path.insert(0, str(FOLDER))
from named import NAMED  # noqa: E402  # beside the transcripts, not installed

GROUPS, PARTITIONS = 3, 2


class PackedEngine:
    """Drives the parts of the Spark connector as Spark would: two partitions, three key groups."""

    def __init__(self, query: Any, schema: pa.Schema) -> None:
        self.query = query
        self.schema = schema.append(pa.field(ARRIVAL, pa.int64()))
        self.packing = Packing(query, tuple(range(GROUPS)), can_slice(query))
        self.stores: dict[int, tuple[bytes, dict[str, bytes]]] = {}
        self.waiting: dict[int, list[bytes]] = {group: [] for group in range(GROUPS)}
        self.newest: int | None = None
        self.arrived = 0

    def process(self, rows: Sequence[Record]) -> list[Row]:
        plain = self.schema.remove(len(self.schema) - 1)
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=plain)
        arrival = np.arange(self.arrived, self.arrived + len(table))
        self.arrived += len(table)
        table = table.append_column(GROUP, pa.array([self._group(row) for row in rows], pa.int32()))
        table = table.append_column(ARRIVAL, pa.array(arrival, pa.int64()))
        for partition in range(PARTITIONS):
            mine = table.filter(pa.array(arrival % PARTITIONS == partition))
            newest, payloads = self.packing.packed(mine.to_batches())
            if newest is not None:
                self.newest = newest if self.newest is None else max(newest, self.newest)
            for group, payload in payloads:
                assert payload is not None
                self.waiting[group].append(payload)
        if isinstance(self.query.early, EachBatch):
            return self._step(None)
        return []

    def _group(self, row: Record) -> int:
        return hash(str([row[key] for key in self.query.keys])) % GROUPS if self.query.keys else 0

    def advance(self, watermark: int) -> list[Row]:
        return self._step(lambda operator: operator.advance(watermark))

    def finish(self) -> list[Row]:
        return self._step(lambda operator: operator.finish())

    def _step(self, then: Any) -> list[Row]:
        found = []
        for group, payloads in self.waiting.items():
            stored = self._load(group)
            results = [take_in(stored.operator, self.schema, payloads, self.newest)]
            if then is not None:
                results.append(then(stored.operator))
            self._save(group, stored)
            for table in results:
                if table.num_rows:
                    batches = unpack_results(pack_results(table))
                    found += rows_of_table(pa.Table.from_batches(batches), self.query.keys)
        self.waiting = {group: [] for group in range(GROUPS)}
        return found

    def _load(self, group: int) -> Stored:
        if group not in self.stores:
            return Stored(SlicingOperator(self.query))
        head, parts = self.stores[group]
        return read(head, parts.__getitem__, self.query)

    def _save(self, group: int, stored: Stored) -> None:
        written = write(stored)
        _, parts = self.stores.get(group, (b"", {}))
        kept = {path: body for path, body in parts.items() if path not in written.gone}
        self.stores[group] = written.head, kept | written.changed

    def take_late(self) -> list[tuple[str, Record]]:
        found = []
        for group in self.stores:
            stored = self._load(group)
            late = stored.operator.take_late()
            self._save(group, stored)
            if late.num_rows:
                found += [(row.pop("query"), row) for row in late.drop_columns([ARRIVAL]).to_pylist()]
        return found


TRANSCRIPTS = [
    transcript
    for transcript in load_transcripts(FOLDER, NAMED)
    if not any(step.action in ("add", "remove") or step.error for step in transcript.steps)
]


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=str)
def test_transcripts(transcript: Transcript) -> None:
    replay(transcript, PackedEngine)


@given(scenarios())
@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_everything_against_the_oracle(scenario: Scenario) -> None:
    check(scenario, PackedEngine)


@given(scenarios(("time", "session")))
@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_windows_that_need_no_tuples_against_the_oracle(scenario: Scenario) -> None:
    check(scenario, PackedEngine)


@given(scenarios(early=True))
@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_early_results_against_the_oracle(scenario: Scenario) -> None:
    check(scenario, PackedEngine)
