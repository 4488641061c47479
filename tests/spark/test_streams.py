"""Streams on local Spark: side outputs, counters, changing windows, silence, restarts, later operators."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import muntin as mt
from muntin import Query
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files, Running  # beside this file, not installed

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


def at(second: float) -> dt.datetime:
    return START + dt.timedelta(seconds=second)


def table(*rows: tuple[float | None, str, int]) -> pa.Table:
    times = [None if row[0] is None else at(row[0]) for row in rows]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array([row[1] for row in rows]),
            "v": pa.array([row[2] for row in rows], pa.int64()),
        }
    )


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path / "in", "ts timestamp, k string, v long", "2 seconds")


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(query, start, end, key, total, kind), in seconds, sorted."""

    def seconds(edge: dt.datetime) -> float:
        return (edge.replace(tzinfo=dt.UTC) - START).total_seconds()

    edges = [(seconds(row["window"]["start"]), seconds(row["window"]["end"])) for row in rows]
    return sorted(
        (row["window_name"], *edge, row["k"], row["total"], row["kind"])
        for row, edge in zip(rows, edges, strict=True)
    )


def query(**windows: Any) -> mt.Query:
    return mt.windows(**windows).aggregate(total=a.sum("v")).by("k").on("ts")


def test_late_and_bad_tuples_are_routed_and_everything_is_counted(files: Files, tmp_path: Path) -> None:
    wanted = query(ten=w.tumbling("10 seconds")).on("ts", late="route", bad="route")
    results = files.frame().transform(wanted)
    assert results.columns[-2:] == ["late", "bad"]
    running = Running(results, tmp_path / "checkpoint")
    files.put(table((1, "a", 1), (5, "b", 2), (25, "a", 4)))
    rows = running.catch_up()
    assert brief(rows) == [("ten", 0, 10, "a", 1, "final"), ("ten", 0, 10, "b", 2, "final")]
    files.put(table((3, "a", 8), (None, "b", 16), (30, "b", 32)))
    rows = running.catch_up()
    late, bad, final = (
        [row for row in rows if row["kind"] == "late"],
        [row for row in rows if row["kind"] == "bad"],
        [row for row in rows if row["kind"] == "final"],
    )
    assert brief(final) == []
    assert [(row["window_name"], row["k"], row["late"]["v"]) for row in late] == [("ten", "a", 8)]
    assert [(row["bad"]["v"], row["bad"]["ts"]) for row in bad] == [(16, None)]
    assert '"ts" needs a value' in bad[0]["bad"]["reason"]
    stats = wanted.stats(running.query)
    running.stop()
    assert (stats.tuples, stats.late, stats.bad, stats.windows) == (5, 1, 1, 2)
    assert stats.update_combines == 2 * 5  # a sum has two partials: the total, and how many values it has
    assert stats.merge_combines >= 0
    assert stats.newest == at(30)
    assert stats.watermark == at(28)
    assert stats.watermark_lag == dt.timedelta(seconds=2)
    assert stats.state_bytes > 0
    assert "watermark lag: 0:00:02" in str(stats)


def test_the_parts_of_the_output_have_dataframes_of_their_own(spark: SparkSession) -> None:
    events = spark.createDataFrame(table((1, "a", 1), (None, "b", 2)))
    results = events.transform(query(ten=w.tumbling("10 seconds")).on("ts", bad="route"))
    assert mt.spark.windows(results).columns == ["k", "window_name", "window", "total", "kind", "revision"]
    assert [row["total"] for row in mt.spark.windows(results).collect()] == [1]
    assert [(row["k"], row["v"]) for row in mt.spark.bad(results).collect()] == [("b", 2)]
    with pytest.raises(QueryError, match='late="route"'):
        mt.spark.late(results)


def test_queries_come_and_go_while_the_stream_runs(files: Files, tmp_path: Path) -> None:
    live = query(ten=w.tumbling("10 seconds")).control(tmp_path / "control")
    checkpoint = tmp_path / "checkpoint"
    running = Running(files.frame().transform(live), checkpoint)
    files.put(table((1, "a", 1), (12, "b", 2)))
    assert brief(running.catch_up()) == [("ten", 0, 10, "a", 1, "final")]
    live.add(five=w.tumbling("5 seconds"), three=w.count(3))
    files.put(table((13, "b", 4), (16, "b", 8), (17, "c", 16), (31, "b", 32)))
    found = brief(running.catch_up())
    # The newest tuple before the change is at 12: [10, 15) and its count windows are not whole.
    assert found == [
        ("five", 15, 20, "b", 8, "final"),
        ("five", 15, 20, "c", 16, "final"),
        ("ten", 10, 20, "b", 14, "final"),
        ("ten", 10, 20, "c", 16, "final"),
    ]
    live.remove("ten")
    files.put(table((33, "b", 64), (46, "c", 128)))
    assert [row[0] for row in brief(running.catch_up())] == ["five", "three"]
    running.stop()
    # After a restart the changes still hold, although the program asks for the first query again.
    again = Running(files.frame().transform(live), checkpoint)
    files.put(table((70, "b", 256)))
    assert {row[0] for row in brief(again.catch_up())} == {"five"}
    again.stop()


def test_a_repeated_micro_batch_takes_up_the_same_changes(files: Files, tmp_path: Path) -> None:
    early = query(ten=w.tumbling("10 seconds")).on("ts", early=mt.each_batch())
    live, checkpoint = early.control(tmp_path / "control"), tmp_path / "checkpoint"
    running = Running(files.frame().transform(live), checkpoint)
    files.put(table((1, "a", 1), (12, "b", 2)))
    running.catch_up()
    running.stop()
    before = max(running.rows)
    live.add(five=w.tumbling("5 seconds"))
    files.put(table((13, "b", 4), (16, "b", 8)))
    running = Running(files.frame().transform(live), checkpoint)  # one micro-batch takes up both
    running.catch_up()
    running.stop()
    # As if the driver had died in the micro-batch that took the change up; then comes another one.
    repeated = before + 1
    for log, first in (("commits", repeated), ("offsets", repeated + 1)):
        for path in (checkpoint / log).iterdir():  # with their checksums
            if int(path.name.removeprefix(".").removesuffix(".crc")) >= first:
                path.unlink()
    live.remove("ten")
    again = Running(files.frame().transform(live), checkpoint)
    again.catch_up()
    assert {row["window_name"] for row in again.rows[repeated]} == {"ten", "five"}
    assert brief(again.rows[repeated]) == brief(running.rows[repeated])
    files.put(table((17, "b", 16), (31, "b", 32)))
    assert {row["window_name"] for row in again.catch_up()} == {"five"}
    again.stop()


def test_a_silent_stream_closes_its_windows(files: Files, tmp_path: Path) -> None:
    wanted = query(ten=w.tumbling("10 seconds")).on("ts", idle_after="2 seconds")
    running = Running(files.frame().transform(wanted), tmp_path / "checkpoint")
    files.put(table((1, "a", 1), (12, "b", 2)))
    rows = running.wait(lambda rows: len(rows) == 2)
    running.stop()
    assert brief(rows) == [("ten", 0, 10, "a", 1, "final"), ("ten", 10, 20, "b", 2, "final")]


def test_a_changed_query_goes_on_from_a_checkpoint_or_is_refused(files: Files, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    running = Running(files.frame().transform(query(ten=w.tumbling("10 seconds")), plan="packed"), checkpoint)
    files.put(table((1, "a", 1), (12, "b", 2)))
    running.catch_up()
    running.stop()
    more = query(ten=w.tumbling("10 seconds"), visit=w.session("5 seconds"))
    running = Running(files.frame().transform(more), checkpoint)
    files.put(table((21, "b", 4), (40, "a", 8)))
    assert brief(running.catch_up()) == [
        ("ten", 10, 20, "b", 2, "final"),
        ("ten", 20, 30, "b", 4, "final"),
        ("visit", 21, 26, "b", 4, "final"),
    ]
    running.stop()
    other = more.aggregate(most=a.max("v"))
    running = Running(files.frame().transform(other), checkpoint)
    files.put(table((50, "a", 16)))
    with pytest.raises(StreamingQueryException, match=r"aggregate most .* is new"):
        running.catch_up()
    assert running.all() == []
    # Nothing was touched: the query before goes on.
    running = Running(files.frame().transform(more), checkpoint)
    assert brief(running.catch_up()) == [("visit", 40, 45, "a", 8, "final")]
    running.stop()


def test_a_changed_query_is_refused_where_window_keeps_the_state(files: Files, tmp_path: Path) -> None:
    checkpoint, ten = tmp_path / "checkpoint", query(ten=w.tumbling("10 seconds"))
    running = Running(files.frame().transform(ten), checkpoint)
    files.put(table((1, "a", 100), (2, "a", 50)))
    running.catch_up()
    running.stop()
    files.put(table((3, "a", 60), (40, "a", 0)))
    most = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.max("v")).by("k").on("ts")
    for other in (most, query(ten=w.tumbling("20 seconds"))):
        running = Running(files.frame().transform(other), checkpoint)
        with pytest.raises(StreamingQueryException) as refused:
            running.catch_up()
        told = str(refused.value)
        assert repr(other) in told
        assert repr(ten) in told
        assert running.all() == []
    # Nothing was touched: the query before goes on, whatever its window is called.
    same = query(decade=w.tumbling("10 seconds"))
    running = Running(files.frame().transform(same), checkpoint)
    assert brief(running.catch_up()) == [("decade", 0, 10, "a", 210, "final")]
    running.stop()


@pytest.mark.parametrize("plans", [("packed", "auto"), ("auto", "packed")])
def test_there_is_no_way_from_one_plan_to_the_other(
    files: Files, tmp_path: Path, plans: tuple[str, str]
) -> None:
    wanted, checkpoint = query(ten=w.tumbling("10 seconds")), tmp_path / "checkpoint"
    files.put(table((1, "a", 100)))
    for plan in plans:
        running = Running(files.frame().transform(wanted, plan=plan), checkpoint)
        if plan == plans[0]:
            running.catch_up()
            running.stop()
            files.put(table((3, "a", 60), (40, "a", 0)))
    with pytest.raises(StreamingQueryException, match="sources requested by the query"):
        running.catch_up()
    assert running.all() == []


def test_a_tie_column_orders_tuples_of_one_time(spark: SparkSession) -> None:
    rows = table(*((1, "a", v) for v in (5, 3, 9, 1)))
    events = spark.createDataFrame(rows.append_column("n", pa.array([2, 0, 3, 1])))
    wanted = mt.windows(all=w.tumbling("10 seconds")).aggregate(order=a.collect("v")).by("k").on("ts")
    for tie in ("n", f.col("n"), f.timestamp_micros(f.col("n"))):
        assert [r["order"] for r in events.transform(wanted, tie=tie).collect()] == [[3, 1, 5, 9]]
    with pytest.raises(QueryError, match="integers or timestamps"):
        events.transform(wanted, tie="k")
    with pytest.raises(Exception, match="must not be null or negative"):
        events.transform(wanted, tie=f.col("n") - 1).collect()


@pytest.mark.parametrize("tie", ["n", "since"])
def test_tuples_of_one_time_and_one_tie_keep_an_order(spark: SparkSession, tie: str) -> None:
    """However they are read, and in however many partitions, they come out in the same."""
    values = [5, 3, 9, 1, 7]
    orders = set()
    windows = mt.windows(all=w.tumbling("10 seconds"), three=w.count(3))
    wanted = windows.aggregate(order=a.collect("v")).on("ts")
    for some, parts in ((values, 1), (values[::-1], 2), (sorted(values), 3)):
        rows = table((1, "a", 100), *((1, "a", v) for v in some))
        rows = rows.append_column("n", pa.array([6] + [7] * 5)).append_column(
            "since", pa.array([at(6)] + [at(7)] * 5, pa.timestamp("us", tz="UTC"))
        )
        events = spark.createDataFrame(rows).repartition(parts)
        found = {row["window_name"]: row["order"] for row in events.transform(wanted, tie=tie).collect()}
        assert found["all"][0] == 100
        assert found["three"] == found["all"][3:]  # the last one that is full
        orders.add(tuple(found["all"]))
    assert len(orders) == 1


def test_large_ties_keep_their_order(spark: SparkSession) -> None:
    places = [2**42 + 1, 2**42 - 1, 2**61, 0, 2**42, 2**61 + 1]
    rows = table(*((1, "a", v) for v in range(6))).append_column("n", pa.array(places))
    wanted = mt.windows(all=w.tumbling("10 seconds")).aggregate(order=a.collect("v")).on("ts")
    (found,) = spark.createDataFrame(rows).transform(wanted, tie="n").collect()
    assert found["order"] == [3, 1, 4, 0, 2, 5]
    with pytest.raises(Exception, match=r"nor lie above 2\*\*62"):
        spark.createDataFrame(rows).transform(wanted, tie=f.col("n") * 2).collect()


@pytest.mark.parametrize("plan", ["auto", "packed"])
def test_a_column_that_is_computed_in_another_way_is_refused(files: Files, tmp_path: Path, plan: str) -> None:
    def asked(times: int) -> Query:
        total = a.sum((f.col("v") * times).alias("y"))
        return mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=total).by("k").on("ts")

    running = Running(files.frame().transform(asked(2), plan=plan), tmp_path / "checkpoint")
    files.put(table((1, "a", 100)))
    running.catch_up()
    running.stop()
    files.put(table((3, "a", 60), (40, "a", 0)))
    running = Running(files.frame().transform(asked(3), plan=plan), tmp_path / "checkpoint")
    with pytest.raises(
        StreamingQueryException, match=r"NOT_COMPATIBLE" if plan == "auto" else r"column y was"
    ):
        running.catch_up()
    running = Running(files.frame().transform(asked(2), plan=plan), tmp_path / "checkpoint")
    assert brief(running.catch_up()) == [("ten", 0, 10, "a", 320, "final")]
    running.stop()


def test_results_feed_a_further_aggregation_a_join_and_the_file_sink(
    spark: SparkSession, files: Files, tmp_path: Path
) -> None:
    wanted = query(ten=w.tumbling("10 seconds"))
    results = files.frame().transform(wanted, plan="packed")
    for second in (1, 12, 25, 60):
        files.put(table((second, "a", second), (second + 1, "b", 1)))
    per_key = results.groupBy("k").agg(f.sum("total").alias("total"), f.count("*").alias("n"))
    further = Running(per_key, tmp_path / "further", mode="update")
    further.catch_up()
    further.stop()
    last = {row["k"]: (row["total"], row["n"]) for row in further.all()}
    assert last == {"a": (38, 3), "b": (3, 3)}
    # With a table, and with the results of the other plan, which are another stream.
    names = spark.createDataFrame([("a", "north")], "k string, shop string")
    handed = files.frame().transform(wanted, plan="jvm").select("k", "window", f.col("total").alias("again"))
    joined = results.join(names, "k").join(handed, ["k", "window"])
    both = Running(joined, tmp_path / "joined")
    found = [(row["shop"], row["total"], row["again"]) for row in both.catch_up()]
    both.stop()
    assert sorted(found) == [("north", 1, 1), ("north", 12, 12), ("north", 25, 25)]
    sink = (
        results.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "sink"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    sink.awaitTermination()
    written = spark.read.parquet(str(tmp_path / "out"))
    assert written.schema == results.schema
    assert written.agg(f.sum("total")).first()[0] == 41  # type: ignore[index]  # there is one row


@pytest.mark.parametrize("keys", [[], ["hot"]], ids=["no key", "one hot key"])
def test_little_crosses_the_shuffle_whatever_the_number_of_tuples(
    spark: SparkSession, keys: list[str]
) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    from muntin.connectors.spark.packed_rows import PACKED
    from muntin.connectors.spark.partition_packer import PartitionPacker
    from muntin.connectors.spark.prepared_input import prepare
    from muntin.slicing.snapshots.archive import unpack

    windows = mt.windows(ten=w.tumbling("10 seconds"), smooth=w.sliding("1 minute", every="1 second"))
    wanted = windows.aggregate(total=a.sum("id")).by(*keys).on("ts")
    crossed = []
    for tuples in (1_000, 100_000):
        # A minute in each of four partitions.
        time = f.timestamp_millis((f.col("id") * (240_000_000 // tuples) / 1000).cast("long") % 60_000)
        events = spark.range(tuples, numPartitions=4).select(time.alias("ts"), "id", f.lit("a").alias("hot"))
        prepared = prepare(wanted, events)
        packer = PartitionPacker(wanted, prepared.groups, prepared.schema)
        packed = prepared.frame.mapInArrow(packer, from_arrow_schema(PACKED)).collect()
        payloads = [bytes(row["payload"]) for row in packed if row["payload"] is not None]
        slices = [len(unpack(payload, checked=False)[1]["slices"]) for payload in payloads]
        # And a newest time from each partition for each key group.
        assert len(packed) - len(payloads) == 4 * len(prepared.groups)
        crossed.append((slices, sum(map(len, payloads))))
        total = (
            events.transform(wanted, plan="packed").where("window_name = 'ten'").agg(f.sum("total")).first()
        )
        assert total is not None
        assert total[0] == tuples * (tuples - 1) // 2
    # One payload from each partition, with a slice for each second, be it of 4 or of 400 tuples.
    assert [slices for slices, _ in crossed] == [[60] * 4] * 2
    assert crossed[1][1] < 1.1 * crossed[0][1]


def test_columns_may_be_spark_columns(spark: SparkSession) -> None:
    events = spark.createDataFrame(table((1, "a", 1), (2, "b", 2), (3, "a", 4)))
    wanted = (
        mt.windows(ten=w.tumbling("10 seconds"), low=w.threshold(f.col("v") < 3))
        .aggregate(
            twice=a.sum(f.col("v") * 2),
            plain=a.sum(f.col("v")),
            best=a.arg_max("v", by=-f.col("v")),
            some=a.count(filter=f.col("v") > 1),
        )
        .by(f.upper("k").alias("key"), f.col("k"))
        .on(f.col("ts"))
    )
    columns = ("key", "k", "window_name", "twice", "plain", "best", "some")
    found = sorted(tuple(row[c] for c in columns) for row in events.transform(wanted).collect())
    assert found == [
        ("A", "a", "low", 2, 1, 1, 0),
        ("A", "a", "ten", 10, 5, 1, 1),
        ("B", "b", "low", 4, 2, 2, 1),
        ("B", "b", "ten", 4, 2, 2, 1),
    ]
    # What the windows read, the JVM reads as well.
    simple = mt.windows(ten=w.tumbling("10 seconds")).aggregate(twice=a.sum(f.col("v") * 2)).on("ts")
    assert [row["twice"] for row in events.transform(simple, plan="jvm").collect()] == [14]
    with pytest.raises(mt.errors.DataError, match="no column"):
        simple.run(table((1, "a", 1)))


def test_instants_do_not_depend_on_the_zone_of_the_session(
    spark: SparkSession, files: Files, tmp_path: Path
) -> None:
    wanted = query(ten=w.tumbling("10 seconds"), two=w.count(2))
    events = spark.createDataFrame(table((1, "a", 1), (2, "a", 2)))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = events.transform(wanted).toArrow()
        running = Running(files.frame().transform(wanted), tmp_path / "checkpoint")
        files.put(table((1, "a", 1), (2, "a", 2), (30, "a", 4)))
        running.catch_up()
        running.stop()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    starts = {row["window_name"]: row["window"]["start"] for row in found.to_pylist()}
    assert starts == {"ten": at(0), "two": at(1)}
    # Rows that Python collects have the clock of this process, without a zone.
    local = {row["window_name"]: row["window"]["start"].astimezone(dt.UTC) for row in running.all()}
    assert local == starts


def test_names_of_columns_may_have_any_characters(spark: SparkSession) -> None:
    named = table((1, "a", 1), (2, "a", 2)).rename_columns(["the.time", "a key", "v + v"])
    wanted = mt.windows(two=w.count(2)).aggregate(total=a.sum("v + v")).by("a key").on("the.time")
    events = spark.createDataFrame(named)
    assert [(row["a key"], row["total"]) for row in events.transform(wanted).collect()] == [("a", 3)]
