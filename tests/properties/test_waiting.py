"""Small batches, records and watermarks that wait: the same as taking each of them in at once."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors import buffer as buffer_module
from muntin.connectors.buffer import MOST_CHECKED
from muntin.connectors.embedded import Operator
from muntin.errors import DataError
from muntin.slicing import step as step_module
from muntin.slicing.bound_plan import BoundPlan
from muntin.slicing.state import State
from muntin.testing.rows import same_value

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.int64()})
WINDOWS = {
    "plain": w.tumbling(40),
    "slow": w.sliding(90, every=30, offset=4),
    "gaps": w.sliding(15, every=60),
    "growing": w.cumulate(120, 40),
}
"""Their edges are known beforehand, so watermarks between them may wait."""
OTHERS = {"visit": w.session(6), "three": w.count(3)}
AGGREGATES = {"n": a.count(), "total": a.sum("v"), "newest": a.last("v"), "most": a.max("v", filter="v > 1")}
FORMS = ("batch", "batch", "batch", "records", "odd records", "table")

rows = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from("ab"), st.integers(0, 5)), max_size=4)
steps = st.lists(
    st.tuples(
        st.sampled_from(FORMS),
        st.one_of(rows.filter(bool), rows.map(lambda some: [(max(step, 0), k, v) for step, k, v in some])),
        st.sampled_from([3, 4, 5, 3, 4, 5, 0, -2, None]),
        st.sampled_from([""] * 10 + ["look", "add", "remove", "bad", "snapshot"]),
    ),
    min_size=5,
    max_size=40,
)
"""Each has tuples, how far the watermark stays behind the newest of them, and something else."""


def told(call: Any, *args: Any, **kwargs: Any) -> Any:
    """What a step gives: its rows, or its error."""
    try:
        found = call(*args, **kwargs)
    except DataError as error:
        return str(error)
    return found.to_pylist() if isinstance(found, pa.Table | mt.Results) else found


def state(op: Operator) -> list[Any]:
    stats = op.stats()
    seen = (op.watermark, stats.tuples, stats.late, stats.pending, stats.bad)
    return [*seen, op.take_late().to_pylist(), op.take_bad().to_pylist()]


def taken(op: Operator, table: pa.Table, form: str) -> list[Any]:
    """Take tuples in: one by one, as a batch, or as a table, which never waits."""
    if form == "records":
        return [told(op.process, row) for row in table.to_pylist()]
    if form == "odd records":  # with the fields in another order, and one more that is not always there
        rows = [dict(reversed(row.items())) for row in table.to_pylist()]
        notes: list[dict[str, Any]] = [{}, {"note": None}, {"note": "x"}]
        note_of_all = notes[sum(map(len, rows)) % 3] if rows else {}
        return [told(op.process, row | note_of_all) for row in rows]
    if form == "slices":
        return [told(op.process, table.slice(i, 1)) for i in range(len(table))]
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=SCHEMA)]
    return [told(op.process, batch if form == "batch" else table)]


@settings(max_examples=settings.default.max_examples, report_multiple_bugs=False)
@given(
    served=st.dictionaries(st.sampled_from(list(WINDOWS)), st.none(), min_size=1).map(list),
    others=st.sampled_from(["", "", "", *OTHERS]),
    asked=st.sets(st.sampled_from(list(AGGREGATES)), min_size=1),
    keyed=st.booleans(),
    late=st.sampled_from(["drop", "route"]),
    few=st.sampled_from([0, 1, MOST_CHECKED]),
    stream=steps,
)
def test_nobody_can_tell(
    served: list[str], others: str, asked: set[str], keyed: bool, late: Any, few: int, stream: Any
) -> None:
    """`few` records are looked at one by one, more of them become a batch."""
    with patch.object(buffer_module, "MOST_CHECKED", few):
        compare(served, others, asked, keyed, late, stream)


def compare(served: list[str], others: str, asked: set[str], keyed: bool, late: Any, stream: Any) -> None:
    windows: dict[str, Any] = WINDOWS | OTHERS
    query: Any = mt.windows(**{name: windows[name] for name in [*served, others] if name})
    query = query.aggregate(**{name: AGGREGATES[name] for name in sorted(asked)})
    query = (query.by("k") if keyed else query).on("t", late=late)
    waiting, plain = (query.operator(schema=SCHEMA) for _ in range(2))
    now = 0
    for form, some, lag, other in stream:
        tuples = []
        for step, k, v in some:
            now += max(step, 0)
            tuples.append({"t": now + min(step, 0), "k": k, "v": v})
        note(f"{form} {tuples}, lag {lag}, {other}")
        table = pa.Table.from_pylist(tuples, schema=SCHEMA)
        found = taken(waiting, table, form)
        assert same_value(found, taken(plain, table, "slices" if "records" in form else "table"))
        if lag is not None:
            assert same_value(told(waiting.advance, now - lag), told(plain.advance, now - lag))
        assert waiting.watermark == plain.watermark
        if other == "look":
            assert same_value(state(waiting), state(plain))
        elif other == "bad":
            wrong = [{"t": now, "k": "a", "v": 1}, {"t": None, "k": "a", "v": 1}]
            bad = pa.RecordBatch.from_pylist(wrong, schema=SCHEMA)
            assert told(waiting.process, bad) == told(plain.process, pa.Table.from_batches([bad]))
        elif other == "snapshot":
            waiting, plain = (Operator.restore(op.snapshot()) for op in (waiting, plain))
        elif other == "add" and "more" not in served:
            served.append("more")
            added = [op.add(more=w.tumbling(25)) for op in (waiting, plain)]
            assert same_value(added[0].since, added[1].since)
        elif other == "remove" and "more" in served:
            served.remove("more")
            for op in (waiting, plain):
                op.remove("more")
    assert same_value(told(waiting.finish), told(plain.finish))
    assert same_value(state(waiting), state(plain))


def test_most_steps_of_a_fast_stream_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred batches with their watermarks between two edges are sliced once."""
    sliced: list[int] = []
    take_in = step_module.take_in

    def counted(plan: BoundPlan, state: State, arrivals: Any, data: pa.RecordBatch, *rest: Any) -> Any:
        sliced.append(len(data))
        return take_in(plan, state, arrivals, data, *rest)

    monkeypatch.setattr(step_module, "take_in", counted)
    query = mt.windows(one=w.tumbling(1000), two=w.sliding(3000, every=500)).aggregate(n=a.sum("v")).on("t")
    for op, take in ((query.operator(), as_batch), (query.operator(), one_by_one)):
        sliced.clear()
        total = 0
        for i in range(500):
            take(op, 10 * i)
            total += sum(
                row["n"] for row in op.advance(10 * i + 10).to_pylist() if row["window_name"] == "one"
            )
        assert total == 5000
        assert sum(sliced) == 5000
        assert len(sliced) <= 5000 // 500 + 2


def as_batch(op: Operator, start: int) -> None:
    op.process(pa.record_batch({"t": range(start, start + 10), "v": [1] * 10}))


def one_by_one(op: Operator, start: int) -> None:
    for t in range(start, start + 10):
        op.process({"t": t, "v": 1})


@pytest.mark.parametrize("notes", [(None, "x"), ("x", None), ("x", 5), (None, None)])
def test_records_with_other_fields_wait_behind_a_batch_of_others(notes: tuple[Any, Any]) -> None:
    op = mt.windows(x=w.tumbling(1000)).aggregate(n=a.count(), total=a.sum("v")).on("t").operator()
    op.process({"t": 0, "v": 1})
    op.advance(1)
    for begin, note_of_all in zip((1, 101), notes, strict=True):
        for t in range(begin, begin + 100):
            op.process({"t": t, "note": note_of_all, "v": 1})
        op.advance(begin + 99)
    op.process(pa.record_batch({"v": [1], "t": [300]}))
    assert [(row["n"], row["total"]) for row in op.advance(1000).to_pylist()] == [(202, 202)]


def test_a_batch_that_waits_keeps_what_it_held() -> None:
    """Its memory may be a NumPy array that the program fills again."""
    op = mt.windows(ten=w.tumbling(1_000)).aggregate(total=a.sum("v")).on("t").operator()
    times, values = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    for step, value in enumerate((1, 10, 100)):
        times[:], values[:] = step, value
        op.process(pa.record_batch({"t": pa.array(times), "v": pa.array(values)}))
        op.advance(step)
    assert op.finish()["total"].to_pylist() == [222]


def with_notes(start: int, kind: pa.DataType) -> pa.RecordBatch:
    """Ten tuples, and a column of a type that no query reads."""
    notes = pa.array([f"{start + i}" for i in range(10)]).cast(kind.value_type).dictionary_encode()
    both = pa.StructArray.from_arrays([notes.cast(kind)], names=["note"])
    return pa.record_batch({"t": range(start, start + 10), "v": [1] * 10, "notes": both})


def test_batches_that_cannot_be_joined_do_not_wait() -> None:
    """Dictionaries inside of a column, of which two hold more values than their numbers can tell apart."""
    op = mt.windows(all=w.tumbling(10_000)).aggregate(n=a.sum("v")).on("t").operator()
    for i in range(30):
        assert op.process(with_notes(10 * i, pa.dictionary(pa.int8(), pa.string()))).num_rows == 0
    assert op.finish()["n"].to_pylist() == [300]


def test_large_texts_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """One column could not hold those of many batches."""
    monkeypatch.setattr(buffer_module, "MOST_BYTES", 25_000)
    op = mt.windows(all=w.tumbling(10_000)).aggregate(n=a.count(), last=a.last("note")).on("t").operator()
    most = 0
    for i in range(30):
        op.process(pa.record_batch({"t": [i], "note": [f"{i}" * 5_000]}))
        op.advance(i)
        most = max(most, sum(batch.nbytes for batch in op._buffer.batches))
    assert 10_000 < most <= 25_000
    assert op.finish().to_pylist()[0] | {"window": None} == {
        "window_name": "all", "window": None, "n": 30, "last": "29" * 5_000, "kind": "final", "revision": 0,
    }  # fmt: skip
