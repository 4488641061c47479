"""Restoring refuses whatever is not a whole snapshot of the query, and says why."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import QueryError, SnapshotError
from muntin.slicing.snapshots import archive
from muntin.timeline import INF
from muntin.windows.base import Window

Change = Callable[[dict[str, Any], dict[str, Any]], object]


def query(windows: dict[str, Window], **on: Any) -> Any:
    return mt.windows(**windows).aggregate(n=a.count(), top=a.arg_max("v", by="v")).by("k").on("t", **on)


@pytest.fixture(scope="module")
def saved() -> bytes:
    op = query({"x": w.tumbling(10), "c": w.count(3)}).operator()
    op.process({"t": range(120), "k": ["abc"[i % 3] for i in range(120)], "v": range(120)})
    op.advance(90)
    return op.snapshot()


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_of_any_kind_is_noticed(saved: bytes, data: st.DataObject) -> None:
    """Bytes that change, get lost, come twice or come from elsewhere."""
    places = st.integers(0, len(saved) - 1)
    broken = bytearray(saved)
    for _ in range(data.draw(st.integers(1, 3))):
        kind, at, upto = data.draw(st.sampled_from(["flip", "cut", "put", "swap"])), data.draw(places), 0
        if kind == "flip":
            broken[min(at, len(broken) - 1)] ^= data.draw(st.integers(1, 255))
        elif kind == "cut":
            upto = data.draw(st.integers(1, 64))
            del broken[at : at + upto]
        elif kind == "put":
            broken[at:at] = data.draw(st.binary(min_size=1, max_size=16))
        else:
            upto = data.draw(places)
            broken[at : at + 8], broken[upto : upto + 8] = broken[upto : upto + 8], broken[at : at + 8]
    assume(bytes(broken) != saved)
    with pytest.raises(SnapshotError, match=r"damaged|not a Muntin snapshot|format version"):
        Operator.restore(bytes(broken))


def test_a_flipped_bit_is_noticed_wherever_it_is(saved: bytes) -> None:
    for at in [*range(16), *range(16, len(saved), 101), len(saved) - 33, len(saved) - 1]:
        broken = bytearray(saved)
        broken[at] ^= 0x10
        with pytest.raises(SnapshotError, match=r"damaged|not a Muntin snapshot|format version"):
            Operator.restore(bytes(broken))


def test_a_truncated_or_longer_snapshot_is_refused(saved: bytes) -> None:
    for size in [0, 3, 6, 8, 15, 16, 40, 48, len(saved) // 2, len(saved) - 32, len(saved) - 1]:
        with pytest.raises(SnapshotError, match=r"damaged|not a Muntin snapshot|format version"):
            Operator.restore(saved[:size])
    with pytest.raises(SnapshotError, match="damaged"):
        Operator.restore(saved + b"\0")


@pytest.mark.parametrize(
    "data", [b"", b"PAR1" + bytes(100), b"ARROW1\0\0" + bytes(100), pickle.dumps([1]), b"{}"], ids=repr
)
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError, match="not a Muntin snapshot"):
        Operator.restore(data)


def test_something_else_than_bytes_is_refused() -> None:
    for data in ("text", None, 7, [1]):
        with pytest.raises(SnapshotError, match="a snapshot is bytes: got"):
            Operator.restore(data)  # type: ignore[arg-type]


def test_any_buffer_of_bytes_will_do(saved: bytes) -> None:
    for data in (bytearray(saved), memoryview(saved)):
        assert Operator.restore(data).snapshot() == saved  # type: ignore[arg-type]


def test_another_version_is_refused_by_number(saved: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive.VERSION == 9
    for other in (8, 10):
        monkeypatch.setattr(archive, "VERSION", other)
        written = query({"x": w.tumbling(10)}).operator().snapshot()
        with pytest.raises(SnapshotError, match=f"format version 9, this version of Muntin reads {other}"):
            Operator.restore(saved)
        monkeypatch.undo()
        with pytest.raises(SnapshotError, match=f"format version {other}, this version of Muntin reads 9"):
            Operator.restore(written)


@pytest.mark.parametrize(
    "other",
    [
        query({"x": w.tumbling(20), "c": w.count(3)}),
        query({"y": w.tumbling(10), "c": w.count(3)}),
        query({"x": w.tumbling(10)}),
        query({"x": w.tumbling(10), "c": w.count(3)}, allowed_lateness=5),
        query({"x": w.tumbling(10), "c": w.count(3)}).by("other"),
        mt.windows(x=w.tumbling(10), c=w.count(3)).aggregate(n=a.count()).by("k").on("t"),
    ],
    ids=["length", "name", "fewer", "lateness", "key", "aggregates"],
)
def test_another_query_is_refused(saved: bytes, other: Any) -> None:
    with pytest.raises(SnapshotError, match="of another query: it serves x: tumbling 10, c: count 3"):
        Operator.restore(saved, other)


@pytest.mark.parametrize("wrong", [5, "query.toml", {}])
def test_what_is_no_query_is_refused(saved: bytes, wrong: Any) -> None:
    with pytest.raises(QueryError, match=r"query must be the query that the snapshot is of.*: got .*; pass"):
        Operator.restore(saved, wrong)


def test_the_same_query_is_welcome(saved: bytes) -> None:
    shape = query({"x": w.tumbling(10), "c": w.count(3)})
    assert Operator.restore(saved, shape).snapshot() == saved


def test_a_damaged_query_text_is_a_snapshot_error_or_a_query_error() -> None:
    header, tables = archive.unpack(query({"x": w.tumbling(10)}).operator().snapshot())
    data = archive.pack(header | {"query": "no toml ["}, tables)
    with pytest.raises((SnapshotError, QueryError)):
        Operator.restore(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, tables: header.pop("windows"),
        lambda header, tables: header.pop("watermark"),
        lambda header, tables: header.update(metrics={"tuples": 1, "unheard": 2}),
        lambda header, tables: header.update(bound=[]) or tables.pop("declared"),
        lambda header, tables: tables.pop("slices"),
        lambda header, tables: tables.update(slices=tables["slices"].drop_columns(["first"])),
        lambda header, tables: tables.update(positions=tables["positions"].drop_columns(["base"])),
    ],
)
def test_a_snapshot_that_lacks_a_part_is_refused(saved: bytes, change: Change) -> None:
    """Whole as bytes, but not what this version writes."""
    header, tables = archive.unpack(saved)
    change(header, tables)
    with pytest.raises(SnapshotError, match="does not hold what a snapshot of this version does"):
        Operator.restore(archive.pack(header, tables))


def compressed(table: pa.Table) -> bytes:
    """The table as a stream that takes few bytes and asks for many."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (compressed(pa.table({"x": np.zeros(1_000_000, dtype=np.int64)})), "must not be compressed"),
        (compressed(pa.table({"x": pa.array(["a"] * 1_000).dictionary_encode()})), "must not be compressed"),
    ],
    ids=["rows", "dictionary"],
)
def test_few_bytes_that_ask_for_much_memory_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(SnapshotError, match=message):
        archive.read_table(memoryview(body))


@pytest.mark.parametrize("value", [10**12, -1, 10**30, 1.5, None, "many", [[]]])
@pytest.mark.parametrize("name", ["keys", "arrivals", "newest"])
def test_numbers_that_cannot_be_are_refused(saved: bytes, name: str, value: Any) -> None:
    header, tables = archive.unpack(saved)
    if (name, value) in (("arrivals", 10**12), ("newest", 10**12), ("newest", -1)):  # which can be
        return
    with pytest.raises(SnapshotError, match="does not hold what a snapshot of this version does"):
        Operator.restore(archive.pack(header | {name: value}, tables))


@pytest.mark.parametrize(
    ("name", "value"), [("watermark", 2**40), ("watermark", INF), ("sliced_until", 50), ("newest", INF)]
)
def test_moments_that_contradict_the_state_are_refused(saved: bytes, name: str, value: int) -> None:
    """A watermark that nothing was sliced for would emit the windows that time alone closes until then."""
    header, tables = archive.unpack(saved)
    with pytest.raises(SnapshotError, match="does not hold what a snapshot of this version does"):
        Operator.restore(archive.pack(header | {name: value}, tables))


def test_tuples_that_wait_before_the_watermark_are_refused() -> None:
    op = query({"x": w.last(4, every=10)}).operator()
    op.process({"t": [1, 12], "k": ["a", "a"], "v": [1, 2]})
    op.advance(20)
    op.process({"t": [25], "k": ["a"], "v": [3]})
    header, tables = archive.unpack(op.snapshot())
    later = {"watermark": 2**40, "sliced_until": 2**40}
    with pytest.raises(SnapshotError, match=f"must not lie before {2**40}"):
        Operator.restore(archive.pack(header | later, tables))


def test_sketches_that_cannot_be_merged_are_an_error_of_the_snapshot() -> None:
    shape = mt.windows(x=w.sliding(20, every=10)).aggregate(p=a.approx_quantile("v", 0.5)).on("t")
    op = shape.operator()
    op.process({"t": [1, 2, 11], "v": [1.0, 2.0, 3.0]})
    header, tables = archive.unpack(op.snapshot())
    place = tables["slices"].column_names.index("0/sketch")
    first, *others = tables["slices"].column(place).to_pylist()
    weight = slice(8, 16)  # the number of values that the sketch says that it has
    assert int.from_bytes(first[weight], "little") == 2
    forged = pa.array([first[:8] + (8).to_bytes(8, "little") + first[16:], *others], pa.large_binary())
    tables["slices"] = tables["slices"].set_column(place, "0/sketch", forged)
    restored = Operator.restore(archive.pack(header, tables))
    with pytest.raises(SnapshotError, match="sketches of the snapshot cannot be merged"):
        restored.finish()


def test_a_header_that_is_nested_too_deeply_is_refused(saved: bytes) -> None:
    deep = b'{"parts":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    start = saved[:8] + len(deep).to_bytes(8, "big") + deep
    with pytest.raises(SnapshotError, match="RecursionError"):
        Operator.restore(start + archive._checksum([start]))
