"""What an operator shows: open windows, slices, its own text. Nothing of it changes the operator."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError, UserCodeError
from muntin.results import Rows

TEN = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v"))
FOUR = [{"t": 1, "v": 1}, {"t": 6, "v": 2}, {"t": 8, "v": 4}, {"t": 11, "v": 8}]


def shown(rows: Rows, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in rows]


def test_before_the_first_tuple_there_are_columns_and_no_rows() -> None:
    op = TEN.by("k").on("t").operator()
    for rows, edges in ((op.open_windows(), "window"), (op.slices(), "slice")):
        assert len(rows) == 0
        assert rows.column_names[0] == "k"
        assert {f"{edges}_start", f"{edges}_end", f"{edges}_count", "total"} <= set(rows.column_names)
    op.advance(5)
    assert len(op.open_windows()) == len(op.slices()) == 0
    typed = TEN.by("k").on("t").operator(schema={"t": "int64", "k": "string", "v": "int64"})
    assert typed.open_windows().schema.field("window_start").type == pa.int64()
    assert typed.slices().schema.names == op.slices().schema.names


def test_after_the_end_there_are_none() -> None:
    op = mt.windows(ten=w.tumbling(10), three=w.count(3)).aggregate(n=a.count()).on("t").operator()
    op.process(FOUR)
    before = op.open_windows().schema
    op.finish()
    assert len(op.open_windows()) == len(op.slices()) == 0
    assert op.open_windows().schema == before


@pytest.mark.parametrize("options", [{}, {"watermark_lag": 3}, {"in_order": True}, {"threads": 2}])
def test_tuples_that_wait_count_and_go_on_waiting(options: dict[str, Any]) -> None:
    op, plain = (TEN.on("t").operator(**options) for _ in range(2))
    for record in FOUR:
        assert op.process(record).to_pylist() == plain.process(record).to_pylist()
        waiting = op._buffer.waiting
        rows = op.open_windows()
        assert sum(rows["window_count"].to_pylist()) == sum(op.slices()["slice_count"].to_pylist())
        assert op._buffer.waiting == waiting
    assert shown(op.open_windows(), "window_start", "window_end", "window_count", "total")[-1] == (
        10,
        20,
        1,
        8,
    )
    assert op.snapshot() == plain.snapshot()
    assert op.finish().to_pylist() == plain.finish().to_pylist()


def test_batches_and_a_watermark_that_wait_count_too() -> None:
    op = TEN.on("t").operator()
    first, second = (pa.RecordBatch.from_pylist(FOUR[i : i + 2]) for i in (0, 2))
    op.process(first)
    op.advance(1)
    op.process(second)
    op.advance(4)  # completes nothing, so it waits
    assert op._buffer.waiting == 2
    assert shown(op.open_windows(), "window_start", "total") == [(0, 7), (10, 8)]
    assert shown(op.slices(), "slice_first", "slice_last", "total") == [(1, 8, 7), (11, 11, 8)]
    assert op._buffer.waiting == 2
    assert shown(op.finish(), "total") == [(7,), (8,)]


def test_a_bad_record_that_waits_raises_its_error_and_goes_on_waiting() -> None:
    op = TEN.on("t").operator()
    op.process(FOUR[:2])
    op.process({"t": 3, "v": 4})
    op.process({"t": None, "v": 4})
    for _ in range(2):
        with pytest.raises(DataError, match="null"):
            op.open_windows()
    with pytest.raises(DataError, match="null"):
        op.flush()
    assert shown(op.open_windows(), "total") == [(7,)]


def test_keys_windows_and_starts_are_in_order() -> None:
    query = mt.windows(five=w.sliding(10, every=5), visit=w.session(3), two=w.count(2)).aggregate(n=a.count())
    op = query.by("k", "j").on("t").operator()
    op.process({"t": [7, 8, 1], "k": ["b", "a", "b"], "j": [1, None, 1]})
    assert shown(op.open_windows(), "k", "j", "window_name", "window_start", "window_end", "n") == [
        ("b", 1, "five", -5, 5, 1),
        ("b", 1, "five", 0, 10, 2),
        ("b", 1, "five", 5, 15, 1),
        ("a", None, "five", 0, 10, 1),
        ("a", None, "five", 5, 15, 1),
        ("b", 1, "visit", 1, 4, 1),
        ("b", 1, "visit", 7, 10, 1),
        ("a", None, "visit", 8, 11, 1),
        ("b", 1, "two", 1, 8, 2),
        ("a", None, "two", 8, None, 1),
    ]


def test_an_end_that_only_a_tuple_can_tell_is_null() -> None:
    windows = {
        "count": w.count(5),
        "marks": w.punctuation(mt.col("v") == 1),
        "km": w.tumbling(100, measure="km"),
        "last": w.last(2, every=10),
        "session": w.session(4),
        "capped": w.session(4, max_length=20),
        "since": w.landmark(0, 10),
        "day": w.fixed_band(0, 50),
    }
    op = mt.windows(**windows).aggregate(n=a.count()).on("t").operator()
    op.process({"t": [12, 14], "v": [1, 0], "km": [10, 130]})
    rows = {(row["window_name"], row["window_start"]): row["window_end"] for row in op.open_windows()}
    assert rows == {
        ("count", 12): None,
        ("marks", 12): None,
        ("km", 12): 14,  # the tuple at 130 km ends it
        ("km", 14): None,
        ("last", 12): 20,
        ("session", 12): 18,
        ("capped", 12): 18,
        ("since", 0): 20,
        ("day", 0): 50,
    }
    measured = [row for row in op.open_windows() if row["window_name"] == "km"]
    assert [(row["window_start_km"], row["window_end_km"]) for row in measured] == [(0, 100), (100, 200)]


def test_late_tuples_count_as_if_the_watermark_moved_now() -> None:
    op = (
        mt.windows(ten=w.tumbling(10), hundred=w.tumbling(100)).aggregate(total=a.sum("v")).on("t").operator()
    )
    op.process(FOUR)
    op.advance(10)
    op.process({"t": 2, "v": 100})  # late for "ten", not for "hundred"
    assert shown(op.open_windows(), "window_name", "window_count", "total") == [
        ("ten", 1, 8),
        ("hundred", 5, 115),
    ]
    assert op.stats().late == {"ten": 0, "hundred": 0}
    assert op.stats().pending == 1
    op.advance(11)
    assert op.stats().late == {"ten": 1, "hundred": 0}


def test_early_results_come_as_without_a_look() -> None:
    query = TEN.on("t", early=mt.each_batch())
    op, plain = query.operator(), query.operator()
    for record in FOUR:
        assert op.process(record).to_pylist() == plain.process(record).to_pylist()
        op.open_windows()
        op.slices()
    assert op.finish().to_pylist() == plain.finish().to_pylist()


@pytest.mark.parametrize("store", ["lazy", "flatfat", "fiba", "two_stacks", "daba", "prefix"])
def test_a_store_that_persists_is_not_touched(store: str) -> None:
    query = mt.windows(long=w.sliding(400, every=1)).aggregate(total=a.sum("v")).by("k").on("t")
    op, plain = (query.operator(store=store) for _ in range(2))
    rng = np.random.default_rng(0)
    for low in range(0, 1000, 100):
        times = np.sort(rng.integers(low, low + 100, 50))
        batch = {"t": times, "k": rng.integers(0, 3, 50), "v": rng.integers(0, 9, 50)}
        assert op.process(batch).to_pylist() == plain.process(batch).to_pylist()
        op.open_windows()
        op.slices()
        assert op.advance(low + 90).to_pylist() == plain.advance(low + 90).to_pylist()
        now = [row for row in op.open_windows() if row["window_start"] == low + 50]
        assert {row["k"] for row in now} <= {0, 1, 2}
    assert op.finish().to_pylist() == plain.finish().to_pylist()


def test_threads_give_the_same() -> None:
    query = mt.windows(ten=w.tumbling(10), visit=w.session(3), five=w.count(5)).aggregate(
        n=a.count(), s=a.sum("v")
    )
    rng = np.random.default_rng(1)
    batch = {
        "t": rng.integers(0, 5_000, 60_000),
        "k": rng.integers(0, 99, 60_000),
        "v": rng.integers(0, 9, 60_000),
    }
    one, two = (query.by("k").on("t").operator(threads=n) for n in (1, 2))
    for op in (one, two):
        op.process(batch)
        op.advance(2_000)
    assert one.open_windows() == two.open_windows()
    assert one.slices() == two.slices()
    assert one.finish().to_pylist() == two.finish().to_pylist()


def test_separators_name_what_ends_a_slice() -> None:
    def slices(times: list[int], **windows: Any) -> list[tuple[Any, ...]]:
        op = mt.windows(**windows).aggregate(n=a.count()).on("t").operator()
        op.process({"t": times})
        columns = ("slice_start", "slice_end", "slice_first", "slice_last", "slice_separator")
        return shown(op.slices(), *columns)

    assert slices([3, 14], ten=w.tumbling(10)) == [(0, 10, 3, 3, "fixed"), (10, 20, 14, 14, "fixed")]
    assert slices([3, 14, 16], visit=w.session(4)) == [(3, 7, 3, 3, "flexible"), (14, 20, 14, 16, "flexible")]
    assert slices([3, 9, 14, 25], ten=w.tumbling(10), visit=w.session(5)) == [
        (0, 8, 3, 3, "flexible"),
        (9, 10, 9, 9, "fixed"),  # the session goes on
        (10, 19, 14, 14, "flexible"),
        (20, 30, 25, 25, "combined"),
    ]
    assert slices([3, 4, 5, 6, 7], two=w.count(2)) == [
        (3, 5, 3, 4, "flexible"),
        (5, 7, 5, 6, "flexible"),
        (7, None, 7, 7, None),
    ]
    assert slices([3, 40], band=w.fixed_band(20, 10)) == [(30, None, 40, 40, None)]


def test_times_are_of_the_type_of_the_column() -> None:
    query = mt.windows(minute=w.tumbling("1 minute"), two=w.count(2)).aggregate(n=a.count()).on("t")
    time = pa.array([dt.datetime(2026, 5, 4, 9, 0, 5)], pa.timestamp("ms", tz="Europe/Berlin"))
    op = query.operator()
    op.process(pa.table({"t": time}))
    names = {"window_start", "window_end", "slice_start", "slice_end", "slice_first", "slice_last"}
    for rows in (op.open_windows(), op.slices()):
        found = {field.name: field.type for field in rows.schema if field.name in names}
        assert set(found.values()) == {time.type}
    assert "Operator\nwindows     minute: tumbling 1 minute\n            two: count 2\n" in repr(op)


def test_a_value_that_cannot_be_computed() -> None:
    def lower(total: int) -> int:
        if total > 5:
            raise ValueError("too much")
        return total

    total = a.aggregate("v", lift=int, combine=lambda x, y: x + y, lower=lower, type="int64", compile=False)
    op = mt.windows(ten=w.tumbling(10)).aggregate(total=total).on("t").operator()
    op.process(FOUR)
    with pytest.raises(UserCodeError, match=r"too much.*ten \[0, 10\)"):
        op.open_windows()
    assert shown(op.slices(), "total") == [(None,), (None,)]
    skipping = mt.windows(ten=w.tumbling(10)).aggregate(total=total).on("t", on_error="skip").operator()
    skipping.process(FOUR[:2])
    skipping.process({"t": 11, "v": 8})
    assert shown(skipping.open_windows(), "total") == [(3,), (None,)]
    assert skipping.stats().errors == 0


def test_names_that_the_tables_use_themselves() -> None:
    op = (
        mt.windows(ten=w.tumbling(10))
        .aggregate(window_count=a.count(), slice_end=a.count())
        .on("t")
        .operator()
    )
    op.process({"t": 1})
    with pytest.raises(QueryError, match=r'open_windows\(\) has a column "window_count" of its own.*rename'):
        op.open_windows()
    with pytest.raises(QueryError, match=r'slices\(\) has a column "slice_end" of its own.*rename'):
        op.slices()


def test_too_many_open_windows_are_an_error() -> None:
    op = mt.windows(ten=w.sliding(10, every=1)).aggregate(n=a.count()).on("t", max_windows=20).operator()
    op.process({"t": [0, 50]})
    assert len(op.open_windows()) == 20
    op.process({"t": 100})
    with pytest.raises(DataError, match="must not emit more than"):
        op.open_windows()


def test_rows_are_for_other_tools(tmp_path: Any) -> None:
    op = TEN.on("t").operator()
    op.process(FOUR)
    rows = op.open_windows()
    assert pa.table(rows) == rows.to_arrow()
    assert rows.to_polars()["total"].to_list() == rows.to_pandas()["total"].tolist() == [7, 8]
    rows.write(tmp_path / "open.csv")
    assert (tmp_path / "open.csv").read_text().splitlines()[1] == '"ten",0,10,3,7'
    assert [row["total"] for row in rows[1:]] == [8]
    assert type(rows[:1]) is Rows
    with pytest.raises(DataError, match='Did you mean "total"'):
        rows["totl"]
    assert "<td" in rows._repr_html_()


def test_an_operator_says_how_far_it_is() -> None:
    op = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count(filter="v < 2")).by("k").on("t").operator()
    assert "watermark   none yet\ntuples      0, late 0, bad 0\nkeys        0 of k" in repr(op)
    op.process([{"t": 1, "v": 1, "k": "a"}, {"t": 12, "v": 1, "k": "b"}])
    op.process({"t": 13, "v": 1, "k": "b"})
    assert "tuples      3, late 0, bad 0; 1 not sliced yet\nkeys        2 of k" in repr(op)
    op.advance(10)
    op.process({"t": 1, "v": 1, "k": "b"})
    op.add(five=w.tumbling(5))
    op.advance(20)
    assert "windows     ten: tumbling 10\n            five: tumbling 5\n" in repr(op)
    assert "watermark   20\ntuples      4, late 1, bad 0\n" in repr(op)
    assert "v &lt; 2" in op._repr_html_()
    op.finish()
    assert "watermark   the end\n" in repr(op)


def test_an_operator_can_be_shown_while_a_call_runs() -> None:
    texts: list[str] = []
    op: Operator

    def lift(value: int) -> int:
        texts.append(repr(op))
        return value

    total = a.aggregate("v", lift=lift, combine=lambda x, y: x + y, compile=False)
    op = mt.windows(ten=w.tumbling(10)).aggregate(total=total).on("t").operator()
    op.process([{"t": 1, "v": 1}])
    op.flush()
    assert all(text.startswith("Operator\n") for text in texts)
    assert texts


def test_queries_and_counters_show_themselves_in_notebooks() -> None:
    query = mt.windows(mark=w.punctuation(mt.col("v") < 1)).aggregate(n=a.count()).by("k").on("t")
    html = query._repr_html_()
    assert "<td" in html
    assert "v &lt; 1" in html
    assert "<" not in html.replace("<t", "").replace("</t", "").split("<details>")[0].replace("<b", "")
    stats = query.operator().stats()
    assert "none yet" in stats._repr_html_()
    assert stats._repr_html_().count("<tr>") == len(str(stats).splitlines())
