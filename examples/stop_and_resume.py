"""A snapshot: stop a stream, and go on later, in another process or on another machine."""

import tempfile
from pathlib import Path

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

query = mt.windows(ten=w.tumbling(10), four=w.count(4)).aggregate(total=a.sum("v")).by("k").on("t")

with tempfile.TemporaryDirectory() as folder:
    saved = Path(folder) / "state.muntin"

    op = query.operator()
    op.process({"t": [1, 4, 12], "k": ["a", "a", "a"], "v": [1, 2, 4]})
    op.advance(10)
    saved.write_bytes(op.snapshot())

    op = mt.Operator.restore(saved.read_bytes())
    print("watermark:", op.watermark)
    op.process({"t": [17, 23], "k": ["a", "a"], "v": [8, 16]})
    for row in op.finish().to_pylist():
        print(row["window_name"], row["window"]["start"], row["window"]["end"], row["total"])

# Output:
# watermark: 10
# four 1 18 15
# ten 10 20 12
# ten 20 30 16
