"""Single records: they wait to be sliced together, which changes no result."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError
from muntin.slicing import step as step_module
from muntin.windows.base import Window


def query(window: Window, **on: Any) -> Any:
    return mt.windows(x=window).aggregate(n=a.count(), total=a.sum("v")).on("t", **on)


def brief(table: pa.Table) -> list[tuple[int, int, int]]:
    return [(r["window"]["start"], r["window"]["end"], r["n"]) for r in table.to_pylist()]


class Batches:
    """Counts the batches that an operator slices."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        take_in = step_module.take_in

        def counted(plan: Any, state: Any, arrivals: Any, data: pa.RecordBatch, *rest: Any) -> Any:
            self.sizes.append(len(data))
            return take_in(plan, state, arrivals, data, *rest)

        patch.setattr(step_module, "take_in", counted)


WAITING: dict[str, tuple[Window, dict[str, Any], int]] = {
    "tumbling": (w.tumbling(1000), {"watermark_lag": 100}, 12),
    "sliding": (w.sliding(2000, every=500), {"watermark_lag": 100}, 22),
    "in order": (w.tumbling(1000), {"in_order": True}, 12),
    "one session": (w.session(900), {"watermark_lag": 100}, 12),
    "a band": (w.fixed_band(0, 20_000), {"watermark_lag": 0}, 5),
    "landmark": (w.landmark(0, every=5000), {"watermark_lag": 0}, 5),
}


@pytest.mark.parametrize("name", WAITING)
def test_records_are_sliced_together_until_something_is_due(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, options, most = WAITING[name]
    batches = Batches(monkeypatch)
    op = query(window).operator(**options)
    rows = [row for t in range(10_000) for row in brief(op.process({"t": t, "v": 1}))]
    rows += brief(op.finish())
    assert sum(batches.sizes) == 10_000
    assert len(batches.sizes) <= most
    assert rows == brief(query(window).run({"t": range(10_000), "v": [1] * 10_000}))


PROMPT: dict[str, tuple[Window, dict[str, Any]]] = {
    "each batch": (w.tumbling(10), {"early": mt.each_batch()}),
    "early results": (w.tumbling(100), {"early": mt.every(5)}),
    "count": (w.count(10), {}),
    "empty windows": (w.tumbling(10, emit_empty=True), {}),
}


@pytest.mark.parametrize("name", PROMPT)
def test_records_that_may_not_wait(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    window, on = PROMPT[name]
    batches = Batches(monkeypatch)
    op = query(window, **on).operator(watermark_lag=2)
    for t in range(40):
        op.process({"t": t, "v": 1})
    assert batches.sizes == [1] * 40


def test_results_come_with_the_record_that_makes_them_due() -> None:
    op = query(w.tumbling(10)).operator(watermark_lag=3)
    results = [brief(op.process({"t": t, "v": 1})) for t in (1, 5, 11, 12, 13, 14, 25, 23)]
    assert results == [[], [], [], [], [(0, 10, 2)], [], [(10, 20, 4)], []]
    assert op.watermark == 22


@pytest.mark.parametrize("lag", [None, 0])
def test_a_program_may_use_one_dict_for_all_records(lag: int | None) -> None:
    op, record = query(w.tumbling(10)).operator(watermark_lag=lag), {"t": 0, "v": 0}
    for t in range(10):
        record["t"] = record["v"] = t
        op.process(record)
    assert op.finish()["total"].to_pylist() == [45]


def test_a_session_of_waiting_records_only() -> None:
    op = query(w.session(3)).operator(watermark_lag=40)
    for t in (50, 20, 63):
        assert brief(op.process({"t": t, "v": 1})) == []
    assert brief(op.process({"t": 64, "v": 1})) == [(20, 23, 1)]


def test_late_records_are_judged_by_the_watermark_that_they_find() -> None:
    op = query(w.tumbling(10), late="route").operator(watermark_lag=5)
    for t in (
        1,
        12,
        14,
        16,
        9,
        17,
    ):  # 9 comes when [0, 10) is over, and is judged when 17 moves the watermark
        op.process({"t": t, "v": t})
    assert op.take_late()["t"].to_pylist() == [9]


@pytest.mark.parametrize(
    ("times", "late", "sessions"),
    [
        ((30, 33, 22, 26), [], [(22, 37, 4)]),  # judged together: 26 joins 22 to the open session
        ((30, 33, 22, 34, 26), [22], [(26, 38, 4)]),  # 34 moves the watermark before 26 can help
    ],
)
def test_records_of_sessions_are_judged_when_the_watermark_moves(
    times: tuple[int, ...], late: list[int], sessions: list[tuple[int, int, int]]
) -> None:
    op = query(w.session(4), late="route").operator(watermark_lag=5)
    for t in times:
        op.process({"t": t, "v": t})
    found = brief(op.finish())
    assert op.take_late()["t"].to_pylist() == late
    assert found == sessions


def test_a_bad_record_is_told_at_once_and_nothing_is_lost() -> None:
    op = query(w.tumbling(10)).operator(watermark_lag=0)
    for t in (1, 2, 3):
        op.process({"t": t, "v": 1})
    for bad in ({"t": 4, "v": "x"}, {"t": "x", "v": 1}, {"t": None, "v": 1}, {"t": 4, "v": 2**70}):
        with pytest.raises(DataError, match='choose bad="skip"'):
            op.process(bad)
    with pytest.raises(DataError, match="there is no column"):
        op.process({"v": 3})
    with pytest.raises(DataError, match="names of columns must be texts"):
        op.process({"t": 4, "v": 3, 5: 6})
    op.process({"t": 5, "v": 1})
    assert op.process({"t": 10, "v": 1})["total"].to_pylist() == [4]


def test_a_result_that_fails_costs_one_record() -> None:
    op = query(w.tumbling(10)).operator(watermark_lag=0)
    big = 2**62
    for t in (1, 2, 3):
        op.process({"t": t, "v": big})
    with pytest.raises(DataError, match="overflow"):
        op.process({"t": 10, "v": 1})
    assert op.watermark == 3
    op.process({"t": 4, "v": -2 * big})
    assert op.process({"t": 11, "v": 1})["total"].to_pylist() == [big]


def test_the_state_can_be_looked_at_while_records_wait() -> None:
    op = query(w.tumbling(100), bad="route").operator(watermark_lag=3)
    for t in range(50):
        op.process({"t": t, "v": 1})
    assert op.watermark == 46
    assert op.stats().tuples == 50
    op.process({"t": 50, "v": 1})
    again = Operator.restore(op.snapshot())
    op.process({"t": 51, "v": 1})
    op.add(y=w.tumbling(7))
    op.process({"t": 52, "v": 1})
    op.process({"t": [53, 54], "v": [1, 1]})
    assert op.stats().tuples == 55
    assert again.stats().tuples == 51
    assert again.process({"t": 103, "v": 1})["n"].to_pylist() == [51]


NOON = dt.datetime(2024, 5, 1, 12)


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        (pa.int64(), [3, np.int64(4), 5.0, True, 2**62 + 1]),
        (pa.int8(), [3, np.int8(4), 128]),
        (pa.timestamp("us"), [NOON, pd.Timestamp(NOON), np.datetime64(NOON), NOON.replace(tzinfo=dt.UTC), 7]),
        (pa.timestamp("s", "Asia/Kathmandu"), [NOON.astimezone(dt.UTC), NOON, NOON.replace(microsecond=1)]),
        (pa.timestamp("ns"), [NOON, NOON.replace(year=3000)]),
    ],
    ids=str,
)
def test_times_of_every_kind_wait_or_are_told_as_in_a_batch(kind: pa.DataType, times: list[Any]) -> None:
    window = w.tumbling(10) if pa.types.is_integer(kind) else w.tumbling("1 hour")
    shape = query(window, bad="route")
    options = {"watermark_lag": 0, "schema": {"t": kind, "v": "int64"}}
    waiting, sliced = shape.operator(**options), shape.operator(**options)
    for time in times:
        waiting.process({"t": time, "v": 1})
        sliced.process([{"t": time, "v": 1}])
        assert waiting.watermark == sliced.watermark
    assert waiting.take_bad().equals(sliced.take_bad())
    assert waiting.finish() == sliced.finish()
    assert 0 < waiting.stats().bad < len(times)


def test_records_alike_are_not_looked_at_again_but_others_are() -> None:
    op = query(w.tumbling(10)).operator()
    record: dict[Any, Any] = {"t": 1, "v": 1}
    for _ in range(3):
        op.process(record)
    record[7] = "a name that is no text"  # in the same dict as before
    with pytest.raises(DataError, match="names of columns must be texts: got 7"):
        op.process(record)
    del record[7]
    op.process(record)
    op.process({"t": [2, 3], "v": [1, 1]})  # the same names, but two tuples
    op.process({"v": 5, "t": 4})
    op.process({"t": 5, "v": 5, "note": "one more"})
    assert brief(op.advance(10)) == [(0, 10, 8)]
    op.process(record | {"t": 11})
    assert brief(op.finish()) == [(10, 20, 1)]
    with pytest.raises(DataError, match="the stream has ended"):
        op.process(record)


def test_records_alike_after_a_change_of_queries_give_the_new_columns() -> None:
    op = query(w.tumbling(10)).operator()
    for t in (1, 2):
        op.process({"t": t, "v": 1})
    op.add(c=w.count(2))
    nothing = [op.process({"t": t, "v": 1}) for t in (3, 4, 5)]
    assert all(table.schema == op.flush().schema for table in nothing[1:])
    assert "start_rank" in [field.name for field in nothing[-1]["window"].type]
