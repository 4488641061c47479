"""The same query on Spark: one transform for batch and streaming DataFrames. Needs Java."""

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

query = (
    mt.windows(minute=w.tumbling("1 minute"), visit=w.session("30 seconds"))
    .aggregate(total=a.sum("amount"))
    .by("shop")
    .on("ts")
)

spark = mt.spark.session()
rows = [(5, "north", 3), (95, "north", 5), (20, "north", 4), (30, "south", 8)]
sales = spark.createDataFrame(rows, "second long, shop string, amount long")
sales = sales.selectExpr("timestamp_seconds(second) AS ts", "shop", "amount")

results = sales.transform(query, watermark="10 seconds")  # a stream would need the watermark
for row in results.orderBy("window_name", "shop", "window.start").collect():
    print(row["shop"], row["window_name"], row["total"])
spark.stop()

# Output:
# north minute 7
# north minute 5
# south minute 8
# north visit 7
# north visit 5
# south visit 8
