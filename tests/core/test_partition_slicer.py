"""Partitions slice apart, and one operator combines their slices to the results of one stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.partition_slicer import PartitionSlicer, partition_plan
from muntin.timeline import NEG_INF

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
WINDOWS = {
    "tumbling": {"ten": w.tumbling(10)},
    "overlapping": {"ten": w.tumbling(10), "wide": w.sliding(25, every=5)},
    "sessions": {"three": w.session(3), "seven": w.session(7), "ten": w.tumbling(10)},
}


def tuples(seed: int, size: int = 300) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    keys = pa.array(random.choice(["a", "b", "c", None], size))
    return pa.record_batch([pa.array(random.integers(0, 500, size)), keys, pa.array(np.arange(size))], SCHEMA)


def query(windows: dict[str, Any], *keys: str, **policies: Any) -> mt.Query:
    return mt.windows(**windows).aggregate(n=a.count(), total=a.sum("v")).by(*keys).on("t", **policies)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("keys", [(), ("k",)], ids=["no key", "keys"])
@pytest.mark.parametrize("windows", WINDOWS.values(), ids=WINDOWS)
def test_slices_of_partitions_give_the_results_of_one_stream(
    windows: dict[str, Any], keys: tuple[str, ...]
) -> None:
    asked = query(windows, *keys)
    shared = partition_plan(asked, SCHEMA)
    operator = SlicingOperator(asked)
    operator.bind(SCHEMA)
    for seeds in ((1, 2), (3,), ()):
        slicer = PartitionSlicer(shared)
        for seed in seeds:
            ids, good = slicer.add(tuples(seed))
            assert len(ids) == len(good) == 300
        keys = slicer.state.keys
        operator.take_slices(keys.values(np.arange(len(keys))), slicer.state.slices)
    whole = pa.Table.from_batches([tuples(seed) for seed in (1, 2, 3)])
    assert sorted_rows(operator.finish()) == sorted_rows(asked.run(whole))


def test_bad_tuples_are_set_aside_and_do_not_count_as_the_newest() -> None:
    batch = pa.record_batch([pa.array([3, None, 7]), pa.array(["a", "b", "a"]), pa.array([1, 2, 3])], SCHEMA)
    shared = partition_plan(query(WINDOWS["tumbling"], "k", bad="route"), SCHEMA)
    slicer = PartitionSlicer(shared)
    ids, good = slicer.add(batch)
    assert (ids.tolist(), good.column("v").to_pylist()) == ([0, 0], [1, 3])
    assert (slicer.state.newest, slicer.state.metrics.bad, len(slicer.state.keys)) == (7, 1, 1)
    assert slicer.bad_tuples.column("v").to_pylist() == [2]
    slicer.add(batch.slice(1, 1))
    assert (slicer.state.newest, slicer.state.metrics.bad, len(slicer.state.slices)) == (7, 2, 1)
    failing = PartitionSlicer(partition_plan(query(WINDOWS["tumbling"], "k"), SCHEMA))
    with pytest.raises(DataError, match="needs a value in every tuple"):
        failing.add(batch)
    assert (failing.state.newest, len(failing.state.keys)) == (NEG_INF, 0)


def test_the_newest_time_is_noted_without_slicing() -> None:
    slicer = PartitionSlicer(partition_plan(query({"two": w.count(2)}, "k"), SCHEMA))
    slicer.notice(tuples(1))
    assert slicer.state.newest == max(tuples(1).column("t").to_pylist())
    assert not len(slicer.state.slices)
