"""Sales of two shops: totals per minute, and per visit, which ends after 30 seconds without a sale."""

from datetime import datetime, timedelta

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

query = (
    mt.windows(minute=w.tumbling("1 minute"), visit=w.session("30 seconds"))
    .aggregate(total=a.sum("amount"), largest=a.max("amount"))
    .by("shop")
    .on("ts")
)

nine = datetime(2026, 5, 4, 9)
sales = [(5, "north", 3), (95, "north", 5), (20, "north", 4), (30, "south", 8)]  # in any order
tuples = [{"ts": nine + timedelta(seconds=s), "shop": shop, "amount": amount} for s, shop, amount in sales]

for row in query.run(tuples).to_pylist():
    start, end = row["window"]["start"], row["window"]["end"]
    print(f"{row['shop']} {row['window_name']:6} {start:%H:%M:%S} - {end:%H:%M:%S} {row['total']:3}")

# Output:
# north visit  09:00:05 - 09:00:50   7
# north minute 09:00:00 - 09:01:00   7
# south minute 09:00:00 - 09:01:00   8
# south visit  09:00:30 - 09:01:00   8
# north minute 09:01:00 - 09:02:00   5
# north visit  09:01:35 - 09:02:05   5
