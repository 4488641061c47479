"""Streams for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.dashboard.feeds import Feed
from muntin.testing.transcript_files import Step

MINUTE = 60_000_000


def query() -> mt.Query:
    return (
        mt.windows(ten=w.tumbling("10 minutes"), visit=w.session("2 minutes"))
        .aggregate(n=a.count(), total=a.sum("v"))
        .by("shop")
        .on("ts", allowed_lateness="30 minutes")
    )


def batch(minutes: list[int], **columns: Any) -> pa.RecordBatch:
    times = pa.array([minute * MINUTE for minute in minutes]).cast(pa.timestamp("us", "UTC"))
    values = {"shop": ["a"] * len(minutes), "v": list(range(len(minutes)))} | columns
    return pa.RecordBatch.from_pydict({"ts": times, **values})


def endless(rate: float = 60, behind: int = 5) -> Feed:
    """A tuple of each of two shops per minute of event time, and one in ten late, this number of minutes."""

    def steps() -> Iterator[Step]:
        minute = 0
        while True:
            late = [minute - behind] if minute % 10 == 9 else []
            yield Step("input", batch([minute, minute, *late], shop=["a", "b", *("a" for _ in late)]))
            minute += 1

    return Feed("Two shops", query(), steps, rate, options={"watermark_lag": "2 minutes"})


def failing() -> Feed:
    """Its second step has a tuple without a time."""
    bad = pa.RecordBatch.from_pydict(
        {"ts": pa.array([None], pa.timestamp("us", "UTC")), "shop": ["a"], "v": [1]}
    )
    return Feed("A bad tuple", query(), lambda: [Step("input", batch([1])), Step("input", bad)], rate=50)


TRANSCRIPT = """
columns: [t, v]
stream: {time: t, allowed_lateness: 20}
transcripts:
  - name: late_tuple
    about: one slice changes, and the window over it
    windows: {ten: {type: tumbling, length: 10}}
    aggregates: {total: {function: sum, column: v}}
    steps:
      - input: [[1, 3], [4, 4]]
      - watermark: 10
        expect: [{window: [0, 10], total: 7}]
      - input: [[8, 5]]
      - watermark: 11
        expect: [{window: [0, 10], total: 12, kind: update, revision: 1}]
  - name: wrong_expectation
    windows: {ten: {type: tumbling, length: 10}}
    aggregates: {total: {function: sum, column: v}}
    steps:
      - input: [[1, 3]]
      - watermark: 10
        expect: [{window: [0, 10], total: 4}]
      - add: {five: {type: tumbling, length: 5}}
      - remove: ten
"""
