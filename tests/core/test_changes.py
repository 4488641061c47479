"""`emit=mt.on_change()`: what it stores and compares; the property tests compare it with the oracle."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError
from muntin.query_file import loads
from muntin.slicing.emission.value_differences import differences

NAN = float("nan")
STAMPS = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC)]
RECORDS = [{"x": 1, "y": ["a"]}, {"x": 1, "y": []}, {"x": None, "y": None}]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [1.0, NAN, 0.0]),
        (pa.string(), ["a", "b", ""]),
        (pa.binary(), [b"a", b"b", b""]),
        (pa.bool_(), [True, False]),
        (pa.decimal128(5, 2), [Decimal("1.10"), Decimal("-1.10")]),
        (
            pa.timestamp("us", "UTC"),
            STAMPS,
        ),
        (pa.list_(pa.float64()), [[], [1.0], [NAN], [1.0, None], [None], [1.0, 1.0]]),
        (
            pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())}),
            RECORDS,
        ),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("a", 2)], []]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
        (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes]),
    ],
    ids=str,
)
def test_values_of_each_type_are_compared(kind: pa.DataType, values: list[Any]) -> None:
    several = [*values, None]
    for i, one in enumerate(several):
        left = pa.array([one] * len(several), kind)
        expected = [i != j for j in range(len(several))]
        assert differences(left, pa.array(several, kind)).tolist() == expected
    assert differences(pa.nulls(2, kind), pa.nulls(2, kind)).tolist() == [False, False]


def test_floats_that_are_equal_are_no_change() -> None:
    assert differences(pa.array([0.0, NAN]), pa.array([-0.0, NAN])).tolist() == [False, False]


def shown(query: Any, data: dict[str, Any], **options: Any) -> list[tuple[int, Any]]:
    rows = query.run(data, **options).to_pylist()
    return [(row["window"]["start"], row["v"]) for row in rows]


def test_lists_that_change() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(v=a.collect("v")).on("t", emit=mt.on_change())
    data = {"t": [1, 11, 21, 22, 31, 32], "v": [1, 1, 1, 2, 1, 2]}
    assert shown(query, data) == [(0, [1]), (20, [1, 2])]


@pytest.mark.parametrize("threads", [1, 2])
def test_all_keys_on_several_threads(threads: int) -> None:
    number, rng = 400_000, np.random.default_rng(3)
    data = {
        "t": np.sort(rng.integers(0, 20_000, number)),
        "k": rng.integers(0, 50, number),
        "v": rng.integers(0, 2, number),
    }
    base = mt.windows(ten=w.tumbling(10), long=w.sliding(100, every=50)).aggregate(v=a.max("v")).by("k")
    everything = base.on("t").run(data).to_arrow(nested=True).to_pylist()
    last: dict[Any, Any] = {}
    expected = []
    for row in everything:
        name = row["k"], row["window_name"]
        if name not in last or last[name] != row["v"]:
            expected.append(row)
        last[name] = row["v"]
    assert len(expected) < len(everything) * 2 / 3
    actual = base.on("t", emit=mt.on_change()).run(data, threads=threads)
    assert actual.to_arrow(nested=True).to_pylist() == expected


def test_state_is_one_window_per_key_and_survives_a_snapshot() -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(v=a.max("v")).by("k").on("t", emit=mt.on_change())
    op = query.operator()
    op.process({"t": list(range(1, 5_000, 10)), "k": [i % 3 for i in range(500)], "v": [1] * 500})
    assert len(op.advance(5_001)) == 3
    table = op._engine.state.compared
    assert len(table) == 3
    again = mt.Operator.restore(op.snapshot())
    again.process({"t": [5_002, 5_003], "k": [0, 1], "v": [1, 2]})
    rows = again.finish().to_pylist()
    assert [(row["k"], row["v"]) for row in rows] == [(1, 2)]
    assert again.stats().windows == 4


def test_values_are_forgotten_with_their_keys() -> None:
    query = (
        mt.windows(ten=w.tumbling(10))
        .aggregate(v=a.max("v"))
        .by("k")
        .on("t", emit=mt.on_change(), forget_keys_after=50)
    )
    op = query.operator()
    op.process({"t": [1, 61], "k": [0, 1], "v": [1, 1]})
    op.advance(70)
    table = op._engine.state.compared
    assert len(table) == 1


def test_it_is_part_of_the_query() -> None:
    base = mt.windows(ten=w.tumbling(10)).aggregate(v=a.max("v"))
    query = base.on("t", emit=mt.on_change())
    assert "emit=mt.on_change()" in repr(query)
    assert loads(query.to_toml()) == query != base.on("t")
    assert query.fingerprint() != base.on("t").fingerprint() == base.on("t", emit=mt.on_close()).fingerprint()
    assert "if its values differ from the window before" in str(query.explain())
    assert "held for ever" in str(query.by("k").explain(verbose=True))
    with pytest.raises(QueryError, match=r"mt\.on_close\(\) or mt\.on_change\(\).*forget to call"):
        base.on("t", emit=mt.on_change)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match='Did you mean "on_change"'):
        loads(query.to_toml().replace('"on_change"', '"on_chang"'))


def test_a_step_shows_no_early_value_that_is_out_of_date() -> None:
    """A late tuple changes a complete window and an open one: the early look follows in the same step."""
    query = (
        mt.windows(ten=w.sliding(10, 5))
        .aggregate(most=a.max("v"))
        .on("t", emit=mt.on_change(), early=mt.every(3), allowed_lateness=100)
    )
    op = query.operator()
    op.process({"t": [1, 7], "v": [5, 5]})
    assert [row["most"] for row in op.advance(11).to_pylist()] == [5]
    op.process({"t": [8], "v": [7]})
    assert [(row["window"]["start"], row["most"]) for row in op.advance(12).to_pylist()] == [(0, 7)]
    assert not op.finish()


class LookingBack(w.ForwardContextAware):
    """At each record with b, the first two records; at every multiple of 10, all of them."""

    columns = ("b",)

    def observe(self, state: Any, record: Any) -> tuple[Any, list[tuple[int, int]]]:
        return state or 10, [(0, 2)] if record["b"] else []

    def next_moment(self, state: Any) -> int | None:
        return state

    def at_moment(self, state: Any, moment: Any) -> tuple[Any, list[tuple[int, int]]]:
        return state + 10, [(0, moment.rank)]


def test_a_window_that_completes_after_later_ones_follows_them() -> None:
    """The windows before it in time are forgotten by then; it ends at 9, where the third record is."""
    query = mt.windows(own=LookingBack()).aggregate(n=a.count()).on("t", emit=mt.on_change())
    op = query.operator()
    op.process({"t": [1, 2, 9], "b": [False] * 3})
    rows = [(row["window"]["end"], row["n"]) for row in op.advance(31).to_pylist()]
    assert rows == [(10, 3)]
    op = mt.Operator.restore(op.snapshot(), query)
    op.process({"t": [32], "b": [True]})
    rows = [(row["window"]["end"], row["n"]) for row in op.finish().to_pylist()]
    assert rows == [(9, 2), (40, 4)]


def test_an_open_window_comes_out_when_the_one_before_it_changes() -> None:
    """Also where the early look of this step finds the open window as it was."""
    query = (
        mt.windows(ten=w.sliding(10, 5))
        .aggregate(most=a.max("v"))
        .on("t", emit=mt.on_change(), early=mt.every(3), allowed_lateness=100)
    )
    op = query.operator()
    op.process({"t": [1, 7], "v": [5, 5]})
    op.advance(11)
    op.process({"t": [4], "v": [7]})
    rows = [(row["window"]["start"], row["most"], row["kind"]) for row in op.advance(12).to_pylist()]
    assert sorted(rows) == [(-5, 7, "update"), (5, 5, "early")]
