"""Sketches: their error bounds, the bytes that others read, and that no result depends on slices."""

import datetime as dt
import math
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.aggregates import sketches
from muntin.aggregates.base import Aggregate, Groups
from muntin.aggregates.sketches.bloom import FilterBits
from muntin.errors import DataError, MuntinError, QueryError
from muntin.expressions import as_expr

ds = pytest.importorskip("datasketches")  # it has no wheels for Python 3.14


def run(aggregate: Aggregate, column: Any, slices: int = 1, seed: int | None = None) -> Any:
    """The aggregate over a column, lifted into slices that are merged in two steps."""
    array = column if isinstance(column, pa.Array) else pa.array(column)
    bound = aggregate.bind((array.type,))
    (partial,) = bound.partials
    places = np.arange(len(array))
    group = places * slices // max(len(array), 1)
    if seed is not None:
        group = np.random.default_rng(seed).integers(0, slices, len(array))
    state = partial.lift(
        Groups(slices, group, seed is None, places, places, {aggregate.inputs[0]: array}), ()
    )
    cut = slices // 3
    half = partial.reduce(state, None, np.array([0, cut]), np.array([cut, slices]), (), ())
    whole = partial.window(half, np.array([1, 0]), np.array([0]), np.array([2]), (), ())
    return bound.lower((whole,))[0].as_py()


# --- error bounds: each over many streams with fixed seeds, with ample margin -----------------------


def test_error_of_approx_count_distinct() -> None:
    errors = []
    for trial in range(30):
        numbers = np.arange(20_000) + 10**6 * trial
        errors.append(run(a.approx_count_distinct("x", lg_k=10), numbers, slices=4) / 20_000 - 1)
    standard = 1.04 / math.sqrt(2**10)
    assert 0 < np.std(errors) < 1.5 * standard
    assert np.abs(errors).max() < 5 * standard


def test_error_of_theta() -> None:
    errors = []
    for trial in range(30):
        numbers = np.arange(20_000) + 10**6 * trial
        errors.append(run(a.theta("x", lg_k=10), numbers, slices=4) / 20_000 - 1)
    standard = 1 / math.sqrt(2**10 - 1)
    assert 0 < np.std(errors) < 1.5 * standard
    assert np.abs(errors).max() < 5 * standard
    assert run(a.theta("x", lg_k=10), np.arange(1_024) % 1_000, slices=7) == 1_000  # exact


def test_error_of_approx_quantile() -> None:
    rng = np.random.default_rng(5)
    worst = 0.0
    for q in (0.01, 0.25, 0.5, 0.95):
        for _ in range(10):
            values = rng.normal(size=20_000)
            found = run(a.approx_quantile("x", q), values, slices=5)
            assert found in values
            worst = max(worst, abs((values <= found).mean() - q))
    assert 0 < worst < 2 * 0.0133


def test_equally_frequent_unsigned_numbers_are_sorted_as_such() -> None:
    found = run(a.frequent_items("x"), pa.array([2**63, 0, 2**64 - 1, 5], pa.uint64()), slices=3)
    assert [one["item"] for one in found] == [0, 5, 2**63, 2**64 - 1]


def test_errors_of_frequent_items() -> None:
    rng = np.random.default_rng(6)
    values = np.minimum(rng.zipf(1.3, 50_000), 10**9)
    truth = dict(zip(*np.unique(values, return_counts=True), strict=True))
    found = run(a.frequent_items("x", lg_size=6), values, slices=6)
    for one in found:
        assert one["lower"] <= truth[one["item"]] <= one["upper"]
        assert one["upper"] - one["lower"] <= 3.5 / 2**6 * len(values)
    # Every value beyond the error is there, and the most frequent one comes first.
    error = 3.5 / 2**6 * len(values)
    assert {int(item) for item, count in truth.items() if count > 2 * error} <= {o["item"] for o in found}
    assert found[0]["item"] == max(truth, key=truth.__getitem__)


def test_errors_of_count_min() -> None:
    rng = np.random.default_rng(7)
    values = rng.zipf(1.2, 30_000) % 5_000
    items = list(range(1_000))
    found = run(a.count_min("x", items, error=0.01, confidence=0.99), values, slices=6)
    excess = np.array([one["count"] - int((values == one["item"]).sum()) for one in found])
    assert excess.min() >= 0
    assert (excess > 0.01 * len(values)).mean() <= 0.01


@pytest.mark.parametrize("make", [str, float, int])
def test_false_positives_of_bloom(make: Any) -> None:
    inside, outside = [make(i) for i in range(2_000)], [make(i) for i in range(2_000, 12_000)]
    bloom = run(a.bloom("x", size=2_000, error=0.02), inside, slices=5)
    assert all(sketches.might_contain(bloom, value) for value in inside)
    rate = np.mean([sketches.might_contain(bloom, value) for value in outside])
    assert 0.005 < rate < 1.5 * 0.02


# --- results do not depend on slices -----------------------------------------------------------------


@pytest.mark.parametrize(
    "aggregate",
    [
        a.approx_count_distinct("x", lg_k=8),
        a.approx_count_distinct("x", lg_k=12),
        a.theta("x", lg_k=8),
        a.theta("x", lg_k=8, result="bytes"),
        a.count_min("x", ["u7", "nobody"], error=0.1),
        a.bloom("x", size=50),
    ],
    ids=str,
)
def test_results_depend_on_the_values_only(aggregate: Aggregate) -> None:
    users = [f"u{i % 1_500}" for i in range(4_000)]
    found = [run(aggregate, users, slices, seed) for slices, seed in ((3, None), (5, 1), (40, 2), (300, 3))]
    assert all(one == found[0] for one in found)


def test_numbers_of_every_width_and_texts_of_every_form_hash_alike() -> None:
    for aggregate in (a.theta("x", result="bytes"), a.bloom("x", size=50)):
        numbers = [1, 0, 100]
        forms = [pa.array(numbers, type_) for type_ in (pa.int8(), pa.int64(), pa.uint16(), pa.uint64())]
        forms += [pa.array(numbers, pa.int32()).cast(pa.date32()), pa.array(numbers).cast(pa.time64("us"))]
        assert len({run(aggregate, form, 3) for form in forms}) == 1
        texts = pa.array(["b", "ä", "b"])
        others = [texts.cast(pa.large_string()), texts.dictionary_encode(), texts.cast(pa.string_view())]
        assert {run(aggregate, other, 3) for other in others} == {run(aggregate, texts, 3)}
        halves = pa.array([0.5, -0.0, math.nan], pa.float32())
        assert run(aggregate, halves, 3) == run(aggregate, [0.5, 0.0, -math.nan], 3)


@pytest.mark.parametrize("units", [
    [pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ns")],
    [pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.duration("ns")],
    [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    [pa.date32(), pa.date64()],
], ids=lambda units: str(units[0]))  # fmt: skip
def test_times_of_every_unit_hash_alike(units: list[pa.DataType]) -> None:
    times = pa.array([1, 0, 86_000], pa.int32() if units[0].bit_width == 32 else pa.int64()).cast(units[0])
    forms = [times.cast(type_) for type_ in units]
    for aggregate in (a.theta("x", result="bytes"), a.bloom("x", size=50)):
        assert len({run(aggregate, form, 3) for form in forms}) == 1
    for form in forms:
        bloom = run(a.bloom("x", size=50), form, 3)
        assert all(sketches.might_contain(bloom, value) for value in times.to_pylist())
        frequent = run(a.frequent_items("x"), form)
        assert [one["item"] for one in frequent] == sorted(form.to_pylist())


def test_nanoseconds_differ() -> None:
    close = pa.array([1_000, 1_001, 1_999, 2_000]).cast(pa.timestamp("ns"))
    assert run(a.theta("x"), close) == run(a.approx_count_distinct("x"), close) == 4


def test_the_empty_string_is_left_out() -> None:
    assert run(a.approx_count_distinct("x"), ["", "a"]) == 1
    assert run(a.theta("x"), ["", ""]) == 0
    assert not sketches.might_contain(run(a.bloom("x"), ["", "a"]), "")


# --- the bytes ------------------------------------------------------------------------------------------

WORDS = [f"word {i % 40}" for i in range(100)]


def test_bytes_are_read_by_datasketches() -> None:
    hll = ds.hll_sketch.deserialize(run(a.approx_count_distinct("x", result="bytes"), WORDS, 4))
    assert round(hll.get_estimate()) == 40
    theta = ds.compact_theta_sketch.deserialize(run(a.theta("x", result="bytes"), WORDS, 4))
    assert theta.get_estimate() == 40
    kll = ds.kll_doubles_sketch.deserialize(run(a.approx_quantile("x", 0.5, result="bytes"), range(99), 4))
    assert (kll.n, kll.get_quantile(0.5, True)) == (99, 49.0)
    frequent = ds.frequent_strings_sketch.deserialize(run(a.frequent_items("x", result="bytes"), WORDS, 4))
    assert (frequent.get_estimate("word 3"), frequent.total_weight) == (3, 100)
    numbers = run(a.frequent_items("x", result="bytes"), [2**40, -1, -1], 4)
    loaded = ds.frequent_items_sketch.deserialize(numbers, ds.PyLongsSerDe())
    assert [loaded.get_estimate(n) for n in (-1, 2**40)] == [2, 1]
    counts = ds.count_min_sketch.deserialize(run(a.count_min("x", result="bytes"), WORDS, 4))
    assert (counts.get_estimate("word 3"), counts.total_weight) == (3, 100)


def test_sketches_of_others_hash_the_same() -> None:
    """A sketch that the package itself was fed with equals ours."""
    theirs = ds.update_theta_sketch(12)
    for word in set(WORDS):
        theirs.update(word)
    assert run(a.theta("x", result="bytes"), WORDS, 4) == theirs.compact().serialize()
    union = ds.hll_union(12)
    union.update(ds.hll_sketch.deserialize(run(a.approx_count_distinct("x", result="bytes"), WORDS, 4)))
    for word in set(WORDS):
        union.update(word)
    assert round(union.get_estimate()) == 40


# Written by BloomFilter of datasketches-java 6.2.0: 640 bits, 3 hashes, seed 9001.
JAVA_TEXTS = bytes.fromhex(
    "040115000300000029230000000000000a00000000000000ffffffffffffffff0000000000000000000000002000001008000000"
    "001000040020000000000000000008000000000800040020000000000000000000000000000000000000000000000000000000000000"
    "080040000000"
)
JAVA_NUMBERS = bytes.fromhex(
    "040115000300000029230000000000000a00000000000000ffffffffffffffff0000000000000000000000000800000000000000"
    "000000200000040000002000000000800000002000000000000200000100000108000000400000000000000000000000000000080000"
    "006000000000"
)
TEXTS = ["ann", "bob", "ümläut €", "a longer string that has more than thirty-two bytes"]


def bits(column: pa.Array) -> bytes:
    x = as_expr("x")
    one = np.zeros(len(column), dtype=np.int64)
    state = FilterBits(x, 10, 3).lift(Groups(1, one, False, one, one, {x: column}), ())
    return bytes(state.tobytes())


def test_bloom_filters_are_those_of_java() -> None:
    assert bits(pa.array(TEXTS)) == JAVA_TEXTS[32:]
    numbers = np.frombuffer(bits(pa.array([1, -5, 2**62])), np.uint64)
    floats = np.frombuffer(bits(pa.array([1.5, math.nan])), np.uint64)
    assert (numbers | floats).tobytes() == JAVA_NUMBERS[32:]
    assert all(sketches.might_contain(JAVA_TEXTS, text) for text in TEXTS)
    assert [sketches.might_contain(JAVA_NUMBERS, value) for value in (1, -5, 1.5, 2, 2.5)] == [True] * 3 + [
        False
    ] * 2
    with pytest.raises(DataError, match="no Bloom filter"):
        sketches.might_contain(b"something", 1)


def test_sketches_of_nothing_can_be_read() -> None:
    nothing = pa.array([None, None], pa.string())
    assert ds.hll_sketch.deserialize(run(a.approx_count_distinct("x", result="bytes"), nothing)).is_empty()
    assert sketches.estimate(run(a.theta("x", result="bytes"), nothing)) == 0
    assert not sketches.might_contain(run(a.bloom("x"), nothing), "a")
    assert run(a.approx_quantile("x", 0.5), pa.array([None, math.nan], pa.float64())) is None


# --- in a query ---------------------------------------------------------------------------------------


def test_set_operations_on_filtered_inputs() -> None:
    table = pa.table(
        {
            "t": [1, 2, 3, 4, 11, 12],
            "user": ["ann", "bob", "ann", "eve", "eve", "eve"],
            "action": ["visit", "visit", "buy", "buy", "visit", "visit"],
        }
    )
    results = (
        mt.windows(ten=w.tumbling(10))
        .aggregate(
            visitors=a.theta("user", filter="action == 'visit'", result="bytes"),
            buyers=a.theta("user", filter="action == 'buy'", result="bytes"),
        )
        .on("t")
        .run(table)
    )
    visitors, buyers = results["visitors"], results["buyers"]
    assert sketches.estimate(visitors).to_pylist() == [2, 1]
    assert sketches.estimate(sketches.union(visitors, buyers)).to_pylist() == [3, 1]
    assert sketches.estimate(sketches.intersection(visitors, buyers)).to_pylist() == [1, 0]
    assert sketches.estimate(sketches.difference(visitors, buyers)).to_pylist() == [1, 1]
    assert sketches.union(pa.array([None], pa.binary()), buyers.slice(0, 1)).to_pylist() == [None]
    over_time = sketches.union(*buyers.to_pylist())
    assert sketches.estimate(over_time) == 2


def test_mistakes_in_set_operations_are_named() -> None:
    good = run(a.theta("x", result="bytes"), WORDS)
    with pytest.raises(DataError, match="is no theta sketch"):
        sketches.estimate(b"nothing")
    with pytest.raises(DataError, match="not a mixture"):
        sketches.union(good, pa.array([good]))
    with pytest.raises(DataError, match="at least one sketch"):
        sketches.intersection()


def test_memory_is_counted_and_survives_a_snapshot() -> None:
    query = mt.windows(ten=w.tumbling(10_000)).aggregate(
        n=a.approx_count_distinct("v"), q=a.approx_quantile("v", 0.5)
    )
    op = query.on("t").operator()
    op.process(pa.table({"t": np.arange(5_000), "v": np.arange(5_000)}))
    assert 4_096 < op.stats().state_bytes < 20_000
    (row,) = mt.Operator.restore(op.snapshot()).finish().to_pylist()
    assert abs(row["n"] - 5_000) < 400
    assert abs(row["q"] - 2_500) < 150


def test_dates_come_back_as_dates() -> None:
    days = [dt.date(2024, 2, 29)] * 2 + [dt.date(1969, 12, 31)]
    found = run(a.frequent_items("x"), days, 3)
    assert [(one["item"], one["count"]) for one in found] == [(days[0], 2), (days[2], 1)]


# --- mistakes -------------------------------------------------------------------------------------------


def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    for aggregate in (a.approx_quantile("x", 0.5), a.theta("x"), a.frequent_items("x")):
        with pytest.raises(
            MuntinError, match=rf"{aggregate.constructor} needs the package.*pip install 'muntin"
        ):
            aggregate.bind((pa.int64(),))
    assert run(a.bloom("x"), [1])  # this one needs nothing


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: a.approx_quantile("x", 2), "q must be a number from 0 to 1: got 2"),
        (lambda: a.approx_quantile("x", 0.5, k=3), "k must be a whole number from 8 to 65535: got 3"),
        (lambda: a.approx_count_distinct("x", 30), "lg_k must be a whole number from 7 to 21"),
        (lambda: a.theta("x", result="sketch"), 'result must be "estimate" or "bytes"'),
        (lambda: a.count_min("x"), "count_min needs items="),
        (lambda: a.count_min("x", [1.5]), "items must be a list of strings or whole numbers"),
        (lambda: a.count_min("x", [2**63]), "items must fit into 64 bits"),
        (lambda: a.count_min("x", ["a"], error=2), "error must be a number between 0 and 1: got 2"),
        (lambda: a.frequent_items("x", lg_size=1), "lg_size must be a whole number from 3 to 26"),
        (lambda: a.bloom("x", size=0), "size must be a whole number"),
        (lambda: a.bloom("x", error=1.0), "error must be a number between 0 and 1"),
    ],
)
def test_mistakes_are_named(make: Any, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        make()
    with pytest.raises(DataError, match="count_min needs items like its column"):
        a.count_min("x", ["a"]).bind((pa.int64(),))
