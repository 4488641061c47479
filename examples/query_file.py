"""A query as a TOML file, for the command line and for people who do not write Python."""

import tempfile
from pathlib import Path

import muntin as mt

TOML = """\
[stream]
time = "t"
key = ["shop"]

[windows.ten]
type = "tumbling"
length = 10

[windows.expensive]
type = "threshold"
predicate = "amount > 100"

[aggregates.total]
function = "sum"
column = "amount"
"""

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "sales.toml"
    path.write_text(TOML)
    query = mt.load(path)

print(query.keys, [name for name, _ in query.windows])
sales = {"t": [1, 4, 12, 15], "shop": ["north"] * 4, "amount": [20, 150, 170, 30]}
for row in query.run(sales).to_pylist():
    print(row["shop"], row["window_name"], row["window"]["start"], row["window"]["end"], row["total"])

# Output:
# ('shop',) ['ten', 'expensive']
# north ten 0 10 170
# north expensive 4 15 320
# north ten 10 20 200
