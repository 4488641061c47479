"""The classic workloads: steady, sawtooth, thirds, late data, and windows that grow large and empty."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.baselines import Recalculate
from muntin.stores import DabaLite, FiBA, FlatFAT, Lazy, Prefix, Store, TwoStacksLite, monoid

CONCATENATION = monoid(lambda p, q: p + q, identity=(), lift=lambda v: (v,), invert=lambda p, q: p[len(q) :])
IN_ORDER = [TwoStacksLite, DabaLite, Prefix, FlatFAT, Lazy, FiBA]
FIBAS = [(2, 120), (4, 250), (8, 600)]


def sizes(name: str, n: int) -> Iterator[int]:
    """The window size that a workload asks for, step by step."""
    if name == "steady":
        yield from [n] * (4 * n)
    elif name == "sawtooth":
        yield from [*range(n), *range(n, 0, -1)] * 3
    else:
        yield from [n, *range(n, n // 3, -1), *range(n // 3, n)] * 5


@pytest.mark.parametrize("name", ["steady", "sawtooth", "thirds"])
@pytest.mark.parametrize("kind", IN_ORDER)
def test_in_order(kind: type[Store], name: str) -> None:
    store, expected = kind(CONCATENATION), []
    for step, size in enumerate(sizes(name, 67)):
        store.insert(step - 100, step)
        expected.append(step)
        while len(expected) > size:
            store.evict()
            expected.pop(0)
        assert store.query() == tuple(expected)
    store.check_invariants()


@pytest.mark.parametrize(("arity", "window"), FIBAS)
def test_random_times(arity: int, window: int) -> None:
    chance = random.Random(arity)
    store, oracle = FiBA(CONCATENATION, arity=arity), Recalculate(CONCATENATION)
    for i in range(3 * window):
        t = i + chance.randrange(11 * window)
        store.insert(t, i)
        oracle.insert(t, i)
        if len(oracle) > window:
            store.evict()
            oracle.evict()
        if i % 17 == 0:
            assert store.query() == oracle.query()
    store.check_invariants()
    assert [tuple(entry) for entry in store] == list(oracle)


@pytest.mark.parametrize(("arity", "n"), [(2, 60), (4, 150), (8, 400)])
def test_every_cut(arity: int, n: int) -> None:
    order = list(range(0, 2 * n, 2))
    random.Random(n).shuffle(order)
    for cut in range(-1, 2 * n + 1, 3):
        store = FiBA(CONCATENATION, arity=arity)
        for t in order:
            store.insert(t, t)
        rest = tuple(t for t in range(0, 2 * n, 2) if t >= cut)
        assert store.evict_before(cut) == n - len(rest)
        assert store.query() == rest
        store.check_invariants()
        store.insert_many([cut - 1, cut + n], ["a", "b"])
        store.check_invariants()


@pytest.mark.parametrize("arity", [2, 4, 8])
def test_every_range(arity: int) -> None:
    store = FiBA(CONCATENATION, arity=arity)
    order = list(range(50))
    random.Random(arity).shuffle(order)
    for t in order:
        store.insert(t, t)
    for a in range(-1, 52):
        for b in range(-1, 52):
            assert store.query_range(a, b) == tuple(range(max(a, 0), min(b, 50)))


@pytest.mark.parametrize("arity", [2, 4, 8])
def test_bulks_with_repeats_and_known_times(arity: int) -> None:
    """Bulks whose times are in the tree already, in inner nodes too, and repeat within the bulk."""
    chance = random.Random(arity)
    for _ in range(25):
        store, oracle = FiBA(CONCATENATION, arity=arity), Recalculate(CONCATENATION)
        for _ in range(8):
            ts = [chance.randrange(-100, 300) for _ in range(chance.randrange(1, 90))]
            vs = [chance.random() for _ in ts]
            store.insert_many(ts, vs)
            oracle.insert_many(ts, vs)
            store.check_invariants()
            assert store.query() == oracle.query()


@pytest.mark.parametrize("kind", [TwoStacksLite, DabaLite, FlatFAT, FiBA, Lazy])
def test_grow_to_a_million_and_shrink_to_nothing(kind: type[Store]) -> None:
    n = 1_000_000
    store = kind("last", arity=4) if kind is FiBA else kind("last")
    for start in range(0, n, n // 4):
        store.insert_many(np.arange(start, start + n // 4), np.arange(start, start + n // 4) * 1.0)
    assert (len(store), store.query()) == (n, n - 1.0)
    assert store.evict_before(n // 2) == n // 2
    assert (len(store), store.query()) == (n // 2, n - 1.0)
    store.insert(n, 5.0)
    assert store.query() == 5.0
    while len(store) > 1000:
        cut = store.times()[0] + len(store) // 2 if len(store) < 10_000 else n - len(store) // 3
        store.evict_before(cut)
    while len(store):
        store.evict()
    store.check_invariants()
    assert store.query() is None


def test_prefix_sums_grow_to_a_million_and_shrink_to_nothing() -> None:
    n = 1_000_000
    store = Prefix("sum", dtype="int64")
    store.insert_many(np.arange(n), np.full(n, 2**40))
    assert (len(store), store.query()) == (n, n * 2**40)
    assert store.query_range(7, n // 2) == (n // 2 - 7) * 2**40
    for left in (n // 2, 1000, 1, 0):
        store.evict_before(n - left)
        assert (len(store), store.query()) == (left, left * 2**40)
    store.check_invariants()


def test_late_bulk_into_a_large_tree() -> None:
    n = 200_000
    store = FiBA("last", arity=4)
    store.insert_many(np.arange(0, 2 * n, 2), np.arange(n) * 1.0)
    store.insert_many(np.arange(1, 2 * n, 2)[::-1], np.arange(n) * -1.0)
    assert len(store) == 2 * n
    assert store.query_range(10, 12) == float(-(n - 1) + 5)
    assert store.evict_before(n) == n
    store.check_invariants()
