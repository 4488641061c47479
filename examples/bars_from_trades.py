"""Bars from a CSV file: by the minute, and by every 100 units of volume, in one pass."""

import io

from pyarrow import csv

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

FILE = b"""time,symbol,price,volume
2026-05-04T09:30:01,ACME,10.00,40
2026-05-04T09:30:20,ACME,10.20,30
2026-05-04T09:30:45,ACME,10.10,50
2026-05-04T09:31:10,ACME,10.40,20
2026-05-04T09:31:50,ACME,10.30,60
"""

bars = (
    mt.windows(minute=w.tumbling("1 minute"), hundred=w.until(a.sum("volume"), 100))
    .aggregate(
        open=a.first("price"),
        high=a.max("price"),
        low=a.min("price"),
        close=a.last("price"),
        vwap=a.weighted_mean("price", "volume"),
    )
    .by("symbol")
    .on("time")
)

for row in bars.run(csv.read_csv(io.BytesIO(FILE))).to_pylist():
    prices = "  ".join(f"{name} {row[name]:.2f}" for name in ("open", "high", "low", "close", "vwap"))
    print(f"{row['symbol']} {row['window_name']:7} {row['window']['start']:%H:%M:%S}  {prices}")

# Output:
# ACME hundred 09:30:01  open 10.00  high 10.20  low 10.00  close 10.10  vwap 10.09
# ACME minute  09:30:00  open 10.00  high 10.20  low 10.00  close 10.10  vwap 10.09
# ACME hundred 09:31:10  open 10.40  high 10.40  low 10.30  close 10.30  vwap 10.32
# ACME minute  09:31:00  open 10.40  high 10.40  low 10.30  close 10.30  vwap 10.32
