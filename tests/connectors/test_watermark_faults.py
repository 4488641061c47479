"""A key group whose watermark, as Spark tells it, is far ahead of the clock, or never moves."""

from __future__ import annotations

import datetime as dt
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark import watermark_faults
from muntin.errors import DataError, SnapshotError

sys.path.insert(0, str(Path(__file__).parent))
from key_group import KeyGroup  # beside this file, not installed

SCHEMA = pa.schema([("k", pa.string()), ("t", pa.timestamp("us", tz="UTC")), ("v", pa.int64())])
SECOND, DAY = 1_000_000, 86_400_000_000
NOW = 1_772_323_200 * SECOND  # 2026-03-01
FUTURE = NOW + 27_000 * DAY


def at(second: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(NOW / SECOND + second, dt.UTC)


def query(**windows: Any) -> mt.Query:
    return mt.windows(**windows).aggregate(total=a.sum("v")).by("k").on("t")


def guard(group: KeyGroup) -> None:
    group.job = replace(group.job, ahead=366 * DAY, delay=2 * SECOND)


TEN = {"ten": w.tumbling("10 seconds")}
LAST = {"three": w.last(3, every="10 seconds")}


def test_behind_a_guard_the_newest_tuples_count_where_spark_s_watermark_is_in_the_future() -> None:
    group = KeyGroup(query(**TEN, **LAST), SCHEMA)
    group.step([("a", at(1), 1), ("a", at(27_000 * 86_400), 64)], now=NOW)
    for _ in range(2):
        with pytest.raises(DataError, match=r'events\.transform\(query, watermark="10 seconds"\)'):
            group.step(watermark=FUTURE, now=NOW)
    guard(group)
    assert group.step([("a", at(8), 2), ("a", at(14), 4)], watermark=FUTURE, now=NOW) == []
    rows = group.step([("a", at(15), 8)], watermark=FUTURE, now=NOW + SECOND)
    assert sorted((row["window_name"], row["total"]) for row in rows) == [("ten", 3), ("three", 3)]


def test_a_checkpoint_whose_windows_were_all_closed_is_refused_behind_a_guard() -> None:
    group = KeyGroup(query(**TEN), SCHEMA)
    group.step([("a", at(1), 1)], now=NOW)
    assert [row["total"] for row in group.step(watermark=FUTURE, now=NOW)] == [1]
    guard(group)
    with pytest.raises(SnapshotError, match="give the stream a new checkpoint"):
        group.step([("a", at(8), 2)], watermark=FUTURE, now=NOW)


def test_a_watermark_within_reach_of_the_clock_is_spark_s() -> None:
    group = KeyGroup(query(**TEN), SCHEMA)
    guard(group)
    group.step([("a", at(1), 1), ("a", at(80 * 86_400), 2)], now=NOW)
    rows = group.step(watermark=NOW + 80 * DAY - 2 * SECOND, now=NOW)
    assert [row["total"] for row in rows] == [1]


def test_watermarks_that_lose_tuples_are_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watermark_faults, "_warned", set())
    with caplog.at_level(logging.WARNING, "muntin"):
        group = KeyGroup(query(**TEN), SCHEMA)
        group.step([("a", at(1), 1)], now=NOW)
        assert caplog.messages == []
        for second in (20, 40):
            group.step([("a", at(second), 1)], now=NOW)
        assert [text.partition(":")[0] for text in caplog.messages] == ["no window can close"]
        other = KeyGroup(query(five=w.tumbling("5 seconds")), SCHEMA)
        other.step([("a", at(1), 1)], now=NOW)
        for second in (20, 40):
            other.step([("a", at(second), 1)], watermark=FUTURE, now=NOW)
        assert "Current tuples are late" in caplog.messages[1]
        assert len(caplog.messages) == 2
