"""Every aggregate and every window of the catalogue on local Spark, beside the embedded engine."""

from __future__ import annotations

import datetime as dt
import math
import random
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.aggregates import UserAggregate
from muntin.expressions import parse
from muntin.windows import ContextFree, ForwardContextAware, ForwardContextFree, Record
from muntin.windows.tuple_driven import TupleDriven

sys.path.insert(0, str(Path(__file__).parent))
from streams import Files  # beside this file, not installed

# Workers cannot import this file, so the classes and functions below travel as code.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # not ours

START = dt.datetime(2026, 2, 28, 22, 59, tzinfo=dt.UTC)
"""A minute before a day and a month begin in Berlin."""
ROWS, SECONDS = 80, 60
"""Of a micro-batch, on average."""
DISORDER, DELAY = 15, 2
"""Seconds."""
LATE = {"allowed_lateness": "25 seconds"}
TYPES = {
    "ts": pa.timestamp("us", tz="UTC"),
    "k": pa.string(),
    "v": pa.int64(),
    "small": pa.int32(),
    "x": pa.float64(),
    "positive": pa.float64(),
    "price": pa.decimal128(10, 2),
    "text": pa.string(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "km": pa.float64(),
    "place": pa.int64(),
}
COLUMNS = (
    "ts timestamp, k string, v long, small int, x double, positive double, price decimal(10, 2), "
    "text string, flag boolean, day date, km double, place long"
)


class Spread(UserAggregate):
    """The largest value less the smallest one."""

    def lift(self, value: int) -> tuple[int, int]:
        return value, value

    def combine(self, p: tuple[int, int], q: tuple[int, int]) -> tuple[int, int]:
        return min(p[0], q[0]), max(p[1], q[1])

    def lower(self, p: tuple[int, int]) -> int:
        return p[1] - p[0]


def joined(p: str, q: str) -> str:
    return f"{p} {q}"


AGGREGATES: dict[str, Any] = {
    "aggregate": a.aggregate("text", lift=str, combine=joined, commutative=False, type=pa.string()),
    "spread": Spread().over("v"),
    "approx_count_distinct": a.approx_count_distinct("text"),
    "approx_quantile": a.approx_quantile("x", 0.7),
    "arg_max": a.arg_max("text", by="v"),
    "arg_min": a.arg_min("v", by="x"),
    "bit_and": a.bit_and("v"),
    "bit_or": a.bit_or("small"),
    "bit_xor": a.bit_xor("v"),
    "bloom": a.bloom("text", 50, 0.1),
    "collect": a.collect("v"),
    "collect_texts": a.collect("text"),
    "collect_set": a.collect_set("small"),
    "concat": a.concat("text", ", "),
    "correlation": a.correlation("v", "x"),
    "count": a.count(),
    "count_present": a.count("x"),
    "count_distinct": a.count_distinct("small"),
    "count_distinct_pairs": a.count_distinct("small", "flag"),
    "count_if": a.count_if("flag"),
    "count_min": a.count_min("small", [1, 5]),
    "covariance": a.covariance("v", "x"),
    "every": a.every("flag"),
    "first": a.first("v"),
    "first_present": a.first("x", ignore_nulls=True),
    "frequent_items": a.frequent_items("text"),
    "geometric_mean": a.geometric_mean("positive"),
    "histogram": a.histogram("v", edges=[0, 25, 50, 100]),
    "histogram_of_bins": a.histogram("v", bins=3),
    "kurtosis": a.kurtosis("v"),
    "last": a.last("text"),
    "m4": a.m4("v"),
    "max": a.max("x"),
    "max_day": a.max("day"),
    "max_count": a.max_count("small"),
    "mean": a.mean("x"),
    "mean_price": a.mean("price"),
    "median": a.median("v"),
    "min": a.min("text"),
    "min_count": a.min_count("small"),
    "mode": a.mode("small"),
    "naive_bayes": a.naive_bayes("text", columns=["v", "positive"]),
    "nth": a.nth("v", 2),
    "percentiles": a.percentiles("v", [0.9, 0.2]),
    "quantile": a.quantile("positive", 0.3),
    "skewness": a.skewness("v"),
    "some": a.some("v > 90"),
    "stddev": a.stddev("positive"),
    "sum": a.sum("v"),
    "sum_price": a.sum("price"),
    "sum_filtered": a.sum("v", filter="flag"),
    "sum_computed": a.sum(a.col("v") * a.col("positive")),
    "theta": a.theta("v"),
    "theta_bytes": a.theta("text", result="bytes"),
    "top_k": a.top_k("text", 3, by="v"),
    "variance": a.variance("v", population=True),
    "weighted_mean": a.weighted_mean("positive", weight="v"),
}
ROUNDED = {
    "correlation",
    "covariance",
    "geometric_mean",
    "kurtosis",
    "mean",
    "naive_bayes",
    "skewness",
    "stddev",
    "sum_computed",
    "variance",
    "weighted_mean",
}
"""Results whose last digit may depend on the order in which slices are combined."""


class Shifts(ContextFree):
    """A long shift of 15 seconds and a short one of 5."""

    def next_edge(self, time: int) -> int:
        into = time % 20_000_000
        return time - into + (15_000_000 if into < 15_000_000 else 20_000_000)

    def containing(self, time: int) -> list[tuple[int, int]]:
        end = self.next_edge(time)
        return [(end - (5_000_000 if end % 20_000_000 == 0 else 15_000_000), end)]


class Doubling(ForwardContextFree):
    """Windows of 1, 2, 4, ... tuples."""

    def initial_state(self) -> dict[str, int]:
        return {"size": 1, "left": 0}

    def observe(self, state: dict[str, int], record: Record) -> tuple[dict[str, int], int, int]:
        if state["left"]:
            return {**state, "left": state["left"] - 1}, 0, 0
        return {"size": 2 * state["size"], "left": state["size"] - 1}, 1, 1


class Visits(ForwardContextFree):
    """Sessions with a gap of 2 seconds, which the watermark ends."""

    def observe(self, state: int | None, record: Record) -> tuple[int | None, int, int]:
        return record.time, int(state is None), 0

    def next_moment(self, state: int | None) -> int | None:
        return None if state is None else state + 2_000_001

    def at_moment(self, state: int, moment: w.Moment) -> tuple[int | None, int, list[int]]:
        return None, 0, [state + 2_000_000]


class BeforeHigh(ForwardContextAware):
    """The two tuples before one with a high value."""

    columns = ("v",)

    def observe(self, state: None, record: Record) -> tuple[None, list[tuple[int, int]]]:
        complete = (record["v"] or 0) > 80 and record.rank >= 2
        return state, [(record.rank - 2, record.rank)] if complete else []

    def keep_rank(self, state: None, rank: int) -> int:
        return max(0, rank - 2)


def journey(record: Record) -> tuple[int, int]:
    """From each flag to the next but one."""
    return int(bool(record["flag"])), int(bool(record["flag"]) and record.rank > 1)


def older_than_ten_seconds(buffer: Sequence[Record]) -> int:
    return sum(buffer[-1].time - record.time > 10_000_000 for record in buffer)


def three(buffer: Sequence[Record]) -> bool:
    return len(buffer) >= 3


ON_TIME: dict[str, Any] = {
    "tumbling": w.tumbling("10 seconds", offset="3 seconds"),
    "sliding": w.sliding("20 seconds", every="5 seconds"),
    "with_gaps": w.sliding("3 seconds", every="10 seconds"),
    "cumulate": w.cumulate("20 seconds", step="5 seconds"),
    "session": w.session("2 seconds"),
    "calendar_day": w.calendar("day", tz="Europe/Berlin"),
    "calendar_month": w.calendar("month", tz="Europe/Berlin", offset="30 seconds"),
    "fixed_band": w.fixed_band(START + dt.timedelta(seconds=10), "40 seconds"),
    "landmark": w.landmark(START + dt.timedelta(seconds=20), every="30 seconds"),
    "shifts": Shifts(),
}
"""Windows of which only slices cross the shuffle."""
CUT_BY_TUPLES: dict[str, Any] = {
    "with_empty": w.tumbling("4 seconds", emit_empty=True),
    "capped_session": w.session("3 seconds", max_length="10 seconds"),
    "session_of_gaps": w.session(parse("seconds(place % 4 + 1)"), max_length="20 seconds"),
    "count": w.count(5),
    "count_sliding": w.count(6, every=4, emit_partial=True),
    "km": w.tumbling(5, measure="km"),
    "km_sliding": w.sliding(7.5, every=2.5, measure="km"),
    "km_cumulate": w.cumulate(20, step=5, measure="km"),
    "km_session": w.session(1.5, measure="km"),
    "km_capped_session": w.session(2, max_length=6, measure="km"),
    "punctuation": w.punctuation("v > 75"),
    "km_punctuation": w.punctuation(mt.col("text") == "b", measure="km"),
    "slide_by_tuple": w.slide_by_tuple("10 seconds", every=3),
    "last": w.last(3, every="10 seconds"),
    "threshold": w.threshold("v > 40", min_count=2),
    "km_threshold": w.threshold("v > 60", measure="km"),
    "delta": w.delta("v", by=40),
    "boundary": w.boundary("x", step=0.5),
    "until": w.until(a.sum("v"), 200),
    "until_interpreted": w.until(a.mean("x"), 0.5),
    "discretize": w.discretize(journey, columns=["flag"]),
    "trigger": w.trigger(three, evict=older_than_ten_seconds),
    "timed_trigger": w.trigger(evict=older_than_ten_seconds, every="7 seconds"),
    "doubling": Doubling(),
    "visits": Visits(),
    "before_high": BeforeHigh(),
}
WINDOWS = {"slices cross": ON_TIME, "tuples cross": ON_TIME | CUT_BY_TUPLES}


def steps(seed: int, number: int, disorder: int = DISORDER) -> list[pa.Table]:
    """Micro-batches of tuples out of order, some at one time; the last one brings a new key as well."""
    rng = random.Random(seed)
    size = number * ROWS
    times = [rng.randrange(number * SECONDS * 10) * 100 for _ in range(size)]
    times.sort(key=lambda time: time + rng.randint(0, disorder * 1000))

    def perhaps(value: Any) -> Any:
        return rng.choice([value, value, value, value, None])

    values: dict[str, list[Any]] = {
        "ts": [START + dt.timedelta(milliseconds=time) for time in times],
        "k": [rng.choice(["a", "b", None, "d" if i >= size - ROWS else "c"]) for i in range(size)],
        "v": [perhaps(rng.randint(0, 100)) for _ in times],
        "small": [perhaps(rng.randint(0, 6)) for _ in times],
        "x": [perhaps(rng.normalvariate(0, 1)) for _ in times],
        "positive": [perhaps(rng.uniform(0.1, 9)) for _ in times],
        "price": [perhaps(Decimal(rng.randint(-99999, 99999)).scaleb(-2)) for _ in times],
        "text": [perhaps(rng.choice(["", "a", "b", "ä", "\U0001f600"])) for _ in times],
        "flag": [perhaps(rng.random() < 0.4) for _ in times],
        "day": [perhaps(dt.date(2026, 1, rng.randint(1, 31))) for _ in times],
        "km": [round(time / 1000 * 0.8 + rng.random(), 3) for time in times],
        "place": list(range(size)),
    }
    values["x"][7] = math.nan
    table = pa.table({name: pa.array(values[name], kind) for name, kind in TYPES.items()})
    return [table.slice(i * ROWS, ROWS) for i in range(number)]


def everything() -> mt.Query:
    """All aggregates."""
    windows = mt.windows(ten=w.tumbling("10 seconds"), smooth=w.sliding("20 seconds", every="5 seconds"))
    return windows.aggregate(**AGGREGATES).by("k").on("ts")


def everywhere(which: str, **options: Any) -> mt.Query:
    """All windows, with aggregates of which some depend on the order of tuples."""
    return (
        mt.windows(**WINDOWS[which])
        .aggregate(n=a.count(), total=a.sum("v"), mean=a.mean("x"), places=a.collect("place"))
        .by("k")
        .on("ts", **options)
    )


def frame_of(spark: SparkSession, tables: list[pa.Table]) -> DataFrame:
    return spark.createDataFrame(pa.concat_tables(tables)).repartition(3)


def streamed(
    files: Files, query: mt.Query, tables: list[pa.Table], checkpoint: Path, mode: str = "append"
) -> pa.Table:
    """What a stream writes of these micro-batches, with their numbers."""
    found: list[pa.Table] = []
    for table in tables:
        files.put(table)
    running = (
        files.frame()
        .repartition(3)
        .transform(query, plan="packed", tie="place")
        .writeStream.outputMode(mode)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(lambda frame, number: found.append(numbered(frame.toArrow(), number)))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    assert len(found) == len(tables) + 1  # at last the watermark moves without tuples
    return pa.concat_tables(found)


def embedded(query: mt.Query, tables: list[pa.Table], delay: int) -> pa.Table:
    """What the embedded operator gives, with the watermarks that Spark has in these micro-batches."""
    operator = query.operator()
    # Windows that tuples cut wait one microsecond longer: decision 42.
    wait = dt.timedelta(microseconds=any(isinstance(window, TupleDriven) for _, window in query.windows))
    found = []
    seen: list[dt.datetime] = []
    for number, table in enumerate([*tables, None]):
        if table is not None:
            found.append(numbered(operator.process(table).to_arrow(nested=True), number))
        if seen:
            watermark = max(seen) - dt.timedelta(seconds=delay)
            found.append(numbered(operator.advance(watermark - wait).to_arrow(nested=True), number))
        if table is not None:
            seen += table["ts"].to_pylist()
    return pa.concat_tables(part for part in found if part.num_rows)


def numbered(table: pa.Table, number: int) -> pa.Table:
    return table.append_column("batch", pa.array([number] * len(table), pa.int64()))


def compare(found: pa.Table, expected: pa.Table) -> None:
    """Row for row, in an order that no result decides."""
    assert found.column_names == expected.column_names
    assert len(expected) > 100
    names = [
        name
        for name in ("k", "window_name", "window", "revision", "kind", "batch")
        if name in found.schema.names
    ]
    sides = []
    for table in (found, expected):
        rows = [({name: row[name] for name in names}, row) for row in table.to_pylist()]
        sides.append(sorted(rows, key=lambda pair: repr(pair[0])))
    mine, theirs = sides
    assert [place for place, _ in mine] == [place for place, _ in theirs]
    wrong = [
        (place, name, one[name], other[name])
        for (place, one), (_, other) in zip(mine, theirs, strict=True)
        for name in found.column_names
        if not same(one[name], other[name], name in ROUNDED)
    ]
    assert wrong == []


def same(one: Any, other: Any, rounded: bool) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name], rounded) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(same(*pair, rounded) for pair in zip(one, other, strict=True))
    if isinstance(one, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) if rounded else one == other
    return bool(one == other)


def test_no_aggregate_is_left_out() -> None:
    made = {aggregate.constructor for aggregate in AGGREGATES.values()}
    # `spread` is a UserAggregate, which its `over` makes an aggregate; col is an input.
    assert made | {"UserAggregate", "col"} == set(a.__all__)


def test_no_window_is_left_out() -> None:
    used = WINDOWS["tuples cross"].values()
    made = {window.constructor for window in used if hasattr(window, "constructor")}
    made |= {base.__name__ for window in used for base in type(window).__mro__}
    assert set(w.__all__) - made == {"Moment", "Record"}  # what the user's windows see


@pytest.fixture(scope="module")
def bounded_aggregates(spark: SparkSession) -> pa.Table:
    return frame_of(spark, steps(1, 2)).transform(everything(), plan="packed", tie="place").toArrow()


def test_all_aggregates_of_a_bounded_frame(bounded_aggregates: pa.Table) -> None:
    compare(bounded_aggregates, everything().run(pa.concat_tables(steps(1, 2))).to_arrow(nested=True))


def test_all_aggregates_of_a_stream(
    spark: SparkSession, tmp_path: Path, bounded_aggregates: pa.Table
) -> None:
    tables = steps(1, 2)
    files = Files(spark, tmp_path / "in", COLUMNS, f"{DISORDER} seconds")
    found = streamed(files, everything(), tables, tmp_path / "checkpoint")
    compare(found, embedded(everything(), tables, DISORDER))
    # No tuple is late, so the windows that are complete are those of the whole table.
    end = max(pa.concat_tables(tables)["ts"].to_pylist()) - dt.timedelta(seconds=DISORDER)
    complete = pa.array(row["end"] <= end for row in bounded_aggregates["window"].to_pylist())
    compare(found.drop_columns("batch"), bounded_aggregates.filter(complete))


@pytest.mark.parametrize("which", WINDOWS)
def test_all_windows_of_a_bounded_frame(spark: SparkSession, which: str) -> None:
    tables = steps(2, 3)
    found = frame_of(spark, tables).transform(everywhere(which), plan="packed", tie="place").toArrow()
    assert set(found["window_name"].to_pylist()) == WINDOWS[which].keys()
    compare(found, everywhere(which).run(pa.concat_tables(tables)).to_arrow(nested=True))


# In the output mode update rows leave as they are: Spark replaces none by another.
@pytest.mark.parametrize(("which", "mode"), [("slices cross", "update"), ("tuples cross", "append")])
def test_all_windows_of_a_stream(spark: SparkSession, tmp_path: Path, which: str, mode: str) -> None:
    tables = steps(7, 3, disorder=120)  # here a tuple at a watermark closes windows
    query = everywhere(which, **LATE)
    files = Files(spark, tmp_path / "in", COLUMNS, f"{DELAY} seconds")
    found = streamed(files, query, tables, tmp_path / "checkpoint", mode)
    compare(found, embedded(query, tables, DELAY))
    assert set(found["window_name"].to_pylist()) == WINDOWS[which].keys()
    assert set(found["kind"].to_pylist()) == {"final", "update", "retract"}


@pytest.mark.parametrize(
    ("which", "early", "mode"),
    [
        ("slices cross", mt.each_batch(), "append"),
        ("tuples cross", mt.each_batch(), "update"),
        ("tuples cross", mt.every("20 seconds"), "append"),
    ],
    ids=["each batch, slices cross", "each batch, tuples cross", "every 20 seconds"],
)
def test_early_results_of_a_stream(
    spark: SparkSession, tmp_path: Path, which: str, early: Any, mode: str
) -> None:
    tables = steps(4, 3, disorder=120)  # here too
    query = everywhere(which, early=early, **LATE)
    files = Files(spark, tmp_path / "in", COLUMNS, f"{DELAY} seconds")
    found = streamed(files, query, tables, tmp_path / "checkpoint", mode)
    compare(found, embedded(query, tables, DELAY))
    assert set(found["kind"].to_pylist()) == {"early", "final", "update", "retract"}
