"""A few tuples far apart: the work follows the tuples, not the time between them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.testing.engines import rows_of_table
from muntin.testing.rows import compare


class Tens(w.ContextFree):
    """Tumbling windows of ten, in Python; counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def next_edge(self, time: int) -> int:
        self.asked += 1
        return time - time % 10 + 10

    def containing(self, time: int) -> list[tuple[int, int]]:
        self.asked += 1
        return [(time - time % 10, time - time % 10 + 10)]


@pytest.mark.parametrize("lateness", [0, 10**15])
def test_windows_in_python_agree_with_the_built_in_ones(lateness: int) -> None:
    tens = Tens()
    rng = np.random.default_rng(4)
    queries = [
        mt.windows(x=window).aggregate(n=a.count(), total=a.sum("v")).on("t", allowed_lateness=lateness)
        for window in (tens, w.tumbling(10))
    ]
    own, built_in = (query.operator() for query in queries)
    places = np.array([0, 10**3, 10**6, 10**12, 10**12 + 10**5])
    for _ in range(5):
        batch = {"t": rng.choice(places, 200) + rng.integers(0, 60, 200), "v": rng.integers(0, 9, 200)}
        own.process(batch)
        built_in.process(batch)
        watermark = int(rng.choice(places)) + 30
        actual, expected = own.advance(watermark), built_in.advance(watermark)
        assert not compare(rows_of_table(actual, ()), rows_of_table(expected, ()))
    assert not compare(rows_of_table(own.finish(), ()), rows_of_table(built_in.finish(), ()))
    assert tens.asked < 100_000


def test_days_of_distant_years() -> None:
    query = mt.windows(day=w.calendar("day", "Europe/Berlin")).aggregate(n=a.count()).on("t")
    times = [dt.datetime(2024, 7, 1, 12), dt.datetime(9000, 1, 1, 12), dt.datetime(2024, 7, 1, 23)]
    starts = [row["window"]["start"] for row in query.run({"t": times}).to_pylist()]
    assert starts == [
        dt.datetime(2024, 6, 30, 22),
        dt.datetime(2024, 7, 1, 22),
        dt.datetime(8999, 12, 31, 23),
    ]
