"""Integer keys find their ids in a hash table of their own: as a dictionary of Python would give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.slicing import key_index
from muntin.slicing.key_index import KeyIndex
from muntin.slicing.keys import KeyTable

NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**63 - 1, -(2**63), 2**32, 2**32 + 1]))
BATCHES = st.lists(st.lists(st.tuples(st.none() | NUMBERS, NUMBERS), max_size=12), max_size=6)


def ids(known: dict[Any, int], keys: list[Any]) -> list[int]:
    return [known.setdefault(key, len(known)) for key in keys]


@given(BATCHES)
def test_one_column(batches: list[list[tuple[int | None, int]]]) -> None:
    table, known = KeyTable((pa.int64(),)), dict[Any, int]()
    for batch in batches:
        keys = [first for first, _ in batch]
        assert table.encode([pa.array(keys, pa.int64())]).tolist() == ids(known, keys)
    assert table.values(np.arange(len(table)))[0].to_pylist() == list(known)


@given(BATCHES)
def test_two_columns(batches: list[list[tuple[int | None, int]]]) -> None:
    table, known = KeyTable((pa.int64(), pa.int64())), dict[Any, int]()
    for batch in batches:
        columns = [pa.array([pair[i] for pair in batch], pa.int64()) for i in (0, 1)]
        assert table.encode(columns).tolist() == ids(known, batch)
    found = (column.to_pylist() for column in table.values(np.arange(len(table))))
    assert list(zip(*found, strict=True)) == list(known)


@pytest.mark.parametrize("step", [1, 2**32, 2**40, -(2**17)])
def test_many_keys_in_batches_that_outgrow_the_table(step: int) -> None:
    table, known = KeyTable((pa.int64(),)), dict[Any, int]()
    rng = np.random.default_rng(5)
    for size in (10, 3_000, 50_000):
        keys = rng.integers(0, 40_000, size) * step
        assert table.encode([pa.array(keys)]).tolist() == ids(known, keys.tolist())


def test_what_a_failed_step_added_is_forgotten() -> None:
    index = KeyIndex()
    before, _ = index.encode(pa.array([], pa.int64()), pa.array([1, 2]))
    index.encode(before, pa.array([3, 4]))  # which is undone
    known, codes = index.encode(before, pa.array([4, 5, 2, 3]))
    assert known.to_pylist() == [1, 2, 4, 5, 3]
    assert codes.tolist() == [2, 3, 1, 4]


@pytest.mark.parametrize("high", [8, 1_000, 2**62])
def test_values_that_lie_elsewhere_than_the_sample(high: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "_SAMPLE", 4)
    table, known = KeyTable((pa.int64(),)), dict[Any, int]()
    rng = np.random.default_rng(high)
    for size in (4, 5, 30, 3_000, 100):
        near = rng.integers(-2, 3, size)
        keys = np.where(rng.random(size) < 0.9, near, rng.integers(-high, high, size))
        assert table.encode([pa.array(keys)]).tolist() == ids(known, keys.tolist())


@pytest.mark.parametrize(("most", "served"), [(1_500, True), (1_990, True), (50_000, False)])
def test_a_plain_table_serves_all_values_that_are_close_enough(
    most: int, served: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_index, "_SAMPLE", 100)
    column = pa.array([0, most, *np.random.default_rng(1).integers(0, most, 998)])
    codes = np.empty(1_000, dtype=np.int64)
    known, done = key_index._encode_dense(pa.array([], pa.int64()), column, key_index._stored(column), codes)
    assert (done == 1_000) is served is key_index.is_dense(column)
    assert known.take(pa.array(codes[:done])).equals(column.slice(0, done))
