"""Sales of a shop: three windows over one stream, and a sale that arrives late."""

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

query = (
    mt.windows(
        ten=w.tumbling(10),  # seconds; with timestamps: "10 seconds"
        smooth=w.sliding(20, every=10),
        visit=w.session(5),  # ends when nothing is sold for 5 seconds
    )
    .aggregate(total=a.sum("amount"), sales=a.count())
    .on("second", allowed_lateness=60)
)
sales = {
    "second": [11, 14, 16, 24, 27, 29, 32, 35, 43, 46, 48],
    "amount": [3, 1, 4, 5, 9, 2, 6, 5, 3, 5, 8],
}
late = {"second": [21], "amount": [7]}

if __name__ == "__main__":
    op = query.operator()
    op.process(sales)
    for row in op.advance(61).to_pylist():  # the stream is complete up to 61: these windows ended
        print(row)
    op.process(late)
    for row in op.advance(62).to_pylist():  # the windows that the late sale changes
        print(row)
