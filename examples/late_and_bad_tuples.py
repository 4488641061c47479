"""Nothing is lost: tuples that arrive too late, and tuples without a usable time, are routed."""

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t", late="route", bad="route")
op = query.operator()
op.process([{"t": 3, "id": 1}, {"t": None, "id": 2}, {"t": 14, "id": 3}])
op.advance(12)
op.process({"t": 5, "id": 4})  # its window is complete, and takes no late tuples
op.finish()
print("late:", op.take_late().to_pylist())
print("bad:", op.take_bad().to_pylist())
print("counted:", op.stats().late, "late for a window,", op.stats().bad, "bad")

# Output:
# late: [{'t': 5, 'id': 4, 'window_name': 'ten'}]
# bad: [{'t': None, 'id': 2, 'reason': 'the column "t" needs a value in every tuple: got null'}]
# counted: {'ten': 1} late for a window, 1 bad
