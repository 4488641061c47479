"""What a partition sends: all of its tuples, cut by the windows that are served."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark import partition_packer, workers
from muntin.connectors.spark.group_state import Stored
from muntin.connectors.spark.packed_rows import GROUP
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.connectors.spark.result_rows import outcome_schema
from muntin.connectors.spark.step import Given, Job, step
from muntin.errors import DataError
from muntin.slicing.binding import ARRIVAL, Binding
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshots.archive import unpack


def test_a_change_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    """Partitions would cut tuples by other edges than those of the windows that are served."""
    asked = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).on("t")
    schema = pa.schema([("t", pa.int64()), ("v", pa.int64()), (ARRIVAL, pa.int64())])
    control = asked.control(str(tmp_path))
    control.add(five=w.tumbling(5))
    (file,) = tmp_path.glob("*.toml")
    results = Binding.of(asked, {"ten": w.tumbling(10)}, schema).result_schema(())
    job = Job(asked, schema, outcome_schema(asked, results, schema))
    stored = Stored(SlicingOperator(asked), asked)

    def taken(*rows: tuple[int, int], **given: Any) -> list[dict[str, Any]]:
        batch = pa.RecordBatch.from_pylist(
            [{"t": t, "v": v, GROUP: 0, ARRIVAL: i} for i, (t, v) in enumerate(rows)]
        )
        newest, payloads = PartitionPacker(asked, (0,), schema, str(tmp_path)).pack([batch])
        found = tuple(payload for _, payload in payloads if payload)
        return [
            row for table in step(stored, job, Given(found, newest, **given)) for row in table.to_pylist()
        ]

    change = f"{file.name}\n{file.read_text()}"
    assert taken((1, 1), (6, 2), changes=(change,)) == []
    rows = taken((11, 1), (13, 2), (16, 4), watermark=20)
    assert {(r["window_name"], r["window"]["start"]): r["total"] for r in rows} == {
        ("ten", 0): 3, ("five", 0): 1, ("five", 5): 2, ("ten", 10): 7, ("five", 10): 3, ("five", 15): 4,
    }  # fmt: skip
    file.unlink()
    with pytest.raises(DataError, match=f"must stay where they are: {file.name} is gone"):
        taken((21, 1))


def test_no_tuple_is_lost_where_they_are_more_than_one_column_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_packer, "BYTES_AT_ONCE", 4_000)
    asked = mt.windows(two=w.count(2)).aggregate(texts=a.collect("s")).by("s").on("t")
    schema = pa.schema([("t", pa.int64()), ("s", pa.string()), (ARRIVAL, pa.int64())])
    texts = [f"{i:0500}" for i in range(50)]
    batches = [
        pa.RecordBatch.from_pylist([{"t": i, "s": text, GROUP: i % 3, ARRIVAL: i}])
        for i, text in enumerate(texts)
    ]
    sent = list(PartitionPacker(asked, (0, 1, 2), schema)(iter(batches)))
    assert len(sent) > 5
    found = []
    for batch in sent:
        for payload in batch.column("payload").drop_null().to_pylist():
            found += unpack(payload, checked=False)[1]["tuples"].column("s").to_pylist()
    assert sorted(found) == texts
    assert {group for batch in sent for group in batch.column(GROUP).to_pylist()} == {0, 1, 2}


def unpickled(job: bytes) -> PartitionPacker:
    found: PartitionPacker = pickle.loads(job)  # noqa: S301  # it was pickled here
    return found


def test_a_worker_binds_the_query_once_for_all_tasks_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_values", OrderedDict())
    asked = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v", filter="v > 0")).on("t")
    schema = pa.schema([("t", pa.int64()), ("v", pa.int64()), (ARRIVAL, pa.int64())])
    job = cloudpickle.dumps(PartitionPacker(asked, (0,), schema))
    first = unpickled(job)
    batch = pa.RecordBatch.from_pylist([{"t": 1, "v": 2, GROUP: 0, ARRIVAL: 0}])
    sent = first.pack([batch])
    monkeypatch.setattr(Binding, "of", None)
    assert unpickled(job) is first
    assert first.pack([batch]) == sent
    assert list(workers._values.values()) == [first]


def test_a_worker_forgets_the_jobs_that_it_has_not_run_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_values", OrderedDict())
    monkeypatch.setattr(workers, "_MOST_VALUES", 2)
    asked = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    jobs = [cloudpickle.dumps(PartitionPacker(asked, (group,), pa.schema([]))) for group in range(3)]
    found = [unpickled(job) for job in jobs]
    assert [packer.groups for packer in workers._values.values()] == [(1,), (2,)]
    assert unpickled(jobs[1]) is found[1]
    assert unpickled(jobs[0]) == found[0]
    assert [packer.groups for packer in workers._values.values()] == [(1,), (0,)]
