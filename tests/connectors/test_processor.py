"""The stateful call of a key group, with a state store in memory that counts its calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark import processor
from muntin.connectors.spark.packed_rows import CHANGE, CLOCK, GROUP, NEVER, NEWEST, PAYLOAD
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.processor import HEAD, WindowProcessor
from muntin.connectors.spark.result_rows import outcome_schema
from muntin.connectors.spark.step import Job
from muntin.errors import SnapshotError
from muntin.slicing.binding import ARRIVAL, Binding

SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64()), (ARRIVAL, pa.int64())])


@dataclass
class Times:
    """The times that Spark gives to a step."""

    watermark: int

    def getCurrentProcessingTimeInMs(self) -> int:
        return 0

    def getCurrentWatermarkInMs(self) -> int:
        return self.watermark


@dataclass
class Store:
    """The state of one key group: a map and a timer. Each call is a round trip in Spark."""

    parts: dict[tuple[str], tuple[bytes]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def getMapState(self, name: str, keys: Any, values: Any) -> Store:
        assert not isinstance(keys, str)  # the JVM would parse it in each task
        assert not isinstance(values, str)
        return self

    def registerTimer(self, at: int) -> None:
        self.calls.append("timer")

    def exists(self) -> bool:
        self.calls.append("exists")
        return bool(self.parts)

    def iterator(self) -> Iterator[tuple[tuple[str], tuple[bytes]]]:
        self.calls.append("iterator")
        return iter(list(self.parts.items()))

    def keys(self) -> Iterator[tuple[str]]:
        self.calls.append("keys")
        return iter(list(self.parts))

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        self.calls.append("getValue")
        return self.parts.get(key)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        self.calls.append("updateValue")
        self.parts[key] = value

    def removeKey(self, key: tuple[str]) -> None:
        self.calls.append("removeKey")
        del self.parts[key]


class Stream:
    """Micro-batches of one key group with `sliding(60, every=1)` windows over four keys."""

    def __init__(self) -> None:
        self.query = mt.windows(q=w.sliding(60_000, every=1_000)).aggregate(total=a.sum("v")).by("k").on("t")
        own = tuple(window for _, window in self.query.windows)
        results = Binding.of(self.query, dict(self.query.windows), SCHEMA).result_schema(own)
        self.job = Job(self.query, SCHEMA, outcome_schema(self.query, results, SCHEMA))
        self.packer = PartitionPacker(self.query, (0,), SCHEMA)
        self.store = Store()
        self.batch = 0

    def step(self, run: str = "run") -> list[str]:
        """Five seconds of tuples; the calls that this took."""
        begin, self.batch = self.batch * 5_000, self.batch + 1
        times = np.arange(begin, begin + 5_000, 100)
        table = pa.table(
            {
                "k": pa.array([f"key {i % 4}" for i in range(len(times))]),
                "t": pa.array(times),
                "v": pa.array(times % 7),
                GROUP: pa.array(np.zeros(len(times)), pa.int32()),
                ARRIVAL: pa.array(range(len(times))),
            }
        )
        newest, payloads = self.packer.pack(table.to_batches())
        frame = pd.DataFrame(
            {
                NEWEST: newest,
                PAYLOAD: [payload for _, payload in payloads],
                CHANGE: None,
                CLOCK: NEVER,
            }
        )
        self.store.calls.clear()
        task = WindowProcessor(self.job, run, plain=True)
        task.init(self.store)  # type: ignore[arg-type]
        for part in task.handleInputRows((0,), iter([frame]), Times(begin // 1_000)):
            assert len(part)
        return list(self.store.calls)


def test_a_warm_step_reads_the_head_alone() -> None:
    stream = Stream()
    for _ in range(20):
        stream.step("warm")
    for _ in range(10):
        calls = stream.step("warm")
        assert calls[0] == "getValue"
        assert calls[-1] == "timer"
        assert set(calls[1:-1]) <= {"updateValue", "removeKey"}
        assert len(calls) <= 6


def test_another_worker_reads_all_parts_in_one_call() -> None:
    stream = Stream()
    for _ in range(20):
        stream.step("cold")
    processor._cached.clear()
    assert len(stream.store.parts) > 5
    calls = stream.step("cold")
    assert calls[:2] == ["getValue", "iterator"]
    assert calls.count("getValue") == 1


def test_a_large_state_is_read_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "AT_ONCE", 100)
    stream = Stream()
    for _ in range(20):
        stream.step("large")
    processor._cached.clear()
    number = len(stream.store.parts)
    calls = stream.step("large")
    assert calls[:2] == ["getValue", "keys"]
    assert calls.count("getValue") == number
    assert "iterator" not in calls


def test_a_state_without_a_head_is_refused() -> None:
    stream = Stream()
    stream.step("old")
    del stream.store.parts[HEAD,]
    with pytest.raises(SnapshotError, match="format version 7 or older, this version of Muntin reads 9"):
        stream.step("old")
