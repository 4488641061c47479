"""Floats near the largest one: means and what is made of them do not overflow where the result fits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

LARGEST = float(np.finfo(np.float64).max)
HUGE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e308, -1e308, LARGEST, -LARGEST, 1.7e308, 1.0, 0.0]),
)


def ways(aggregate: Any, values: list[float]) -> Iterator[Any]:
    """The value over all values: sliced at once, in several batches, out of order, and over many slices."""
    rows = pa.table({"t": range(len(values)), "v": pa.array(values, pa.float64()), "u": [1.0] * len(values)})
    query = mt.windows(all=w.tumbling(10_000)).aggregate(x=aggregate).on("t")
    yield query.run(rows)["x"].to_pylist()
    yield query.run(rows.take(list(range(len(values) - 1, -1, -1))))["x"].to_pylist()
    op = query.operator()
    for i in range(len(values)):
        op.process(rows.slice(i, 1).combine_chunks().to_batches()[0])
        op.flush()
    yield op.finish()["x"].to_pylist()
    parts = mt.windows(all=w.tumbling(10_000), one=w.tumbling(1)).aggregate(x=aggregate).on("t").run(rows)
    yield [row["x"] for row in parts.to_pylist() if row["window_name"] == "all"]


EQUAL = [[1e308] * n for n in (2, 3, 7, 10, 49, 100, 1000)] + [[-1.7e308] * 6, [LARGEST] * 33]


@pytest.mark.parametrize("values", EQUAL, ids=lambda v: f"{len(v)} times {v[0]}")
def test_equal_values_do_not_deviate(values: list[float]) -> None:
    for aggregate, expected in (
        (a.stddev("v"), 0.0),
        (a.variance("v"), 0.0),
        (a.variance("v", population=True), 0.0),
        (a.covariance("v", "u"), 0.0),
        (a.covariance("v", "v"), 0.0),
        (a.correlation("v", "u"), None),
        (a.correlation("v", "v"), None),
        (a.skewness("v"), None),
        (a.kurtosis("v"), None),
    ):
        for found in ways(aggregate, values):
            assert found == [expected], aggregate
    for found in ways(a.mean("v"), values):
        assert found == [pytest.approx(values[0], rel=1e-12)]


@given(st.lists(HUGE, min_size=1, max_size=80))
def test_a_mean_is_never_beyond_its_values(values: list[float]) -> None:
    exact = sum(map(Fraction, values)) / len(values)
    size = max(map(abs, values))
    for (found,) in ways(a.mean("v"), values):
        assert math.isfinite(found)
        assert abs(Fraction(found) - exact) <= Fraction(size) * Fraction(1, 10**12)


@given(st.lists(HUGE, min_size=1, max_size=80))
def test_a_sum_is_infinite_only_where_it_is_beyond_floats(values: list[float]) -> None:
    exact = sum(map(Fraction, values))
    size = Fraction(max(map(abs, values))) * len(values)
    for (found,) in ways(a.sum("v"), values):
        if math.isfinite(found):
            assert abs(Fraction(found) - exact) <= size * Fraction(1, 10**12)
        else:
            assert abs(exact) >= Fraction(LARGEST) * Fraction(999, 1000)
            assert (found > 0) == (exact > 0)


def test_infinities_and_nan_among_the_values_stay_what_they_are() -> None:
    inf, nan = math.inf, math.nan
    for values, expected in (
        ([1e308, 1e308, inf], inf),
        ([inf, 1e308, 1e308], inf),
        ([1e308, 1e308, -inf], -inf),
        ([inf, -inf], nan),
        ([1e308, 1e308, nan], nan),
        ([nan, 1e308, 1e308], nan),
    ):
        for aggregate in (a.mean("v"), a.sum("v")):
            for found in ways(aggregate, values):
                assert found == [pytest.approx(expected, nan_ok=True)], (aggregate, values)


def test_what_is_beyond_floats_is_infinite_or_nan_and_never_a_wrong_number() -> None:
    apart = [1e308, -1e308, 5e307]
    for aggregate, expected in ((a.stddev("v"), math.inf), (a.variance("v"), math.inf)):
        for found in ways(aggregate, apart):
            assert found == [expected]
    for aggregate in (a.skewness("v"), a.kurtosis("v"), a.correlation("v", "v"), a.correlation("v", "t")):
        for found in ways(aggregate, apart):
            assert math.isnan(found[0]), aggregate
    for found in ways(a.geometric_mean("v"), [1e308] * 20):
        assert found == [pytest.approx(1e308)]


def test_a_snapshot_keeps_a_sum_beyond_floats() -> None:
    query = mt.windows(all=w.tumbling(100)).aggregate(m=a.mean("v"), s=a.stddev("v")).on("t")
    op = query.operator()
    op.process({"t": [1, 2, 3], "v": [1e308] * 3})
    op = mt.Operator.restore(op.snapshot())
    op.process({"t": [4, 5], "v": [1e308] * 2})
    assert op.finish().to_arrow().select(["m", "s"]).to_pylist() == [{"m": 1e308, "s": 0.0}]
