"""A late record: the windows that it changes are emitted again, and nothing else is."""

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

query = (
    mt.windows(ten=w.tumbling(10), visit=w.session(5))
    .aggregate(total=a.sum("amount"))
    .on("t", allowed_lateness=60)
)
current = {}  # the table of current results


def apply(results):
    for row in results.to_pylist():
        window = (row["window_name"], row["window"]["start"], row["window"]["end"])
        print(f"{row['kind']:8}{row['revision']} {window} {row['total']}")
        if row["kind"] == "retract":
            del current[window]
        else:
            current[window] = row["total"]


op = query.operator()
op.process({"t": [1, 4, 13, 22], "amount": [1, 2, 4, 8]})
apply(op.advance(30))
print("a tuple of 8 arrives late")
op.process({"t": 8, "amount": 16})
apply(op.advance(31))
print(current)

# Output:
# final   0 ('visit', 1, 9) 3
# final   0 ('ten', 0, 10) 3
# final   0 ('visit', 13, 18) 4
# final   0 ('ten', 10, 20) 4
# final   0 ('visit', 22, 27) 8
# final   0 ('ten', 20, 30) 8
# a tuple of 8 arrives late
# retract 1 ('visit', 1, 9) 3
# retract 1 ('visit', 13, 18) 4
# update  1 ('ten', 0, 10) 19
# final   0 ('visit', 1, 18) 23
# {('ten', 0, 10): 19, ('ten', 10, 20): 4, ('visit', 22, 27): 8, ('ten', 20, 30): 8, ('visit', 1, 18): 23}
