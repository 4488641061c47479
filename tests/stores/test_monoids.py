"""Monoids: laws of the named ones, exact sums, compiled user functions, and what is refused."""

from __future__ import annotations

import math
import operator
import statistics
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from muntin.errors import DataError, QueryError
from muntin.stores import DabaLite, FiBA, FlatFAT, Lazy, Prefix, TwoStacksLite, monoid, named
from muntin.stores.monoids import NAMES

VALUES = [3.0, -1.5, 8.0, 8.0, 0.25, -1.5, 2.0]


PAIRS = ("arg_min", "arg_max")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_laws(name: str, dtype: str) -> None:
    it = named(name, dtype).python
    numbers = [abs(int(v)) + 1 if dtype == "int64" else abs(v) for v in VALUES]
    lifted = [it.lift((v, i) if name in PAIRS else v) for i, v in enumerate(numbers)]
    p, q, r = lifted[:3]
    left, right = it.combine(it.combine(p, q), r), it.combine(p, it.combine(q, r))
    assert left == pytest.approx(right)
    for x in (*lifted, left):
        assert it.combine(it.identity, x) == x
        assert it.combine(x, it.identity) == x
    if it.invert is not None:
        assert it.invert(it.combine(p, q), p) == q


def test_answers() -> None:
    expected = {
        "sum": sum(VALUES), "count": 7, "min": -1.5, "max": 8.0, "mean": statistics.mean(VALUES),
        "variance": statistics.variance(VALUES), "stddev": statistics.stdev(VALUES),
        "first": 3.0, "last": 2.0, "min_count": 2, "max_count": 2,
    }  # fmt: skip
    for name, answer in expected.items():
        store = Lazy(name, compiled=False)
        empty = {"sum": 0, "max": -math.inf, "min": math.nan}.get(name, 0 if "count" in name else None)
        assert store.query() == empty or (name == "min" and math.isnan(store.query()))
        store.insert_many(range(7), VALUES)
        assert store.query() == pytest.approx(answer)
    growth = Lazy("geometric_mean", compiled=False)
    growth.insert_many(range(3), [1.0, 10.0, 100.0])
    assert growth.query() == pytest.approx(10.0)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("compiled", [True, False])
def test_arg_max_is_the_first_of_equals(dtype: str, compiled: bool) -> None:
    entries = [(3, 1), (9, 2), (9, 3), (-4, 4), (-4, 5)]
    most, least = (FlatFAT(name, dtype=dtype, compiled=compiled) for name in ("arg_max", "arg_min"))
    for store in (most, least):
        assert store.query() is None
        store.insert_many(range(5), entries)
        store.insert(5, (0, 6))
    assert (most.query(), least.query()) == (2, 4)
    assert (most.query_range(2, 4), least.query_range(4, 6)) == (3, 5)
    if dtype == "float64":
        most.insert(6, (math.nan, 7))
        assert most.query() == 7


@pytest.mark.parametrize("kind", [FiBA, FlatFAT, TwoStacksLite, DabaLite])
def test_bloom_filters_contain_all_values_of_the_window(kind: type[Any]) -> None:
    window = kind("bloom")
    assert window.query().count == 0
    for t in range(400):
        window.insert(t, t * 7)
        if t >= 200:
            window.evict()
    seen = window.query()
    assert all(t * 7 in seen for t in range(200, 400))
    assert sum(t * 7 + 1 in seen for t in range(2_000)) <= 20
    assert seen.count == pytest.approx(200, rel=0.05)
    assert 7.0 * 300 in seen
    assert not window.compiled


def test_the_answer_over_no_entries_is_the_identity() -> None:
    for kind in (FiBA, FlatFAT, Lazy):
        store = kind("sum", dtype="int64", compiled=False)
        assert (store.query(), store.query_range(0, 5)) == (0, 0)
        store.insert(7, 3)
        assert store.query_range(0, 5) == 0
        store.evict(5)
        store.evict(7)
        assert store.query() == 0
    assert Lazy("max", dtype="int64", compiled=False).query() == -(2**63)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_pinned_capacity_is_never_changed(compiled: bool) -> None:
    store = FlatFAT("max", capacity=12, compiled=compiled)
    assert store.capacity == 16
    for t in range(16):
        store.insert(t, t)
    with pytest.raises(DataError, match="pinned capacity 16 is full; evict first"):
        store.insert(16, 99)
    store.evict(5)
    store.insert(16, 2)  # compacts
    assert store.evict_before(16) == 15
    assert (store.query(), store.capacity) == (2.0, 16)
    store.check_invariants()
    with pytest.raises(QueryError, match="capacity must be a positive integer: got 0"):
        FlatFAT("max", capacity=0)


def test_bytes_are_those_of_the_arrays() -> None:
    store = FlatFAT("max", capacity=1024)
    assert 3 * 8 * 1024 <= store.nbytes <= 3 * 8 * 1024 + 2048  # times, and twice as many partials; holes
    tree = FiBA("max", arity=4)
    before = tree.nbytes
    tree.insert_many(range(1_000), [1.0] * 1_000)
    assert tree.nbytes > max(before, 16 * 1_000)
    words = Lazy(monoid(lambda p, q: p + q, identity=""))
    before = words.nbytes
    words.insert(1, "x" * 5_000)
    assert words.nbytes >= before + 5_000


def test_times_of_any_ordered_type() -> None:
    floats = FiBA("sum", times="float64", compiled=False)
    floats.insert_many([0.5, -1.25, math.inf, -0.0, 0.0], [1.0, 2.0, 4.0, 8.0, 16.0])
    assert floats.times() == [-1.25, 0.0, 0.5, math.inf]
    assert floats.query_range(-1.25, 0.5) == 26.0
    assert [t for t, _ in floats] == floats.times()
    moments = Lazy("sum", times="datetime64[us]", compiled=False)
    moments.insert(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 2.0)
    moments.insert(np.datetime64("2026-01-01"), 3.0)
    assert moments.times() == [np.datetime64("2026-01-01", "us")]
    assert moments.query() == 5.0
    names = FiBA("max", times="object")
    assert not names.compiled
    names.insert_many(["b", "a"], [1.0, 2.0])
    assert names.query_range("a", "b") == 2.0
    pairs = FlatFAT("sum", times="object")
    pairs.insert_many([(1, "x"), (1, "y"), (2, "a")], [1.0, 2.0, 4.0])
    assert (pairs.prefix((2, "")), pairs.suffix((1, "y"))) == (3.0, 6.0)


def test_refused_times() -> None:
    for times, t, message in [
        ("int64", 1.5, r'times of this store are integers: got 1.5; times="float64"'),
        ("float64", math.nan, "NaN"),
        ("datetime64[us]", 5, r'times of this store are "datetime64\[us\]": got 5'),
        ("datetime64[us]", np.datetime64("NaT"), "NaT"),
    ]:
        store = FiBA("sum", times=times, compiled=False)
        with pytest.raises(DataError, match=message):
            store.insert(t, 1.0)
        with pytest.raises(DataError, match=message):
            store.insert_many([t], [1.0])
    with pytest.raises(DataError, match=r"integers: got 1\.5"):
        FiBA("sum").insert_many([1.5, 2.5], [1.0, 2.0])
    with pytest.raises(QueryError, match='got "float"'):
        FiBA("sum", times="float")
    with pytest.raises(QueryError, match='times="object" is interpreted'):
        FiBA("sum", times="object", compiled=True)


def test_nan_is_the_largest_value() -> None:
    for name, values, answer in [
        ("max", [1.0, math.nan, 2.0], math.nan),
        ("min", [math.nan, 1.0, 2.0], 1.0),
        ("min", [math.nan], math.nan),
        ("max", [-math.inf], -math.inf),
    ]:
        store = TwoStacksLite(name, compiled=False)
        store.insert_many(range(len(values)), values)
        assert store.query() == answer or (math.isnan(answer) and math.isnan(store.query()))


@pytest.mark.parametrize("compiled", [True, False])
def test_integer_sums_do_not_wrap(compiled: bool) -> None:
    store = Prefix("sum", dtype="int64", compiled=compiled)
    big = 2**63 - 1
    store.insert_many([1, 2, 3], [big, big, -big])
    assert store.query() == big
    with pytest.raises(DataError, match="does not fit into 64 bits"):
        store.query_range(1, 3)
    store.evict()
    assert store.query() == 0


def test_prefix_sums_of_decimals() -> None:
    cents = monoid(operator.add, identity=Decimal(0), invert=operator.sub)
    store = Prefix(cents)
    store.insert_many(range(10_000), [Decimal("0.1")] * 10_000)
    assert store.query_range(3, 9_003) == Decimal("900.0")
    store.evict_before(9_999)
    assert store.query() == Decimal("0.1")


def test_user_functions_are_compiled_if_they_can_be() -> None:
    affine = monoid(
        lambda p, q: (p[0] * q[0] % 997, (p[1] * q[0] + q[1]) % 997),
        identity=(1, 0),
        lift=lambda v: (v, v + 1),
        columns=("int64", "int64"),
        input="int64",
    )
    fast, slow = DabaLite(affine), DabaLite(affine, compiled=False)
    assert (fast.compiled, slow.compiled) == (True, False)
    for t in range(200):
        for store in (fast, slow):
            store.insert(t, t % 31)
            if t > 20:
                store.evict()
        assert fast.query() == slow.query()
    assert fast.combines == slow.combines


def test_user_functions_that_cannot_be_compiled() -> None:
    def join(p: float, q: float) -> float:
        return float(f"{p + q}")

    odd = monoid(join, identity=0.0, columns=("float64",))
    assert not TwoStacksLite(odd).compiled
    with pytest.raises(QueryError, match="cannot be compiled"):
        TwoStacksLite(odd, compiled=True)
    with pytest.raises(QueryError, match="names no columns"):
        TwoStacksLite(monoid(max), compiled=True)


def test_no_identity_is_needed() -> None:
    store = FiBA(monoid(max), arity=2)
    assert store.query() is None
    store.insert_many([5, 1, 3], ["b", "c", "a"])
    assert (store.query(), store.query_range(4, 9), store.query_range(6, 9)) == ("c", "b", None)


def test_refusals() -> None:
    with pytest.raises(QueryError, match='Did you mean "count"'):
        Lazy("cuont")
    with pytest.raises(QueryError, match="float64"):
        Lazy("sum", dtype="int32")
    with pytest.raises(QueryError, match="arity must be an integer from 2 on: got 1"):
        FiBA("sum", arity=1)
    with pytest.raises(QueryError, match="identity of 2 columns"):
        monoid(max, identity=0.0, columns=("float64", "int64"))
    store = TwoStacksLite("sum", compiled=False)
    with pytest.raises(IndexError, match="empty"):
        store.evict()
    store.insert_many([1, 5], [1.0, 2.0])
    with pytest.raises(DataError, match="got 4 after 5; use FiBA"):
        store.insert(4, 1.0)
    with pytest.raises(DataError, match="evicts the oldest time only"):
        store.evict(5)
    store.evict(3)  # absent
    assert store.times() == [1, 5]
    with pytest.raises(DataError, match="up to the newest entry"):
        store.query_range(0, 5)
    with pytest.raises(TypeError, match="cannot iterate over entries"):
        list(store)
    with pytest.raises(DataError, match="as many values as times"):
        store.insert_many([6], [])
    with pytest.raises(KeyError):
        FlatFAT("sum", compiled=False).update(3, 1.0)
    assert store.query() == 3.0


def test_importing_the_stores_imports_no_numba() -> None:
    code = "import muntin.stores, benchmarks.baselines, sys; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
