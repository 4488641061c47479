"""A bounded table and a stream through Spark Connect, in a process of its own: a session is classic or not.

    python connect_program.py FOLDER

reads FOLDER/input as `troubled_stream` lays it out; writes FOLDER/results, FOLDER/handed, which `window()`
runs, FOLDER/packed.parquet and FOLDER/jvm.parquet, into FOLDER/counted what the stream has counted, and
into FOLDER/refused what is said of streams without a watermark.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark.spark_session import LOCAL
from muntin.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))
import troubled_stream as program


def plain() -> mt.Query:
    """What runs in the JVM."""
    windows = mt.windows(ten=w.tumbling("10 seconds"), smooth=w.sliding("30 seconds", every="10 seconds"))
    return windows.aggregate(total=a.sum("v"), most=a.max("v")).by("k").on("ts")


def main(folder: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local")
    wanted = {name: value for name, value in (LOCAL | program.SETTINGS).items() if "sql" in name}
    for name, value in wanted.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for query, name in ((program.query(), "packed"), (plain(), "jvm")):
        table = spark.read.parquet(str(folder / "input")).transform(query, tie="n").toArrow()
        pq.write_table(table, folder / f"{name}.parquet")
    running = program.start(spark, folder, troubled=False)
    running.awaitTermination()
    counted = program.query().stats(running)
    (folder / "counted").write_text(f"{counted.tuples} {counted.late} {counted.windows}")
    handed = program.watermarked(program.events_of(spark, folder)).transform(tumbling())
    program.write(handed, folder, "handed").awaitTermination()
    stream = spark.readStream.schema(program.SCHEMA).parquet(str(folder / "input"))
    told = [refusal(stream, query) for query in (program.query(), tumbling())]
    (folder / "refused").write_text("\n".join(told))
    spark.stop()


def tumbling() -> mt.Query:
    """What `window()` runs, if there is a watermark."""
    return mt.windows(ten=w.tumbling("10 seconds")).aggregate(n=a.count()).by("k").on("ts")


def refusal(stream: DataFrame, query: mt.Query) -> str:
    try:
        stream.transform(query)
    except QueryError as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
