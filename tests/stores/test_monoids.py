"""Monoids: laws of the named ones, exact sums, compiled user functions, and what is refused."""

from __future__ import annotations

import math
import operator
import statistics
import subprocess
import sys
from decimal import Decimal

import pytest

from muntin.errors import DataError, QueryError
from muntin.stores import DabaLite, FiBA, FlatFAT, Lazy, Prefix, TwoStacksLite, monoid, named
from muntin.stores.monoids import NAMES

VALUES = [3.0, -1.5, 8.0, 8.0, 0.25, -1.5, 2.0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_laws(name: str, dtype: str) -> None:
    it = named(name, dtype).python
    lifted = [it.lift(abs(int(v)) + 1 if dtype == "int64" else abs(v)) for v in VALUES]
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
        assert store.query() == (0 if "count" in name else None)
        store.insert_many(range(7), VALUES)
        assert store.query() == pytest.approx(answer)
    growth = Lazy("geometric_mean", compiled=False)
    growth.insert_many(range(3), [1.0, 10.0, 100.0])
    assert growth.query() == pytest.approx(10.0)


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
    with pytest.raises(QueryError, match="arity must be 2, 4 or 8"):
        FiBA("sum", arity=3)
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
    with pytest.raises(KeyError):
        store.evict(3)
    with pytest.raises(DataError, match="up to the newest entry"):
        store.query_range(0, 5)
    with pytest.raises(TypeError, match="cannot give them back"):
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
