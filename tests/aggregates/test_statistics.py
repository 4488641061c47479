"""Statistics where the obvious formulas fail: large means, equal values, integers beyond floats."""

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError, QueryError

SHAPES = pytest.mark.parametrize("lateness", [0, 7], ids=["ordered", "shuffled"])


def run(aggregate: Any, lateness: int = 0, **columns: Any) -> Any:
    """The aggregate over all tuples, cut into many slices that one window joins."""
    table = pa.table({"at": np.arange(len(next(iter(columns.values())))), **columns})
    if lateness:
        table = table.take(pa.array(np.random.default_rng(lateness).permutation(len(table))))
    query = mt.windows(all=w.tumbling(10**6), seven=w.tumbling(7)).aggregate(x=aggregate).on("at")
    found = query.run(table).to_pylist()
    return next(row["x"] for row in found if row["window_name"] == "all")


@SHAPES
@pytest.mark.parametrize("far", [0, 10**9, 2**40, 2**60, -(2**62)])
def test_integers_around_a_large_value(lateness: int, far: int) -> None:
    noise = [int(x) for x in np.random.default_rng(5).integers(-4, 5, 500)]
    skewed = [x * x for x in noise]
    x, y = ([far + value for value in values] for values in (skewed, noise))
    assert run(a.variance("x"), lateness, x=x) == pytest.approx(statistics.variance(skewed), rel=1e-13)
    assert run(a.stddev("x", population=True), lateness, x=x) == pytest.approx(
        statistics.pstdev(skewed), rel=1e-13
    )
    d = [Fraction(value) - Fraction(sum(skewed), 500) for value in skewed]
    moments = {k: float(sum(x**k for x in d)) for k in (2, 3, 4)}
    skewness = math.sqrt(500) * moments[3] / moments[2] ** 1.5
    assert run(a.skewness("x"), lateness, x=x) == pytest.approx(skewness, rel=1e-12)
    assert run(a.kurtosis("x"), lateness, x=x) == pytest.approx(
        500 * moments[4] / moments[2] ** 2 - 3, rel=1e-12
    )
    assert run(a.covariance("x", "y"), lateness, x=x, y=y) == pytest.approx(
        statistics.covariance(skewed, noise), rel=1e-10
    )
    assert run(a.correlation("x", "y"), lateness, x=x, y=y) == pytest.approx(
        statistics.correlation(skewed, noise), rel=1e-10
    )


def test_integers_from_end_to_end() -> None:
    ends = [-(2**63), 2**63 - 1] * 20
    assert run(a.variance("x", population=True), x=ends) == pytest.approx(2.0**126, rel=1e-15)
    unsigned = pa.array([0, 2**64 - 1] * 20, pa.uint64())
    assert run(a.variance("x", population=True), x=unsigned) == pytest.approx(2.0**126, rel=1e-15)
    close = pa.array([2**64 - 1 - k % 3 for k in range(30)], pa.uint64())
    assert run(a.variance("x", population=True), x=close) == pytest.approx(2 / 3, rel=1e-15)


@SHAPES
def test_small_noise_around_a_large_float(lateness: int) -> None:
    noise = np.random.default_rng(3).normal(0, 1e-3, 1_000)
    values = 1e9 + noise
    exact = [Fraction(float(value)) for value in values]
    middle = sum(exact) / len(exact)
    assert run(a.variance("x"), lateness, x=values) == pytest.approx(
        float(sum((x - middle) ** 2 for x in exact) / 999), rel=1e-12
    )


def test_neighbouring_floats() -> None:
    values = [1e9, math.nextafter(1e9, 2e9)] * 50
    assert run(a.variance("x", population=True), x=values) == pytest.approx(
        (math.ulp(1e9) / 2) ** 2, rel=1e-12
    )


@SHAPES
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1, -7e-300, 5])
def test_equal_values_do_not_deviate(lateness: int, value: float) -> None:
    x, y = [value] * 101, list(range(101))
    assert run(a.variance("x"), lateness, x=x) == 0.0
    assert run(a.stddev("x"), lateness, x=x) == 0.0
    assert run(a.skewness("x"), lateness, x=x) is None
    assert run(a.kurtosis("x"), lateness, x=x) is None
    assert run(a.correlation("x", "y"), lateness, x=x, y=y) is None


@pytest.mark.parametrize("make", [a.skewness, a.kurtosis, a.variance, a.stddev])
def test_nan_and_infinity(make: Callable[..., Any]) -> None:
    for value in (math.nan, math.inf):
        assert math.isnan(run(make("x"), x=[1.0, value, 2.0]))


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_powers_beyond_floats(scale: float) -> None:
    values = [0.0, 3 * scale, scale]
    assert run(a.variance("x"), x=values) == pytest.approx(scale * scale * 7 / 3, rel=1e-15)
    assert math.isnan(run(a.kurtosis("x"), x=values))
    interpreted = a.kurtosis("x")
    partial = interpreted.identity()
    for value in values:
        partial = interpreted.combine(partial, interpreted.lift(value))
    assert math.isnan(interpreted.lower(partial))


def test_correlation_of_lines() -> None:
    x = list(range(50))
    assert run(a.correlation("x", "y"), x=x, y=[3 * value + 1 for value in x]) == pytest.approx(1, rel=1e-15)
    assert run(a.correlation("x", "y"), x=x, y=[-value * 1e100 for value in x]) == pytest.approx(-1.0)


def test_tuples_without_both_values_are_skipped() -> None:
    x, y = [1, None, 3, 100, 5], [2.0, 50.0, 6.0, None, 7.0]
    assert run(a.covariance("x", "y"), x=x, y=y) == pytest.approx(statistics.covariance([1, 3, 5], [2, 6, 7]))
    assert run(a.covariance("x", "y"), x=x[:2], y=y[:2]) is None
    assert run(a.covariance("x", "y", population=True), x=x[:2], y=y[:2]) == 0.0
    assert run(a.weighted_mean("x", weight="y"), x=x, y=y) == pytest.approx((2 + 18 + 35) / 15)


def test_geometric_mean_of_zeros_and_negatives_is_null() -> None:
    assert run(a.geometric_mean("x"), x=[2, 8]) == pytest.approx(4.0)
    assert run(a.geometric_mean("x"), x=[2, 8, 0]) is None
    assert run(a.geometric_mean("x"), x=[-2.0, -8.0]) is None
    assert run(a.geometric_mean("x"), x=[2.0, 8.0, -0.0, None]) is None
    assert run(a.geometric_mean("x", filter="x > 0"), x=[2, 8, 0, -5]) == pytest.approx(4.0)
    assert run(a.geometric_mean("x"), x=[1e300] * 50) == pytest.approx(1e300)
    assert math.isnan(run(a.geometric_mean("x"), x=[1.0, math.nan]))


def test_volume_weighted_average_price() -> None:
    assert run(a.weighted_mean("price", weight="volume"), price=[10.0, 20.0], volume=[1, 3]) == 17.5
    assert run(a.weighted_mean("price", weight="volume"), price=[10.0, 20.0], volume=[0, 0]) is None
    assert run(a.weighted_mean("price", weight="volume"), price=[10.0, 20.0], volume=[2, -2]) is None


def test_mistakes_of_extremes_and_means() -> None:
    assert run(a.max("x"), x=[-5, -3, -9]) == -3
    assert run(a.max("x"), x=[-5.0, -math.inf]) == -5.0
    assert run(a.min("x"), x=[math.inf, math.nan]) == math.inf
    assert run(a.mean("x"), x=[-7, -8]) == -7.5
    assert run(a.max_count("x"), x=[-5, -3, -9, -3]) == 2
    assert run(a.max_count("x"), x=[1.0, math.nan, math.nan]) == 2
    assert run(a.min_count("x"), x=[-(2**63), None, -(2**63)]) == 2


def test_conditions() -> None:
    b = pa.array([True, None, False, True])
    assert run(a.count_if("b"), b=b) == 2
    assert run(a.count_if(mt.col("x") > 2), x=[1, 3, None, 4]) == 2
    assert (run(a.every("b"), b=b), run(a.some("b"), b=b)) == (False, True)
    nulls = pa.array([None], pa.bool_())
    assert (run(a.every("b"), b=nulls), run(a.some("b"), b=nulls)) == (None, None)
    with pytest.raises(DataError, match='count_if needs a condition: "x" is int64'):
        run(a.count_if("x"), x=[1])


def test_a_classifier_per_window() -> None:
    rng = np.random.default_rng(9)
    label = ["cat", "mouse", None] * 100
    length = rng.normal([45, 9, 500] * 100, [5, 1, 1] * 100)
    width = rng.normal([10, 2, 500] * 100, 1)
    species = a.naive_bayes("label", columns=["length", "width"])
    model = run(species, 3, label=label, length=length, width=width)
    assert [one["label"] for one in model] == ["cat", "mouse"]
    for k, one in enumerate(model):
        assert one["count"] == 100
        for column, values in enumerate((length, width)):
            assert one["means"][column] == pytest.approx(values[k::3].mean(), rel=1e-12)
            assert one["variances"][column] == pytest.approx(values[k::3].var(), rel=1e-12)
    cases = list(zip(label, length, width, strict=True))
    right = sum(species.classify(model, *values) == name for name, *values in cases if name)
    assert right >= 198
    assert species.classify([], 1, 2) is None
    with pytest.raises(QueryError, match="columns must be a list"):
        a.naive_bayes("label", columns="length")


def test_bits() -> None:
    small = pa.array([-1, 5, None], pa.int8())
    for make, found in ((a.bit_and, 5), (a.bit_or, -1), (a.bit_xor, -6)):
        assert run(make("x"), x=small) == found
    large = pa.array([2**64 - 1, 2**63], pa.uint64())
    for make, found in ((a.bit_and, 2**63), (a.bit_or, 2**64 - 1), (a.bit_xor, 2**63 - 1)):
        assert run(make("x"), x=large) == found
