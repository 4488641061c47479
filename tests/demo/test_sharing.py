"""What sharing saves, counted in the same query with one window at a time."""

from __future__ import annotations

import datetime as dt
import io

import pyarrow as pa
from rich.console import Console

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.demo.sharing import Work, each_alone, table


def test_the_work_of_each_window_alone_is_summed() -> None:
    query = mt.windows(ten=w.tumbling(10), twenty=w.tumbling(20)).aggregate(n=a.count()).on("t")
    tuples = pa.table({"t": range(100)})
    found = each_alone(query, [(tuples, None)])
    assert found == Work(200, 200, 0)  # a count is one partial, and each window is one slice


def test_watermarks_close_windows() -> None:
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    times = pa.array([start + dt.timedelta(minutes=i) for i in range(60)], pa.timestamp("us", "UTC"))
    query = mt.windows(x=w.sliding("10 minutes", every="5 minutes")).aggregate(n=a.count()).on("t")
    found = each_alone(query, [(pa.table({"t": times}), start + dt.timedelta(hours=2))])
    assert (found.tuples, found.lifts) == (60, 60)
    assert found.merges > 0


def test_the_table_compares_both() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table(Work(200, 1_800, 100), Work(100, 900, 50), windows=2, joined=1_300), highlight=False)
    printed = console.export_text()
    rows = [" ".join(line.split()) for line in printed.splitlines()]
    assert "flights read 200 100 2.0" in rows
    assert "combines of both kinds 1,900 950 2.0" in rows
    assert "each of the 13 windows" in " ".join(printed.split())
    assert "11,700 combines" in " ".join(printed.split())
