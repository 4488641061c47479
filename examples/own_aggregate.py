"""An aggregate of your own from three functions, and a check that it obeys its laws."""

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.testing import laws

harmonic_mean = a.aggregate(
    "speed",
    lift=lambda speed: (1, 1 / speed),  # one tuple
    combine=lambda p, q: (p[0] + q[0], p[1] + q[1]),  # two partial aggregates
    lower=lambda p: p[0] / p[1],  # the result
    name="harmonic_mean",
)
laws.check(harmonic_mean, values=[1.0, 2.0, 40.0])

query = mt.windows(ten=w.tumbling(10), trip=w.session(8)).aggregate(speed=harmonic_mean).on("t")
for row in query.run({"t": [1, 2, 9, 12, 30], "speed": [30.0, 60.0, 30.0, 60.0, 50.0]}).to_pylist():
    print(f"{row['window_name']:4} [{row['window']['start']}, {row['window']['end']}) {row['speed']:.1f}")

# Output:
# ten  [0, 10) 36.0
# trip [1, 20) 40.0
# ten  [10, 20) 60.0
# trip [30, 38) 50.0
# ten  [30, 40) 50.0
