"""Combines are counted, and each store keeps its promise at every window size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.stores import Driver
from muntin.stores import DabaLite, FiBA, FlatFAT, Prefix, Store, TwoStacksLite

SIZES = [2**10, 2**16, 2**20]
FAR = 10**12


def filled(store: Store, n: int, late: int = 0) -> Store:
    """n entries, the youngest ``late`` of them far in the future."""
    store.insert_many(np.arange(n - late), np.ones(n - late, store.monoid.input))
    if late:
        store.insert_many(np.arange(FAR, FAR + late), np.ones(late, store.monoid.input))
    store.query()
    return store


def rounds(store: Store, start: int, count: int) -> tuple[float, int, int, int]:
    """(combines per round of evict + insert + query, most in one insert, evict, query)."""
    before = store.combines
    most = [0, 0, 0]
    for i in range(count):
        marks = [store.combines]
        store.evict()
        marks.append(store.combines)
        store.insert(start + i, 1)
        marks.append(store.combines)
        store.query()
        marks.append(store.combines)
        most = [max(m, marks[j + 1] - marks[j]) for j, m in enumerate(most)]
    return (store.combines - before) / count, most[1], most[0], most[2]


def steady(store: Store, n: int) -> float:
    """Combines per round over whole cycles of the window, in a compiled loop."""
    driver = Driver(store, n)
    driver.rounds(2 * n)
    before = store.combines
    driver.rounds(4 * n)
    return (store.combines - before) / (4 * n)


@pytest.mark.parametrize("n", SIZES)
def test_two_stacks_lite_needs_three(n: int) -> None:
    assert steady(TwoStacksLite("last"), n) == pytest.approx(3, abs=0.01)


@pytest.mark.parametrize("n", SIZES)
def test_daba_lite_needs_four_and_never_many(n: int) -> None:
    store = DabaLite("last")
    assert steady(store, n) == pytest.approx(4, abs=0.01)
    driver = Driver(store := DabaLite("last"), n)
    for _ in range(2):  # right after the window was filled, and in the middle of a cycle
        _, most_insert, most_evict, most_query = rounds(store, driver.next, 2048)
        assert most_insert <= 3
        assert most_evict <= 2
        assert most_query <= 1
        driver.next += 2048
        driver.rounds(n // 2)


@pytest.mark.parametrize("n", [*SIZES, 2**10 + 333, 2**16 - 5])
def test_flatfat_needs_two_paths(n: int) -> None:
    store = filled(FlatFAT("last"), n)
    average, *most = rounds(store, n, 4096)
    bound = 2 * math.log2(store.capacity) + 1
    assert average <= bound
    assert sum(most) <= bound
    before = store.combines
    store.query_range(n + 4096 - n // 2, n + 4096 - n // 4)
    assert store.combines - before <= bound


@pytest.mark.parametrize("m", [1, 16, 1024, 2**14])
def test_flatfat_batch_update(m: int) -> None:
    n = 2**16
    store = filled(FlatFAT("last"), n)
    before = store.combines
    store.update_many(np.arange(0, n, n // m), np.ones(m))
    assert store.combines - before <= 2 * m + m * math.log2(n / m)


@pytest.mark.parametrize("n", SIZES)
def test_prefix_needs_one_for_any_range(n: int) -> None:
    store = filled(Prefix("sum", dtype="int64"), n)
    before = store.combines
    assert store.query_range(n // 3, n // 2) == n // 2 - n // 3
    assert store.combines - before == 1
    average, *_ = rounds(store, n, 4096)
    assert average <= 4


IN_ORDER_BOUNDS = {2: 16, 3: 8, 4: 23, 5: 8, 8: 36, 16: 8}


def in_order_cost(arity: int, n: int, compiled: bool, count: int) -> float:
    store = FiBA("last", arity=arity, compiled=compiled)
    if compiled:
        driver = Driver(store, n)
        driver.rounds(count // 4)
        before = store.combines
        driver.rounds(count)
    else:
        filled(store, n)
        rounds(store, n, count // 4)
        before = store.combines
        *_, query = rounds(store, n + count // 4, count)
        assert query == 2
    return (store.combines - before) / count


@pytest.mark.parametrize(
    ("arity", "compiled", "windows"),
    [
        (2, False, SIZES[:2]),
        (4, True, SIZES),
        (8, False, SIZES[:2]),
        *((arity, False, SIZES[:2]) for arity in (3, 5, 16)),
        pytest.param(2, True, SIZES, marks=pytest.mark.deep),
        pytest.param(8, True, SIZES, marks=pytest.mark.deep),
    ],
)
def test_fiba_in_order_does_not_depend_on_the_window(arity: int, compiled: bool, windows: list[int]) -> None:
    averages = [in_order_cost(arity, n, compiled, 8192 if compiled else 1024) for n in windows]
    assert max(averages) <= IN_ORDER_BOUNDS[arity]
    assert max(averages) - min(averages) <= 0.1 * max(averages)


def test_fiba_out_of_order_grows_with_the_logarithm_of_the_distance() -> None:
    n = 2**16
    cost = {}
    for d in (0, 2**4, 2**8, 2**12):
        store = filled(FiBA("last", arity=4), n, late=d)
        cost[d] = rounds(store, n - d, 2048)[0]
    assert cost[0] < cost[2**4] < cost[2**8] < cost[2**12]
    steps = [cost[2**8] - cost[2**4], cost[2**12] - cost[2**8]]
    assert max(steps) <= 3 * min(steps), "each 16-fold distance adds about the same"
    assert cost[2**12] <= 23 + 12 * 2 * 8, "a few nodes a level of log_4 d levels"
    far = filled(FiBA("last", arity=4), 2**20, late=2**12)
    assert rounds(far, 2**20 - 2**12, 2048)[0] == pytest.approx(cost[2**12], rel=0.15)


@pytest.mark.parametrize("late", [0, 4096])
@pytest.mark.parametrize("n", [2**16, 2**20])
def test_fiba_bulk_insert_needs_few_per_entry(n: int, late: int) -> None:
    store = filled(FiBA("last", arity=4), n, late)
    before, entries, bulk = store.combines, 0, 1024
    for _ in range(32):
        store.evict_before(entries + bulk)
        store.insert_many(np.arange(n - late + entries, n - late + entries + bulk), np.ones(bulk))
        store.query()
        entries += bulk
        assert len(store) == n
    assert (store.combines - before) / entries <= 5


@pytest.mark.parametrize("n", SIZES)
def test_fiba_bulk_evict_does_not_pay_for_what_it_drops(n: int) -> None:
    store = filled(FiBA("last", arity=4), n)
    before = store.combines
    assert store.evict_before(n // 2 + 7) == n // 2 + 7
    assert store.combines - before <= 40 * math.log2(n)


def test_both_forms_count_alike() -> None:
    for kind in (TwoStacksLite, DabaLite, FlatFAT):
        counts = []
        for compiled in (True, False):
            store = kind("last", compiled=compiled)
            for t in range(300):
                store.insert(t, float(t))
                if t > 100:
                    store.evict()
                store.query()
            counts.append(store.combines)
        assert counts[0] == counts[1]
    counts = []
    for compiled in (True, False):
        tree = FiBA("last", arity=4, compiled=compiled)
        tree.insert_many([(7 * t) % 501 for t in range(501)], [1.0] * 501)
        for t in range(300):
            tree.insert((13 * t) % 601, 1.0)
            tree.evict()
            tree.query_range(t, t + 50)
        tree.evict_before(400)
        counts.append(tree.combines)
    assert counts[0] == counts[1]
