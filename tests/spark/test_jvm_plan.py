"""Which plan runs, why, and what `explain` says about it."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import QueryError

TUMBLING = mt.windows(ten=w.tumbling("10 seconds"))
SLIDING = mt.windows(slide=w.sliding("1 minute", every="1 second"), visit=w.session("5 seconds"))
TOTAL = {"total": a.sum("v")}
COLUMNS = "k string, ts timestamp, v long, f double, m map<string, int>"


@pytest.fixture(scope="module")
def bounded(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], COLUMNS)


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("empty")
    return spark.readStream.schema(COLUMNS).parquet(str(folder)).withWatermark("ts", "1 second")


def query(windows: mt.Query = SLIDING, **aggregates: object) -> mt.Query:
    return windows.aggregate(**(aggregates or TOTAL)).by("k").on("ts")  # type: ignore[arg-type]


BOUNDED = [
    (query().on("ts", early=mt.each_batch()), "early results"),
    (query().on("ts", late="route"), "late tuples are routed"),
    (query().on("ts", bad="route"), "bad tuples are routed"),
    (query(mt.windows(five=w.count(5), ten=w.tumbling("10 s"))), "windows follow the tuples.*five"),
    (query(mt.windows(ten=w.tumbling(10, measure="v"))), "a measure.*ten"),
    (query(mt.windows(since=w.landmark("2024-01-01", "1 hour"))), "newest tuple of all keys.*since"),
    (query(mt.windows(ten=w.tumbling("10 s", emit_empty=True))), "empty windows are emitted .ten."),
    (query(mt.windows(day=w.calendar("day", tz="Asia/Tokyo"))), "not in the zone of the session .day."),
    (query(mt.windows(day=w.calendar("day", offset="6 hours"))), "have an offset"),
    (query(p=a.quantile("v", 0.5), n=a.count()), "Spark has no such aggregate.*.p."),
    (query(e=a.sum(mt.col("v") * mt.col("f"))), "expressions.*.e."),
    (query(s=a.stddev("v")), "deviations of several slices.*.s."),
]
STREAMING = [
    (query(), "a single tumbling window only"),
    (query(TUMBLING).on("ts", allowed_lateness="1 minute"), "late tuples are allowed"),
    (query(TUMBLING).on("ts", late="route"), "late tuples are routed"),
    (query(TUMBLING).on("ts", idle_after="1 minute"), "a silent stream"),
    (query(TUMBLING).on("ts", early=mt.each_batch()), "early results"),
    (query(TUMBLING, first=a.first("v")), "Spark has no such aggregate.*first"),
]


@pytest.mark.parametrize(("refused", "reason"), BOUNDED, ids=[reason[:25] for _, reason in BOUNDED])
def test_what_the_jvm_cannot_do_runs_packed(bounded: DataFrame, refused: mt.Query, reason: str) -> None:
    with pytest.raises(QueryError, match=f'plan="jvm" cannot run this query: .*{reason}'):
        bounded.transform(refused, plan="jvm")
    assert "plan: packed groups in Python workers" in str(refused.explain(bounded, verbose=True))


@pytest.mark.parametrize(("refused", "reason"), STREAMING, ids=[reason[:25] for _, reason in STREAMING])
def test_what_window_cannot_do_runs_packed(stream: DataFrame, refused: mt.Query, reason: str) -> None:
    with pytest.raises(QueryError, match=f'plan="jvm" cannot run this query: .*{reason}'):
        stream.transform(refused, plan="jvm")


def test_a_stream_without_a_watermark_is_not_handed_over(stream: DataFrame) -> None:
    bare = stream.selectExpr("k", "timestampadd(SECOND, 0, ts) as ts", "v")
    with pytest.raises(QueryError, match="no watermark"):
        bare.transform(query(TUMBLING), plan="jvm")


def test_unchecked_arithmetic_runs_packed(spark: SparkSession, bounded: DataFrame) -> None:
    computed = query(TUMBLING, twice=a.sum(mt.col("v") * 2))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(QueryError, match=r"would hide an overflow \(twice\)"):
            bounded.transform(computed, plan="jvm")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    bounded.transform(computed, plan="jvm")


def test_a_plan_that_there_is_not(bounded: DataFrame) -> None:
    with pytest.raises(QueryError, match=r'plan must be .*: got \'packd\'. Did you mean "packed"'):
        bounded.transform(query(), plan="packd")


def test_explain_tells_the_steps(bounded: DataFrame, stream: DataFrame) -> None:
    sliced = str(query().explain(bounded, verbose=True))
    for words in (
        "plan: Spark's own operators in the JVM",
        "tuples are aggregated by (k, slice)",
        "no tuples",
        "longer silences end sessions",
        "combined into blocks",
        "spark.sql.shuffle.partitions: 2",
    ):
        assert words in sliced
    assert "slice" not in str(query(TUMBLING).explain(bounded, verbose=True)).partition("settings")[0]
    handed = str(query(TUMBLING).explain(stream, verbose=True))
    assert "Spark's own window()" in handed
    assert 'plan="packed" forces Python workers' in handed
    packed = str(query(TUMBLING).explain(stream, plan="packed", verbose=True))
    assert 'not the JVM: plan="packed" says so' in packed
    assert "one stateful call per key group and micro-batch; 2 key groups of k" in packed
    assert "slices, packed" in packed
    counted = str(query(mt.windows(five=w.count(5))).explain(stream, verbose=True))
    assert "tuples, packed" in counted
    assert "keep tuples? yes" in counted


def test_explain_wants_a_frame_and_nothing_of_the_embedded_engine(bounded: DataFrame) -> None:
    with pytest.raises(QueryError, match="got a dict"):
        query().explain({"ts": []}, verbose=True)
    with pytest.raises(QueryError, match="leave them out"):
        query().explain(bounded, store="fiba", verbose=True)
