"""Packed micro-batches without Spark: partitions, key groups and the split state, against the oracle."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark.group_state import Stored, read, write
from muntin.connectors.spark.packed_rows import GROUP, pack_results, unpack_results
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.query_changes import Controlled, read_changes
from muntin.connectors.spark.result_rows import outcome_schema
from muntin.connectors.spark.step import Given, Job, step
from muntin.errors import QueryError
from muntin.query import EachBatch
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.operator import SlicingOperator
from muntin.testing import Transcript, load_transcripts, replay
from muntin.testing.engines import Record, rows_of_table
from muntin.testing.rows import Row
from muntin.testing.scenarios import Action, Scenario, check
from muntin.testing.strategies import scenarios
from muntin.timeline import INF
from muntin.windows.tuple_driven import TupleDriven

FOLDER = Path(__file__).parents[1] / "transcripts"
sys.path.insert(0, str(FOLDER))
from named import NAMED  # noqa: E402  # beside the transcripts, not installed

GROUPS, PARTITIONS = 3, 2


class PackedEngine:
    """Drives the parts of the Spark connector as Spark would: two partitions, three key groups."""

    def __init__(self, query: Any, schema: pa.Schema) -> None:
        self.query = query
        self.schema = schema.append(pa.field(ARRIVAL, pa.int64()))
        own = tuple(window for _, window in query.windows)
        binding = Binding.of(query, dict(query.windows), schema)
        # Windows that come later may have ranks or numbers beside their edges.
        results = binding.result_schema((*own, w.count(1), w.slide_by_tuple(1, every=1)))
        self.job = Job(query, self.schema, outcome_schema(query, results, self.schema))
        self.control: Controlled | None = None
        self.stores: dict[int, tuple[bytes, dict[str, bytes]]] = {}
        self.waiting: dict[int, list[bytes]] = {group: [] for group in range(GROUPS)}
        self.newest: int | None = None
        self.arrived = 0
        self.late: list[tuple[str, Record]] = []

    def process(self, rows: Sequence[Record]) -> list[Row]:
        plain = self.schema.remove(len(self.schema) - 1)
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=plain)
        arrival = np.arange(self.arrived, self.arrived + len(table))
        self.arrived += len(table)
        table = table.append_column(GROUP, pa.array([self._group(row) for row in rows], pa.int32()))
        table = table.append_column(ARRIVAL, pa.array(arrival, pa.int64()))
        packer = PartitionPacker(
            self.query, tuple(range(GROUPS)), self.schema, None if self.control is None else self.control.path
        )
        for partition in range(PARTITIONS):
            mine = table.filter(pa.array(arrival % PARTITIONS == partition))
            newest, payloads = packer.pack(mine.to_batches())
            if newest is not None:
                self.newest = newest if self.newest is None else max(newest, self.newest)
            for group, payload in payloads:
                assert payload is not None
                self.waiting[group].append(payload)
        if isinstance(self.query.early, EachBatch):
            return self._step()
        return []

    def _group(self, row: Record) -> int:
        if not self.query.keys:
            return 0
        return crc32(repr([row[key] for key in self.query.keys]).encode()) % GROUPS

    def advance(self, watermark: int) -> list[Row]:
        return self._step(watermark)

    def finish(self) -> list[Row]:
        return self._step(INF)

    def add(self, name: str, window: Any, since: int | None) -> int:
        self._step()
        self._controlled().add(**{name: window})
        self._step(changes=self._newest_change())
        (starts,) = {self._live(group)[name].since for group in self.stores}
        return starts

    def remove(self, name: str) -> None:
        self._step()
        self._controlled().remove(name)
        self._step(changes=self._newest_change())

    def _controlled(self) -> Controlled:
        if self.control is None:
            folder = mkdtemp()
            finalize(self, rmtree, folder)
            self.control = Controlled(self.query, folder)
        return self.control

    def _newest_change(self) -> tuple[str, ...]:
        name, text = read_changes(self._controlled().path)[-1]
        return (f"{name}\n{text}",)

    def _live(self, group: int) -> dict[str, Any]:
        return {query.name: query for query in self._load(group).operator.served.all}

    def _step(self, watermark: int | None = None, changes: tuple[str, ...] = ()) -> list[Row]:
        found = []
        for group, payloads in self.waiting.items():
            stored = self._load(group)
            driven = any(isinstance(q.window, TupleDriven) for q in stored.operator.served.all)
            if watermark is not None and watermark != INF and driven:
                # These tuples come in the order of arrival: none goes before one of its time.
                at: int | None = watermark + 1
            else:
                at = watermark
            tables = step(stored, self.job, Given(tuple(payloads), self.newest, changes, None, at))
            assert stored.refused == 0
            self._save(group, stored)
            for table in tables:
                found += self._rows(pa.Table.from_batches(unpack_results(pack_results(table))))
        self.waiting, self.newest = {group: [] for group in range(GROUPS)}, None
        return found

    def _rows(self, table: pa.Table) -> list[Row]:
        routed = pc.equal(table.column("kind"), "late")
        if self.query.late == "route":
            late = table.filter(routed).select(["window_name", "late"]).to_pylist()
            self.late += [(row["window_name"], row["late"]) for row in late]
            table = table.filter(pc.invert(routed)).drop_columns(["late"])
        return rows_of_table(table, self.query.keys)

    def _load(self, group: int) -> Stored:
        if group not in self.stores:
            return Stored(SlicingOperator(self.query), self.query)
        head, parts = self.stores[group]
        return read(head, parts, self.query)

    def _save(self, group: int, stored: Stored) -> None:
        written = write(stored)
        _, parts = self.stores.get(group, (b"", {}))
        kept = {path: body for path, body in parts.items() if path not in written.gone}
        self.stores[group] = written.head, kept | written.changed

    def take_late(self) -> list[tuple[str, Record]]:
        self._step()
        late, self.late = self.late, []
        return late


EMBEDDED_ONLY = ("added_where_tuples_are_stored",)
"""On Spark an added window starts behind the newest tuple of all keys, wherever tuples are stored."""
TRANSCRIPTS = [
    transcript
    for transcript in load_transcripts(FOLDER, NAMED)
    if transcript.name not in EMBEDDED_ONLY and not any(step.error for step in transcript.steps)
]


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=str)
def test_transcripts(transcript: Transcript) -> None:
    replay(transcript, PackedEngine)


def of_micro_batches(scenario: Scenario) -> Scenario:
    """Without batches of no tuples: early results come with the micro-batches that have some."""
    return replace(scenario, actions=tuple(a for a in scenario.actions if a.name != "process" or a.value))


def test_early_results_come_with_tuples_not_with_every_micro_batch() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t", early=mt.each_batch())
    engine = PackedEngine(query, pa.schema([("t", pa.int64()), ("id", pa.int64())]))
    engine.advance(2)
    assert engine.process([{"t": 1, "id": 0}]) == []  # it waits for the watermark
    assert engine.advance(3) == []
    assert engine.process([]) == []
    shown = engine.process([{"t": 5, "id": 1}])
    assert [(row.start, row.aggregates["n"], row.kind) for row in shown] == [(0, 2, "early")]


@given(scenarios())
@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_everything_against_the_oracle(scenario: Scenario) -> None:
    check(of_micro_batches(scenario), PackedEngine)


@given(scenarios(("time", "session")))
@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_windows_that_need_no_tuples_against_the_oracle(scenario: Scenario) -> None:
    check(of_micro_batches(scenario), PackedEngine)


@given(scenarios(early=True))
@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_early_results_against_the_oracle(scenario: Scenario) -> None:
    check(of_micro_batches(scenario), PackedEngine)


@given(
    scenarios(
        ("time", "session"), changes=True, aggregates=("n_b", "users", "most", "some", "min_n"), live=True
    )
)
@settings(
    max_examples=settings.default.max_examples // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_changes_and_aggregates_over_windows_that_come_and_go(scenario: Scenario) -> None:
    check(of_micro_batches(scenario), PackedEngine)


def test_aggregates_go_and_come_back() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count(), total=a.sum("v")).on("t")
    engine = PackedEngine(query, pa.schema([("t", pa.int64()), ("v", pa.int64())]))
    engine.process([{"t": 1, "v": 1}])
    engine.remove("total")
    engine.process([{"t": 2, "v": 2}, {"t": 11, "v": 4}])
    shown = engine.advance(10)
    assert [tuple(row.aggregates.values()) for row in shown] == [(2, None)]
    plans = [engine._load(group).operator.plan for group in engine.stores]
    assert [len(plan.partials.partials) for plan in plans if plan is not None] == [1] * len(plans)
    engine._controlled().add(total=a.sum("v"))
    engine._step(changes=engine._newest_change())
    engine.process([{"t": 12, "v": 8}, {"t": 21, "v": 16}])
    assert [tuple(row.aggregates.values()) for row in engine.finish()] == [(2, None), (1, 16)]
    engine._controlled().remove("total")
    with pytest.raises(QueryError, match=r"fixed columns.*got total=max"):
        engine._controlled().add(total=a.max("v"))
    with pytest.raises(QueryError, match=r"fixed columns.*got top=max.*the query has n, total"):
        engine._controlled().add(top=a.max("v"))


def test_a_waiting_tuple_is_shown_with_the_next_batch_whichever_group_it_reaches() -> None:
    query = (
        mt.windows(visit=w.session(7))
        .aggregate(n=a.count())
        .by("k")
        .on("t", early=mt.each_batch(), late="route")
    )
    schema = pa.schema([("k", pa.string()), ("t", pa.int64()), ("id", pa.int64())])
    rows = [{"k": "x", "t": -1, "id": 0}, {"k": "y", "t": 1, "id": 1}, {"k": "y", "t": 1, "id": 2}]
    engine = PackedEngine(query, schema)
    assert len({engine._group(row) for row in rows}) == 2
    batches = (Action("process", rows[:2]), Action("advance", 1), Action("process", rows[2:]))
    shown = check(Scenario(query, schema, (Action("advance", 0), *batches, Action("finish"))), PackedEngine)
    # x lies before the watermark, so it waits for the next one; then it is part of an open session.
    assert [row.keys for row in shown if row.kind == "early" and row.revision == 0] == [("y",), ("x",)]


@pytest.mark.parametrize("windows", [{"visit": w.session(7)}, {"visit": w.session(7), "nine": w.count(9)}])
@pytest.mark.parametrize("key", ["x", "y"])
def test_a_waiting_tuple_is_shown_with_a_batch_of_bad_tuples(windows: dict[str, Any], key: str) -> None:
    """Whichever groups they reach: slices have bad tuples sorted out before, where windows are on time."""
    query = (
        mt.windows(**windows)
        .aggregate(n=a.count())
        .by("k")
        .on("t", early=mt.each_batch(), late="route", bad="skip")
    )
    schema = pa.schema([("k", pa.string()), ("t", pa.int64()), ("id", pa.int64())])
    rows = [{"k": "x", "t": -1, "id": 0}, {"k": "y", "t": -1, "id": 1}]
    assert len({PackedEngine(query, schema)._group(row) for row in rows}) == 2
    bad = [{"k": key, "t": None, "id": 2}]
    batches = (Action("process", rows), Action("advance", 1), Action("process", bad))
    shown = check(Scenario(query, schema, (Action("advance", 0), *batches, Action("finish"))), PackedEngine)
    assert sorted(row.keys for row in shown if row.kind == "early") == [("x",), ("y",)]
