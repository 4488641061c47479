"""The threads of `run(table, threads=n)` stay for the next table."""

from __future__ import annotations

import multiprocessing
import threading
import time
import warnings

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.errors import DataError
from muntin.slicing.parallel import steps as steps_module
from muntin.slicing.parallel import threads as threads_module
from muntin.slicing.parallel.threads import Threads

QUERY = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("v")).by("k").on("t")


def table(n: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({"t": np.arange(n) // 10, "k": rng.integers(0, 50, n), "v": rng.integers(0, 100, n)})


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are for several threads, too."""
    monkeypatch.setattr(steps_module, "LEAST_TUPLES", 1)


def names_of_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("muntin")}


@pytest.mark.usefixtures("split")
def test_threads_stay_for_the_next_table() -> None:
    wanted = QUERY.run(table())
    assert QUERY.run(table(), threads=2) == wanted
    before = names_of_threads()
    assert QUERY.run(table(), threads=2) == wanted
    assert names_of_threads() == before
    assert before


def test_nobody_has_the_threads_of_another() -> None:
    with Threads.borrowed(2) as one, Threads.borrowed(2) as other, Threads.borrowed(3) as more:
        assert len({id(one.pool), id(other.pool), id(more.pool)}) == 3
    with Threads.borrowed(2) as again:
        assert again.pool in (one.pool, other.pool)


@pytest.mark.usefixtures("split")
def test_two_threads_of_the_user_run_tables_at_once() -> None:
    wanted = QUERY.run(table())
    found: list[pa.Table] = []
    users = [threading.Thread(target=lambda: found.append(QUERY.run(table(), threads=2))) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join(60)
    assert found == [wanted] * 4


@pytest.mark.usefixtures("split")
def test_the_threads_of_a_run_that_fails_end() -> None:
    """Some of them may still be at work: the next table does not wait for these."""
    large = pa.table({"t": [1, 2], "k": [1, 1], "v": [2**63 - 1, 2**63 - 1]})
    with Threads.borrowed(2) as mine:
        pass
    with pytest.raises(DataError, match="overflows"):
        QUERY.run(large, threads=2)
    with Threads.borrowed(2) as others:
        assert others.pool is not mine.pool
    with pytest.raises(RuntimeError, match="shutdown"):
        mine.pool.submit(int)


def test_calls_are_made_by_whoever_is_free() -> None:
    ready = threading.Event()
    order: list[int] = []

    def call(number: int) -> int:
        if number == 0:
            assert ready.wait(60)
        order.append(number)
        if number == 4:
            ready.set()
        return number * number

    with Threads.borrowed(2) as threads:
        assert threads.map(call, range(5)) == [0, 1, 4, 9, 16]
        assert order == [1, 2, 3, 4, 0]
        assert threads.map(call, []) == []


def test_all_calls_are_over_when_an_error_is_raised() -> None:
    over: list[int] = []

    def call(number: int) -> None:
        if number == 0:
            raise ZeroDivisionError
        time.sleep(0.01)
        over.append(number)

    with pytest.raises(ZeroDivisionError), Threads.borrowed(2) as threads:
        threads.map(call, range(5))
    assert sorted(over) == [1, 2, 3, 4]


def test_few_threads_stay() -> None:
    for number in range(2, 9):
        with Threads.borrowed(number):
            pass
    assert [threads.number for threads in threads_module._IDLE] == [7, 8]


def run_in_child(wanted: int) -> None:
    assert QUERY.run(table(), threads=2)["total"].combine_chunks().sum().as_py() == wanted


@pytest.mark.usefixtures("split")
def test_a_process_that_was_forked_starts_its_own() -> None:
    wanted = QUERY.run(table(), threads=2)["total"].combine_chunks().sum().as_py()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: there are threads
        child = multiprocessing.get_context("fork").Process(target=run_in_child, args=(wanted,))
        child.start()
    child.join(60)
    assert child.exitcode == 0


def test_a_small_table_stays_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    for name in ("time_ranges_of", "divided"):
        monkeypatch.setattr(steps_module, name, lambda *_, name=name: used.append(name))
    assert QUERY.run(table(), threads=2) == QUERY.run(table())
    assert used == []
