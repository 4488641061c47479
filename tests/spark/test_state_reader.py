"""The state of a stream, read from its checkpoint: at every micro-batch that of the embedded engine."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.cli import app
from muntin.errors import DataError, MuntinError, QueryError, SnapshotError
from muntin.timeline import Micros

sys.path.insert(0, str(Path(__file__).parent))
from micro_batches import micro_batches  # beside this file, not installed
from streams import Files, Running

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
KEYS = "abcdef"
SCHEMA = "ts timestamp, k string, v long, n long"


def tuples(begin: int, end: int) -> pa.Table:
    """Tuples of all keys, out of order, some of one time; the last one is the newest."""
    numbers = range(begin, end)
    seconds = [number if number == end - 1 else number - number * 7 % 5 for number in numbers]
    return pa.table(
        {
            "ts": pa.array([START + dt.timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC")),
            "k": pa.array([KEYS[number * 5 % 6] for number in numbers]),
            "v": pa.array([number * 11 % 17 for number in numbers], pa.int64()),
            "n": pa.array(numbers, pa.int64()),
        }
    )


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path / "in", SCHEMA, "4 seconds")


def embedded(query: mt.Query, checkpoint: Path, follows_tuples: bool) -> Iterator[mt.Operator]:
    """The embedded operator after each micro-batch.

    On Spark windows that tuples cut wait one microsecond longer (decision 42).
    """
    operator = query.operator(schema=tuples(0, 1).schema)
    for tables, watermark in micro_batches(checkpoint):
        for table in tables:
            operator.process(table)
        if watermark:
            operator.advance(Micros(watermark - follows_tuples))
        yield operator


def rows(found: DataFrame | Any) -> list[dict[str, Any]]:
    """The rows of a table of Spark or of the embedded engine, in an order of their own."""
    table = found.toArrow() if isinstance(found, DataFrame) else found.to_arrow()
    return sorted(table.to_pylist(), key=repr)


AGGREGATES = {"total": a.sum("v"), "middle": a.median("v"), "first": a.first("v"), "count": a.count()}
CASES = {
    "slices": mt.windows(
        ten=w.tumbling("10 seconds"),
        smooth=w.sliding("20 seconds", every="5 seconds"),
        visit=w.session("7 s"),
    ),
    "tuples": mt.windows(ten=w.tumbling("10 seconds"), five=w.count(5), jump=w.delta("v", by=6)),
}


@pytest.mark.parametrize("case", CASES)
def test_every_micro_batch_has_the_state_of_the_embedded_engine(
    spark: SparkSession, files: Files, tmp_path: Path, case: str
) -> None:
    query = CASES[case].aggregate(**AGGREGATES).by("k").on("ts", allowed_lateness="10 seconds")
    checkpoint = tmp_path / "checkpoint"
    running = Running(files.frame().transform(query, tie="n"), checkpoint)
    for begin, end in ((0, 40), (40, 75), (75, 130)):
        files.put(tuples(begin, end))
        running.catch_up()
    follows_tuples = case == "tuples"
    try:  # the stream runs on while its state is read
        last = mt.spark.state(spark, checkpoint)
        assert list(last.batches) == list(range(last.batch + 1))
        assert last.batch >= 3
        assert len(last.heads) == 2
        for batch, operator in enumerate(embedded(query, checkpoint, follows_tuples)):
            state = mt.spark.state(spark, str(checkpoint), batch)
            assert rows(state.open_windows()) == rows(operator.open_windows())
            assert rows(state.slices()) == rows(operator.slices())
            assert len(rows(state.open_windows())) > len(KEYS)
        sizes = rows(last.groups())
        assert running.query.isActive
    finally:
        running.stop()
    assert last.newest == START + dt.timedelta(seconds=129)
    assert last.watermark == last.newest - dt.timedelta(seconds=4, microseconds=follows_tuples)
    assert sum(row["keys"] for row in sizes) == len(KEYS)
    assert sum(row["open_windows"] for row in sizes) == len(operator.open_windows())
    assert sum(row["slices"] for row in sizes) == len(operator.slices())
    kept = rows(last.tuples())
    assert sum(row["kept_tuples"] for row in sizes) == len(kept)
    assert bool(kept) == follows_tuples
    if follows_tuples:
        every = pa.concat_tables([tuples(0, 130)]).select(["k", "ts", "v"]).to_pylist()
        assert all(row in every for row in kept)
        assert max(row["ts"] for row in kept) == last.newest


def test_windows_that_were_added_and_removed_while_it_ran(
    spark: SparkSession, files: Files, tmp_path: Path
) -> None:
    live = mt.windows(ten=w.tumbling("10 seconds")).aggregate(total=a.sum("v")).by("k").on("ts")
    live = live.control(tmp_path / "control")
    checkpoint = tmp_path / "checkpoint"
    running = Running(files.frame().transform(live), checkpoint)
    files.put(tuples(0, 40))
    running.catch_up()
    before = mt.spark.state(spark, checkpoint)
    live.add(half=w.tumbling("5 seconds"))
    live.remove("ten")
    files.put(tuples(40, 60))
    running.catch_up()
    running.stop()
    after = mt.spark.state(spark, checkpoint)
    assert [name for name, _ in before.query.windows] == ["ten"]
    assert [name for name, _ in after.query.windows] == ["half"]
    assert {row["window_name"] for row in rows(before.open_windows())} == {"ten"}
    assert {row["window_name"] for row in rows(after.open_windows())} == {"half"}
    assert {row["window_name"] for row in rows(mt.spark.state(spark, checkpoint, 0).open_windows())} == {
        "ten"
    }
    assert "half = tumbling 5 seconds" in str(after)
    assert "half" in str(after.plan)
    # The same program, started again, still asks for "ten": the state shows what is served.
    assert [name for name, _ in mt.spark.state(spark, checkpoint, query=live).query.windows] == ["half"]


def add(x: float, y: float) -> float:
    return x + y


def test_a_query_with_python_functions_must_be_passed(
    spark: SparkSession, files: Files, tmp_path: Path
) -> None:
    own = a.aggregate("v", lift=float, combine=add, lower=float, identity=0.0)
    query = mt.windows(ten=w.tumbling("10 seconds")).aggregate(mine=own, total=a.sum("v")).by("k").on("ts")
    checkpoint = tmp_path / "checkpoint"
    running = Running(files.frame().transform(query), checkpoint)
    files.put(tuples(0, 40))
    running.catch_up()
    running.stop()
    with pytest.raises(
        SnapshotError, match=r"pass the query of the program: mt\.spark\.state\(.*query=query"
    ):
        mt.spark.state(spark, checkpoint)
    found = rows(mt.spark.state(spark, checkpoint, query=query).open_windows())
    assert found
    assert all(row["mine"] == row["total"] for row in found)
    other = mt.windows(ten=w.tumbling("10 seconds")).aggregate(n=a.count()).by("k").on("ts")
    with pytest.raises(SnapshotError, match=r"aggregate mine .* is gone"):
        mt.spark.state(spark, checkpoint, query=other)


def finished(results: DataFrame, checkpoint: Path) -> Path:
    writer = results.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return checkpoint


def test_two_queries_of_one_stream(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    files.put(tuples(0, 40))
    events = files.frame()
    query = mt.windows(ten=w.tumbling("10 seconds")).aggregate(n=a.count()).by("k").on("ts")
    other = mt.windows(five=w.tumbling("5 seconds")).aggregate(n=a.count()).by("k").on("ts")
    both = events.transform(query, plan="packed").unionByName(events.transform(other, plan="packed"))
    checkpoint = finished(both, tmp_path / "checkpoint")
    with pytest.raises(
        QueryError, match=r"several Muntin queries, with the operators 0 and 1; .* operator=0"
    ):
        mt.spark.state(spark, checkpoint)
    with pytest.raises(QueryError, match=r"operator must be .*, 0 and 1: got 2; leave"):
        mt.spark.state(spark, checkpoint, operator=2)
    names = {mt.spark.state(spark, checkpoint, operator=i).query.windows[0][0] for i in (0, 1)}
    assert names == {"ten", "five"}


def test_what_has_no_state_says_so(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    files.put(tuples(0, 40))
    events = files.frame()
    query = mt.windows(ten=w.tumbling("10 seconds")).aggregate(n=a.count()).by("k").on("ts")
    packed = finished(events.transform(query, plan="packed"), tmp_path / "packed")
    wrong: list[tuple[type[MuntinError], str, tuple[Any, ...]]] = [
        (DataError, "there is no checkpoint of a stream in .*nowhere; give", (tmp_path / "nowhere",)),
        (DataError, "there is no checkpoint of a stream in .*; give the folder", (tmp_path,)),
        (DataError, "still has the state, 0 to 1: got 77; choose", (packed, 77)),
        (DataError, "still has the state, 0 to 1: got -1; choose", (packed, -1)),
        (DataError, "still has the state, 0 to 1: got True; choose", (packed, True)),
        (DataError, r"no blank and none of .*: ln -s '/a b' /tmp", ("/a b",)),
    ]
    window = finished(events.transform(query), tmp_path / "window")
    wrong.append((DataError, r"own window\(\), .* no slices; .*plan=\"packed\"", (window,)))
    other = finished(events.dropDuplicates(["k", "ts"]), tmp_path / "other")
    wrong.append((DataError, "with a Muntin query: its stateful operators are dedupe; give", (other,)))
    stateless = finished(events, tmp_path / "stateless")
    wrong.append((DataError, "has no state: .*; wait, or give", (stateless,)))
    for kind, message, given in wrong:
        with pytest.raises(kind, match=message):
            mt.spark.state(spark, *given)
    with pytest.raises(QueryError, match="takes a session, then a checkpoint: got a PosixPath"):
        mt.spark.state(packed, spark)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=r"checkpoint must be the path of .*: got 7; give"):
        mt.spark.state(spark, 7)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="query must be the query of the stream: got a str"):
        mt.spark.state(spark, packed, query="ten")  # type: ignore[arg-type]
    moved = tmp_path / "moved"
    packed.rename(moved)
    with pytest.raises(DataError, match=r"only in the folder in which the stream wrote it.*moved or copied"):
        mt.spark.state(spark, moved)
    for commit in (moved / "commits").iterdir():
        commit.unlink()
    with pytest.raises(DataError, match="no committed micro-batch yet; wait for the first one"):
        mt.spark.state(spark, moved)


def test_older_micro_batches_are_gone(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    for i in range(4):
        files.put(tuples(i * 20, i * 20 + 20))
    query = mt.windows(five=w.count(5)).aggregate(n=a.count()).by("k").on("ts")
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    try:
        checkpoint = finished(files.frame().transform(query), tmp_path / "checkpoint")
    finally:
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")
    state = mt.spark.state(spark, checkpoint)
    assert state.batches[0] > 0
    assert rows(mt.spark.state(spark, checkpoint, state.batches[0]).slices())
    with pytest.raises(DataError, match=f"still has the state, {state.batches[0]} to {state.batch}: got 0"):
        mt.spark.state(spark, checkpoint, 0)


def command(*arguments: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["state", *map(str, arguments)])
    assert done.exit_code == code, done.output + repr(done.exception)
    return done


def test_the_message_of_the_command_comes_alone(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "muntin", "state", str(tmp_path / "nowhere")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert re.fullmatch(r"error: there is no checkpoint of a stream in .*\n", done.stderr)


def test_the_command(
    spark: SparkSession, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = CASES["tuples"].aggregate(**AGGREGATES).by("k").on("ts")
    files.put(tuples(0, 40))
    files.put(tuples(40, 75))
    checkpoint = finished(files.frame().transform(query, tie="n"), tmp_path / "checkpoint")
    state = mt.spark.state(spark, checkpoint)
    shown = " ".join(command(checkpoint).stdout.split())
    assert "micro-batch 2; 0 to 2 can be read" in shown
    assert "five = count 5" in shown
    assert f"slices {state.slices().count()}" in shown
    assert f"kept tuples {state.tuples().count()}" in shown
    for option, frame in (
        ("--slices", state.slices()),
        ("--windows", state.open_windows()),
        ("--tuples", state.tuples()),
    ):
        lines = list(csv.reader(io.StringIO(command(checkpoint, option).stdout)))
        assert lines[0] == frame.columns
        assert len(lines) - 1 == frame.count()
        assert [line[0] for line in lines[1:]] == sorted(row["k"] for row in frame.collect())
    older = [
        json.loads(line)
        for line in command(checkpoint, "--batch", 0, "--windows", "--format", "jsonl").stdout.splitlines()
    ]
    assert [row["total"] for row in sorted(older, key=repr)] != []
    assert len(older) == mt.spark.state(spark, checkpoint, 0).open_windows().count()
    assert "rows" in command(checkpoint, "--windows", "--format", "table").stdout.splitlines()[-1]
    for wrong, message in (
        ([tmp_path / "nowhere"], "there is no checkpoint"),
        ([checkpoint, "--batch", 9], "0 to 2: got 9"),
        ([checkpoint, "--slices", "--windows"], "one table is printed at a time: got --slices and --windows"),
        ([checkpoint, "--slices", "--format", "cvs"], 'got cvs. Did you mean "csv"?'),
        ([checkpoint, "--format", "csv"], "--format is for rows: add --slices"),
    ):
        assert message in command(*wrong, code=2).stderr
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Spark needs Java 17 or newer" in command(checkpoint, code=2).stderr
