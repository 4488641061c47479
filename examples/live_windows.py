"""Windows that come and go while the stream runs."""

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

op = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).on("t").operator()


def show(results):
    for row in results.to_pylist():
        print(f"{row['window_name']:6} [{row['window']['start']}, {row['window']['end']}) {row['total']}")


op.process({"t": [1, 4, 12, 17], "v": [1, 2, 4, 8]})
show(op.advance(10))

added = op.add(twenty=w.tumbling(20), visit=w.session(3))
print("new windows are complete from here on:", added.since)
op.process({"t": [22, 24, 41], "v": [16, 32, 64]})
show(op.advance(41))

op.remove("ten")
print("ten is gone")
show(op.finish())

# Output:
# ten    [0, 10) 3
# new windows are complete from here on: {'twenty': 20, 'visit': 18}
# ten    [10, 20) 12
# visit  [22, 27) 48
# ten    [20, 30) 48
# twenty [20, 40) 48
# ten is gone
# visit  [41, 44) 64
# twenty [40, 60) 64
