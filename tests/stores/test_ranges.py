"""Many ranges at once: every strategy gives what a loop gives, and counts what it does."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from muntin.errors import DataError, QueryError
from muntin.stores import monoid, named
from muntin.stores.ranges import STRATEGIES, choose, is_monotone, reduce_ranges

CONCATENATION = monoid(lambda p, q: p + q, identity=(), invert=lambda p, q: p[len(q) :])


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray]:
    n = draw(st.integers(1, 40))
    pairs = draw(st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), max_size=30))
    lo, hi = np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)
    if draw(st.booleans()):
        lo, hi = np.sort(lo), np.sort(hi)
    return n, lo, hi


@given(problems())
def test_all_strategies_agree_on_order(problem: tuple[int, np.ndarray, np.ndarray]) -> None:
    n, lo, hi = problem
    expected = [tuple(range(a, b)) for a, b in zip(lo, hi, strict=True)]
    for strategy in (*STRATEGIES, None):
        if strategy == "two_stacks" and not (is_monotone(lo) and is_monotone(hi)):
            continue
        reduced = reduce_ranges([(i,) for i in range(n)], CONCATENATION, lo, hi, strategy=strategy)
        assert reduced.partials == expected


@given(problems(), st.randoms(use_true_random=False))
def test_compiled_max_and_sum(problem: tuple[int, np.ndarray, np.ndarray], chance: object) -> None:
    n, lo, hi = problem
    values = np.array([chance.randrange(-100, 100) for _ in range(n)])  # type: ignore[attr-defined]
    for strategy in (*STRATEGIES, None):
        if strategy == "two_stacks" and not (is_monotone(lo) and is_monotone(hi)):
            continue
        sums = reduce_ranges(values, "sum", lo, hi, strategy=strategy).partials
        assert sums.tolist() == [int(values[a:b].sum()) for a, b in zip(lo, hi, strict=True)]
        if strategy == "prefix":
            continue
        highest = reduce_ranges(values * 1.0, "max", lo, hi, strategy=strategy).partials
        assert highest.tolist() == [
            float(max(values[a:b], default=-np.inf)) for a, b in zip(lo, hi, strict=True)
        ]


def test_partials_of_several_columns() -> None:
    sums, counts = np.array([1.0, 2.0, 4.0]), np.array([1, 1, 2])
    reduced = reduce_ranges((sums, counts), "mean", [0, 1], [2, 3])
    assert [part.tolist() for part in reduced.partials] == [[3.0, 6.0], [2, 3]]


def test_costs() -> None:
    n, width = 4096, 256
    lo = np.arange(n - width)
    hi = lo + width
    values = np.ones(n)
    assert reduce_ranges(values, "max", lo, hi, strategy="lazy").combines == len(lo) * (width - 1)
    assert reduce_ranges(values, "max", lo, hi, strategy="two_stacks").combines <= 2 * n + len(lo)
    assert reduce_ranges(values, "max", lo, hi, strategy="tree").combines <= n + 2 * 12 * len(lo)
    whole = reduce_ranges(values.astype(np.int64), "sum", lo, hi, strategy="prefix")
    assert whole.combines == n + len(lo)


def test_choice() -> None:
    n = 1000
    sliding = np.arange(0, 900), np.arange(100, 1000)
    scattered = np.arange(0, 900)[::-1].copy(), np.full(900, 1000)
    tumbling = np.arange(0, 1000, 10), np.arange(10, 1010, 10)
    assert choose(named("max"), n, *sliding) == "two_stacks"
    assert choose(named("max"), n, *scattered) == "tree"
    assert choose(named("max"), n, *tumbling) == "lazy"
    assert choose(named("count"), n, *sliding) == "prefix"


def test_integer_sums_are_exact_or_refused() -> None:
    big = 2**62
    values = np.array([big, big, -big, -big, 7])
    for strategy in STRATEGIES:
        reduced = reduce_ranges(values, "sum", [0, 1], [4, 5], strategy=strategy)
        assert reduced.partials.tolist() == [0, -big + 7]
        with pytest.raises(DataError, match="does not fit into 64 bits"):
            reduce_ranges(values, "sum", [0], [2], strategy=strategy)


def test_refusals() -> None:
    with pytest.raises(QueryError, match="never go back"):
        reduce_ranges(np.ones(5), "max", [3, 0], [5, 2], strategy="two_stacks")
    with pytest.raises(QueryError, match="exact inverse"):
        reduce_ranges(np.ones(5), "sum", [0], [5], strategy="prefix")
    with pytest.raises(QueryError, match='Did you mean "lazy"'):
        reduce_ranges(np.ones(5), "sum", [0], [5], strategy="lasy")
    with pytest.raises(DataError, match="within 0 and 5"):
        reduce_ranges(np.ones(5), "sum", [0], [6])
    with pytest.raises(DataError, match="as many starts as ends"):
        reduce_ranges(np.ones(5), "sum", [0, 1], [5])
