"""Cases that other implementations are known to get wrong, over whole columns."""

import math
import random
import statistics
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin import aggregates as a
from muntin.aggregates import arrays as columns_of
from muntin.aggregates.base import Aggregate, Groups, with_needs
from muntin.errors import DataError, QueryError, SnapshotError
from muntin.expressions import as_expr


def run(aggregate: Aggregate, *columns: Any, slices: int = 1, ordered: bool = True) -> Any:
    """The aggregate over all tuples, lifted into slices, some of them combined, and then a window of all."""
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
    size = len(arrays[0])
    bound = aggregate.bind(tuple(array.type for array in arrays))
    places = np.arange(size, dtype=np.int64)
    group = places * slices // max(size, 1)
    if not ordered:
        shuffled = np.random.default_rng(1).permutation(size)
        group, places = group[shuffled], places[shuffled]
        arrays = [array.take(pa.array(shuffled)) for array in arrays]
    g = Groups(slices, group, ordered, places, places, dict(zip(aggregate.inputs, arrays, strict=True)))
    pairs = np.arange(0, slices, 2)
    whole = np.array([0]), np.array([len(pairs)])
    lifted: dict[Any, Any] = {}
    paired: dict[Any, Any] = {}
    window: dict[Any, Any] = {}
    for p in with_needs(bound.partials):
        lifted[p] = p.lift(g, tuple(lifted[q] for q in p.needs))
        needs = [tuple(states[q] for q in p.needs) for states in (lifted, paired, window)]
        paired[p] = p.reduce(lifted[p], None, pairs, np.minimum(pairs + 2, slices), needs[0], needs[1])
        window[p] = p.window(paired[p], None, *whole, needs[1], needs[2])
    return bound.lower(tuple(window[p] for p in bound.partials))[0].as_py()


SHAPES = pytest.mark.parametrize(("slices", "ordered"), [(1, True), (7, True), (7, False)])


@SHAPES
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_long_runs(slices: int, ordered: bool, nulls: bool, dtype: str) -> None:
    rng = np.random.default_rng(7)
    numbers = rng.normal(1e3, 500, 5_000).astype(dtype)
    mask = rng.random(5_000) < 0.3 if nulls else None
    column = pa.array(numbers, mask=mask)
    kept = [value for value in column.to_pylist() if value is not None]
    want = {
        a.count("x"): len(kept),
        a.sum("x"): math.fsum(kept),
        a.mean("x"): math.fsum(kept) / len(kept),
        a.min("x"): min(kept),
        a.max("x"): max(kept),
        a.variance("x"): statistics.variance(kept),
        a.median("x"): statistics.median(kept),
        a.quantile("x", 0.1): float(np.quantile(kept, 0.1)),
        a.first("x", ignore_nulls=True): kept[0],
        a.last("x", ignore_nulls=True): kept[-1],
        a.arg_max("x", by="x"): max(kept),
        a.collect("x"): kept,
    }
    for aggregate, expected in want.items():
        columns = [column] * len(aggregate.inputs)
        if isinstance(aggregate, a.arg_max):
            aggregate = a.arg_max("x", by="y")
        found = run(aggregate, *columns, slices=slices, ordered=ordered)
        assert found == (expected if isinstance(expected, list) else pytest.approx(expected, rel=1e-12)), (
            aggregate
        )


@SHAPES
def test_variance_of_small_noise_around_a_large_value(slices: int, ordered: bool) -> None:
    noise = np.random.default_rng(3).integers(-3, 4, 10_000)
    for shift in (1e9, -1e10):
        found = run(a.variance("x"), noise + shift, slices=slices, ordered=ordered)
        assert found == pytest.approx(statistics.variance(noise.tolist()), rel=1e-8)
        integers = run(a.stddev("x"), noise + int(shift), slices=slices, ordered=ordered)
        assert integers == pytest.approx(statistics.stdev(noise.tolist()), rel=1e-8)


@SHAPES
def test_float_sums_lose_nothing(slices: int, ordered: bool) -> None:
    values = [1e16, 1.0, -1e16] * 1_000
    assert run(a.sum("x"), values, slices=slices, ordered=ordered) == 1_000.0
    assert run(a.mean("x"), values, slices=slices, ordered=ordered) == 1 / 3


@SHAPES
def test_float_sums_with_infinities(slices: int, ordered: bool) -> None:
    values = [1.0] * 100
    assert run(a.sum("x"), [*values, math.inf], slices=slices, ordered=ordered) == math.inf
    assert math.isnan(run(a.sum("x"), [-math.inf, *values, math.inf], slices=slices, ordered=ordered))


@SHAPES
def test_integer_sums_are_exact_and_never_wrap(slices: int, ordered: bool) -> None:
    most = 2**63 - 1
    # In parts it does not fit, as a whole it does: only the result counts.
    assert run(a.sum("x"), [most] * 10 + [-most] * 9 + [0], slices=slices, ordered=ordered) == most
    with pytest.raises(DataError, match='sum over "x" overflows'):
        run(a.sum("x"), [most] * 7 + [1], slices=slices, ordered=ordered)
    with pytest.raises(DataError, match="overflows"):
        run(a.sum("x"), [-most, -2], slices=2)
    assert run(a.mean("x"), [most] * 8, slices=slices, ordered=ordered) == float(most)


def test_sums_of_unsigned_integers() -> None:
    top = pa.array([2**64 - 1, 2**63], pa.uint64())
    assert run(a.mean("x"), top) == pytest.approx((2**64 + 2**63) / 2)
    assert run(a.max("x"), top) == 2**64 - 1
    with pytest.raises(DataError, match="overflows"):
        run(a.sum("x"), top)
    assert run(a.sum("x"), pa.array([2**63 - 2, 1], pa.uint64())) == 2**63 - 1


def test_decimals_are_exact() -> None:
    cents = pa.array([Decimal("0.10")] * 30, pa.decimal128(5, 2))
    assert run(a.sum("x"), cents) == Decimal("3.00")
    assert run(a.mean("x"), pa.array([Decimal("0.01"), Decimal("0.02"), Decimal("-0.05")])) == Decimal(
        "-0.006667"
    )
    most, least = Decimal(10**38 - 1), Decimal(1 - 10**38)
    assert run(a.sum("x"), pa.array([most, most, least], pa.decimal128(38)), slices=3) == most
    with pytest.raises(DataError, match=r"does not fit into decimal128\(38, 0\)"):
        run(a.sum("x"), pa.array([most, Decimal(1)], pa.decimal128(38)))
    assert run(a.min("x"), pa.array([most, least], pa.decimal128(38)), slices=2) == least


def test_extremes_of_negative_numbers_and_nan() -> None:
    assert run(a.max("x"), [-3, -2, -7], slices=3) == -2
    assert run(a.max("x"), [-math.inf, -math.inf], slices=2) == -math.inf
    assert math.isnan(run(a.max("x"), [1.0, math.nan, math.inf], slices=3))
    assert run(a.min("x"), [math.nan, math.inf], slices=2) == math.inf
    assert math.isnan(run(a.min("x"), [math.nan, None], slices=2))
    negative_nan = np.array([-math.nan, 1.0])
    assert math.isnan(run(a.max("x"), negative_nan))


def test_the_first_of_equals_wins() -> None:
    who, amount = ["a", "b", "c", "d"], [1, 5, 5, 1]
    assert run(a.arg_max("who", by="amount"), who, amount, slices=2, ordered=False) == "b"
    assert run(a.arg_min("who", by="amount"), who, amount, slices=2, ordered=False) == "a"
    assert run(a.arg_max("who", by="amount"), who, ["x", "y", "y", "x"], slices=4) == "b"
    assert run(a.arg_max("who", by="amount"), who, [0.0, -0.0, None, math.nan], slices=4) == "d"
    assert run(a.arg_max("who", by="amount"), [None, "b"], [2, 1]) is None


def test_the_first_of_equals_wins_among_the_best() -> None:
    who, amount = ["a", "b", "c", "d", "e"], [1, 5, 7, 5, 1]
    assert run(a.top_k("who", 3, by="amount"), who, amount, slices=2, ordered=False) == ["c", "b", "d"]
    assert run(a.top_k("who", 9, by="amount"), who, amount, slices=4) == ["c", "b", "d", "a", "e"]
    largest = run(a.top_k("amount", 2), [2.0, math.nan, math.inf], slices=3)
    assert math.isnan(largest[0])
    assert largest[1:] == [math.inf]


def test_nulls_are_values_of_first_last_and_nth_unless_ignored() -> None:
    column = pa.array([None, 1, 2, None], pa.int64())
    for aggregate, want, ignoring in ((a.first, None, 1), (a.last, None, 2)):
        assert run(aggregate("x"), column, slices=2) == want
        assert run(aggregate("x", ignore_nulls=True), column, slices=2) == ignoring
    assert [run(a.nth("x", n), column, slices=3) for n in (1, 2, 4, 5)] == [None, 2, None, None]
    assert run(a.nth("x", 2, ignore_nulls=True), column, slices=3) == 1
    assert run(a.m4("x"), column) == {"min": 1, "max": 2, "first": 1, "last": 2}
    with pytest.raises(QueryError, match=r"n must be a whole number from 1 on .*: got 0"):
        a.nth("x", 0)


def test_removing_a_part_of_a_collection_leaves_equal_items_of_the_rest() -> None:
    """The inverse of collect goes by place: of equal values the one that left is gone, no other."""
    collect = a.collect("x")
    early, late, other = (collect.lift(5, at=at) for at in ((1, 0), (3, 1), (2, 2)))
    whole = collect.combine(collect.combine(early, late), other)
    assert collect.invert(whole, early) == collect.combine(other, late)

    partial = collect.bind((pa.int64(),)).partials[0]
    places = np.arange(4)
    g = Groups(4, places, True, places, places, {collect.inputs[0]: pa.array([5, 7, 5, 5])})
    state = partial.lift(g, ())
    zero, one, four = np.array([0]), np.array([1]), np.array([4])
    all_rows, first = (partial.reduce(state, None, zero, hi, (), ()) for hi in (four, one))
    rest = partial.invert(all_rows, first)
    assert (rest.time.tolist(), rest.values.to_pylist()) == ([1, 2, 3], [7, 5, 5])


def test_distinct_values() -> None:
    floats = [0.0, math.nan, -0.0, math.nan, 1.0]
    assert run(a.count_distinct("x"), floats, slices=3) == 3
    assert run(a.count_distinct("x", "y"), floats, ["a", "b", "b", "b", None], slices=2) == 3
    assert run(a.collect_set("x"), ["b", "a", None, "b", "c"], slices=3, ordered=False) == ["b", "a", "c"]
    with pytest.raises(DataError, match="count_distinct needs values that can be compared"):
        a.count_distinct("x").bind((pa.list_(pa.int64()),))
    with pytest.raises(QueryError, match="of several columns none can be computed"):
        a.count_distinct("x", a.col("y") + 1).parameters()


@SHAPES
def test_ties_of_mode_go_to_the_smallest(slices: int, ordered: bool) -> None:
    assert run(a.mode("x"), [3, 9, 1, 9, 3, 1, 2], slices=slices, ordered=ordered) == 1
    assert run(a.mode("x"), ["b", "c", "a", "c", "b", "", ""], slices=slices, ordered=ordered) == ""


def test_histograms() -> None:
    found = run(a.histogram("x", bins=4), [0, 1, 1, 4, None, math.nan, math.inf], slices=3)
    assert [(one["start"], one["end"], one["count"]) for one in found] == [
        (0.0, 1.0, 1), (1.0, 2.0, 2), (2.0, 3.0, 0), (3.0, 4.0, 1),
    ]  # fmt: skip
    assert [one["count"] for one in run(a.histogram("x", bins=2), [7.0] * 9, slices=2)] == [0, 9]
    assert run(a.histogram("x", bins=2), [math.nan]) == []
    edges = run(a.histogram("x", edges=[0, 1, math.inf]), [-1, 0, 1, 1e300, math.nan], slices=5)
    assert [one["count"] for one in edges] == [1, 2]
    for wrong in ({}, {"bins": 2, "edges": [0, 1]}, {"bins": 0}, {"edges": [1]}, {"edges": [1, 1]}):
        with pytest.raises(QueryError, match=r"bins|edges"):
            a.histogram("x", **wrong)


def test_strings_order_by_code_point() -> None:
    assert run(a.max("x"), ["z", "ä", "\U0001f600", "￿", None], slices=5) == "\U0001f600"
    assert run(a.min("x"), pa.array([b"\xff", b"\x00", b""]), slices=2) == b""


def test_quantiles_count_multiplicity() -> None:
    assert run(a.median("x"), [1] * 7 + [100] * 6, slices=5) == 1.0
    assert run(a.quantile("x", 0.95), list(range(101)), slices=4, ordered=False) == 95.0
    # Counting each slice's 1 once would give 100: one 1 and one 100 per slice.
    assert run(a.quantile("x", 0.6), [1, 1, 1, 100] * 5, slices=5) == 1.0
    with pytest.raises(QueryError, match="q must be a number from 0 to 1: got 95"):
        a.quantile("x", 95)
    with pytest.raises(QueryError, match="q must be a list of numbers"):
        a.percentiles("x", 0.5)


def test_quantiles_of_many_slices_without_merging() -> None:
    """The selection by rank over random sorted runs, beside sorting everything."""
    rng = np.random.default_rng(11)
    for _ in range(200):
        values = rng.integers(0, int(rng.choice([3, 50, 10**6])), int(rng.integers(1, 400)))
        if rng.random() < 0.3:
            values = np.sort(values)  # slices that do not overlap
        qs = [0.0, 0.5, 1.0, float(rng.random())]
        found = run(a.percentiles("x", qs), values, slices=int(rng.integers(1, 40)))
        assert found == pytest.approx(np.quantile(values, qs).tolist(), rel=1e-12)


def test_aggregates_over_sorted_runs_share_them() -> None:
    sharing = [a.median("x"), a.quantile("x", 0.9), a.percentiles("x", [0.1]), a.mode("x")]
    sharing += [a.count_distinct("x"), a.histogram("x", bins=3)]
    assert len({partial for one in sharing for partial in one.bind((pa.float64(),)).partials}) == 1


def test_mean_and_variance_share_their_partials() -> None:
    mean, variance, total = (make("x").bind((pa.float64(),)) for make in (a.mean, a.variance, a.sum))
    assert set(mean.partials) == set(total.partials) < set(variance.partials)
    assert len(with_needs([*variance.partials, *mean.partials])) == 3


def test_invertibility_depends_on_the_type() -> None:
    assert a.sum("x").bind((pa.int64(),)).invertible
    assert not a.sum("x").bind((pa.float64(),)).invertible


def test_computed_inputs() -> None:
    computed = a.sum(a.col("price") * a.col("volume"))
    assert computed.parameters() == {"expression": "price * volume"}
    assert str(a.arg_max("who", by=as_expr("amount"))) == "arg_max(who, by=amount)"
    by = a.arg_max("who", by=a.col("amount") * 2)
    assert by.parameters() == {"column": "who", "by_expression": "amount * 2"}


def test_a_column_of_nulls_asks_for_a_type() -> None:
    with pytest.raises(DataError, match="nothing but nulls"):
        a.sum("x").bind((pa.null(),))
    assert run(a.last("x"), pa.nulls(3)) is None
    assert run(a.count("x"), pa.nulls(3)) == 0


def test_importing_loads_no_compiler() -> None:
    code = "import sys, muntin.aggregates; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- user-defined -------------------------------------------------------------------------------


def join(column: str = "x", **kwargs: Any) -> Aggregate:
    return a.aggregate(
        column, lift=str, combine=lambda p, q: p + q, commutative=False, name="joined", **kwargs
    )


def test_user_functions_run_in_event_time_order() -> None:
    letters = list("abcdefghij")
    assert run(join(), letters, slices=3, ordered=False) == "abcdefghij"
    assert run(join(), pa.array([None, "b"]), slices=2) == "b"
    assert run(join(), pa.array([None, None], pa.string())) is None


def test_folds_of_rows_in_order_are_reused() -> None:
    calls = []

    def combine(p: str, q: str) -> str:
        calls.append((p, q))
        return p + q

    aggregate = a.aggregate("x", lift=str, combine=combine, commutative=False, type=pa.string())
    partial = aggregate.bind((pa.string(),)).partials[0]
    places = np.arange(6)
    g = Groups(
        3, np.repeat(np.arange(3), 2), True, places, places, {aggregate.inputs[0]: pa.array(list("abcdef"))}
    )
    state = partial.lift(g, ())
    calls.clear()
    # Two rows after one another: one combine.
    found = partial.reduce(state, np.array([0, 1]), np.array([0]), np.array([2]), (), ())
    assert (found.folds.value.tolist(), calls) == (["abcd"], [("ab", "cd")])
    # In the wrong order: from their tuples.
    found = partial.reduce(state, np.array([1, 0]), np.array([0]), np.array([2]), (), ())
    assert found.folds.value.tolist() == ["abcd"]


@pytest.mark.parametrize(
    ("step", "kwargs"),
    [
        ("lift", {"lift": lambda v: 1 / v, "combine": lambda p, q: p}),
        ("combine", {"lift": float, "combine": lambda p, q: p / q}),
        ("lower", {"lift": float, "combine": lambda p, q: q, "lower": lambda p: 1 / p}),
    ],
)
@pytest.mark.parametrize("commutative", [True, False])
def test_failures_name_the_aggregate_and_the_values(step: str, kwargs: Any, commutative: bool) -> None:
    from muntin.errors import UserCodeError

    aggregate = a.aggregate("x", name="mine", commutative=commutative, type=pa.float64(), **kwargs)
    with pytest.raises(UserCodeError, match=rf'"mine": {step}\(.*0.*\) failed: ZeroDivisionError') as caught:
        run(aggregate, [5, 0])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_result_types_of_user_functions() -> None:
    def promise(p: object) -> bytes:
        raise NotImplementedError

    assert join().bind((pa.string(),)).type == pa.string()
    assert a.aggregate("x", lift=abs, combine=max).bind((pa.float64(),)).type == pa.float64()
    promised = a.aggregate("x", lift=abs, combine=max, lower=promise)
    assert promised.bind((pa.int64(),)).type == pa.binary()
    with pytest.raises(QueryError, match="give it, for instance type="):
        a.aggregate("x", lift=lambda v: v.nothing, combine=max).bind((pa.int64(),))
    with pytest.raises(QueryError, match="combine must be a function: got 3"):
        a.aggregate("x", lift=abs, combine=3)


def test_a_result_of_another_type_than_said() -> None:
    from muntin.errors import UserCodeError

    with pytest.raises(UserCodeError, match="a result is no int64"):
        run(a.aggregate("x", lift=str, combine=max, type=pa.int64()), ["a"])


def test_states_that_no_snapshot_can_hold() -> None:
    aggregate = a.aggregate("x", lift=lambda v: object(), combine=lambda p, q: p, type=pa.string())
    partial = aggregate.bind((pa.string(),)).partials[0]
    one = np.zeros(1, dtype=np.int64)
    state = partial.lift(Groups(1, one, True, one, one, {aggregate.inputs[0]: pa.array(["a"])}), ())
    with pytest.raises(SnapshotError, match="is a object; use numbers"):
        partial.to_arrow(state)
    with pytest.raises(SnapshotError, match="damaged"):
        partial.from_arrow({"count": pa.array([1]), "value": pa.array(['{"os": 1}'])})


def test_user_code_is_not_written_to_files() -> None:
    with pytest.raises(QueryError, match='"joined" cannot be written to a file'):
        join().parameters()


def test_decimals_become_the_floats_next_to_them() -> None:
    rng = random.Random(1)
    for digits, scale in ((15, 7), (18, 6), (30, 9), (5, -2)):
        values = [Decimal(rng.randrange(-(10**digits), 10**digits)).scaleb(-scale) for _ in range(500)]
        column = pa.array([*values, None], pa.decimal128(38 if digits > 20 else 20, scale))
        # Arrow's own cast is off by a digit in some of them.
        assert columns_of.floats(column)[:-1].tolist() == [float(value) for value in values]
    assert columns_of.floats(pa.array([Decimal("123456.789")], pa.decimal256(60, 20))).tolist() == [
        123456.789
    ]
