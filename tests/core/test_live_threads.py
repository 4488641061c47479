"""`operator(threads=n)`: each step gives what it gives on one thread, bit for bit."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, QueryError
from muntin.slicing.parallel import key_numbering as numbering_module
from muntin.slicing.parallel import steps as steps_module
from muntin.slicing.parallel import time_ranges as ranges_module
from muntin.slicing.parallel.steps import ParallelSteps

sys.path.insert(0, str(Path(__file__).parent))
from parted import AGGREGATES, WINDOWS, nearly_in_order, seen, stream  # beside this file, not installed

POLICIES: dict[str, dict[str, Any]] = {
    "final": {},
    "lateness": {"allowed_lateness": 50, "late": "route"},
    "early": {"early": mt.each_batch(), "allowed_lateness": 50},
    "early of a period": {"early": mt.every(100)},
    "forgotten keys": {"forget_keys_after": 150},
    "forgotten and late": {"forget_keys_after": 150, "allowed_lateness": 50},
}


@pytest.fixture(autouse=True)
def everything_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little there is to do."""
    for few in ("LEAST_TUPLES", "LEAST_SLICES", "LEAST_ROWS"):
        monkeypatch.setattr(steps_module, few, 1)
    monkeypatch.setattr(numbering_module, "FIRST", 1)
    monkeypatch.setattr(ranges_module, "BLOCK", 16)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The parts of steps that ran on threads."""
    found: set[str] = set()

    def noting(name: str) -> Callable[..., Any]:
        original = getattr(ParallelSteps, name)

        def call(*arguments: Any) -> Any:
            result = original(*arguments)
            found.update([name] if result is not None and result is not False else [])
            return result

        return call

    for name in ("add", "complete"):
        monkeypatch.setattr(ParallelSteps, name, noting(name))
    return found


def parts_of(table: pa.Table, number: int = 4) -> list[pa.RecordBatch]:
    size = len(table) // number
    return [table.slice(i * size, size).combine_chunks().to_batches()[0] for i in range(number)]


def both(query: Any, **options: Any) -> tuple[Operator, Operator]:
    return query.operator(**options), query.operator(threads=3, **options)


def assert_same(one: Operator, several: Operator, call: Callable[[Operator], Any]) -> None:
    """A step gives the same on both, or the same error."""
    outcomes = []
    for op in (one, several):
        try:
            result = call(op)
        except DataError as error:
            outcomes.append(str(error))
        else:
            outcomes.append(repr(seen(result)) if isinstance(result, pa.Table | mt.Results) else repr(result))
    assert outcomes[0] == outcomes[1]


def assert_same_end(one: Operator, several: Operator) -> None:
    assert_same(one, several, lambda op: op.finish())
    assert_same(one, several, lambda op: op.take_late())
    counted = [op.stats() for op in (one, several)]
    for name in ("tuples", "late", "bad", "keys", "kept_tuples", "watermark"):
        assert getattr(counted[0], name, None) == getattr(counted[1], name, None), name


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("windows", WINDOWS)
def test_each_step_gives_what_one_thread_gives(windows: str, policy: str, used: set[str]) -> None:
    for aggregates in AGGREGATES.values():
        query = (
            mt.windows(**WINDOWS[windows]).aggregate(**aggregates).by("k", "j").on("t", **POLICIES[policy])
        )
        for table in (stream(1_200, 9), nearly_in_order(1_200, 9)):
            one, several = both(query)
            for part in parts_of(table):
                assert_same(one, several, lambda op, part=part: op.process(part))
                watermark = int(max(part["t"].to_pylist())) - 100
                assert_same(one, several, lambda op, at=watermark: op.advance(at))
            assert_same_end(one, several)
    assert "complete" in used


@pytest.mark.parametrize("windows", WINDOWS)
def test_the_watermark_follows_the_tuples(windows: str) -> None:
    query = mt.windows(**WINDOWS[windows]).aggregate(**AGGREGATES["sums"]).by("k").on("t")
    one, several = both(query, watermark_lag=30)
    for part in parts_of(nearly_in_order(1_200, 9)):
        assert_same(one, several, lambda op, part=part: op.process(part))
    assert_same_end(one, several)
    one, several = both(query, in_order=True)
    for part in parts_of(nearly_in_order(1_200, 9, late=0)):
        assert_same(one, several, lambda op, part=part: op.process(part))
    assert_same_end(one, several)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("windows", WINDOWS)
def test_snapshots_in_the_middle(windows: str, policy: str, used: set[str]) -> None:
    """Steps on threads leave a state that goes on on one thread, and the other way round."""
    query = mt.windows(**WINDOWS[windows]).aggregate(**AGGREGATES["sums"]).by("k").on("t", **POLICIES[policy])
    one, several = both(query)
    for number, part in enumerate(parts_of(stream(1_200, 9))):
        assert_same(one, several, lambda op, part=part: op.process(part))
        assert_same(one, several, lambda op, at=200 * number: op.advance(at))
        one, several = (
            Operator.restore(several.snapshot()),
            Operator.restore(one.snapshot(), threads=2 + number % 2),
        )
    assert_same_end(one, several)
    assert "complete" in used


@pytest.mark.parametrize("policy", POLICIES)
def test_windows_are_added_and_removed(policy: str, used: set[str]) -> None:
    query = mt.windows(**WINDOWS["edges"]).aggregate(**AGGREGATES["sums"]).by("k").on("t", **POLICIES[policy])
    one, several = both(query)
    changes: list[Callable[[Operator], Any]] = [
        lambda op: op.add(visit=w.session(5)).since,
        lambda op: op.add(five=w.count(5), seven=w.tumbling(7)).since,
        lambda op: [op.remove(name) for name in ("ten", "visit")],
        lambda op: op.remove("five"),
    ]
    for number, (part, change) in enumerate(zip(parts_of(nearly_in_order(1_200, 9)), changes, strict=True)):
        assert_same(one, several, lambda op, part=part: op.process(part))
        assert_same(one, several, change)
        assert_same(one, several, lambda op, at=250 * number: op.advance(at))
    assert_same_end(one, several)
    assert "complete" in used


def test_a_step_that_fails_has_the_error_of_one_thread_and_can_be_repeated(used: set[str]) -> None:
    query = mt.windows(ten=w.tumbling(10), more=w.sliding(20, 5)).aggregate(total=a.sum("v")).by("k").on("t")
    one, several = both(query)
    good = {"t": list(range(100)), "k": [i % 7 for i in range(100)], "v": [1] * 100}
    bad = {"t": [105, 106, 107], "k": [1, 2, 1], "v": [2**62, 1, 2**62]}
    better = {"t": [105], "k": [1], "v": [-(2**62)]}
    for data in (good, bad):
        assert_same(one, several, lambda op, data=data: op.process(data))
    for _ in range(2):
        with pytest.raises(DataError, match="64 bits"):
            several.advance(120)
        assert_same(one, several, lambda op: op.advance(120))
        assert one.watermark == several.watermark < 0
    assert_same(one, several, lambda op: op.process(better))
    assert_same(one, several, lambda op: op.advance(120))
    assert one.watermark == several.watermark == 120
    assert_same_end(one, several)
    assert used


def test_a_query_with_code_of_the_user_has_no_threads() -> None:
    query = (
        mt.windows(ten=w.tumbling(10)).aggregate(x=a.aggregate("i", lift=abs, combine=max)).by("k").on("t")
    )
    one, several = both(query)
    assert several._engine.parallel is None
    assert_same(one, several, lambda op: op.process(stream(300, 5)))
    assert_same_end(one, several)


def test_code_of_a_window_that_is_added_runs_on_the_thread_of_the_caller(used: set[str]) -> None:
    callers: set[str] = set()

    def each(record: Any) -> tuple[int, int]:
        callers.add(threading.current_thread().name)
        return 1, 1

    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).by("k").on("t")
    one, several = both(query)
    first, second, *_ = parts_of(nearly_in_order(1_200, 9))
    for op in (one, several):
        op.process(first)
    assert_same(one, several, lambda op: op.advance(100))
    assert used
    assert_same(one, several, lambda op: op.add(own=w.discretize(each)).since)
    assert_same(one, several, lambda op: op.process(second))
    assert_same_end(one, several)
    assert callers == {threading.current_thread().name}


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "two", None])
def test_a_number_of_threads_that_makes_no_sense(threads: Any) -> None:
    query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    told = r"threads must be a whole number from 1 on: got .*cpu_count"
    with pytest.raises(QueryError, match=told):
        query.operator(threads=threads)
    with pytest.raises(QueryError, match=told):
        Operator.restore(query.operator().snapshot(), threads=threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_operator_on_threads_goes_on_in_a_forked_process() -> None:
    """The child has none of the threads, and must neither wait for them nor give other results."""
    query = mt.windows(ten=w.tumbling(10)).aggregate(total=a.sum("i")).by("k").on("t")
    op, one = query.operator(threads=2), query.operator()
    table = stream(2_000, 20)
    op.process(table)
    one.process(table)
    wanted = repr(one.finish().to_pylist())
    child = os.fork()
    if child == 0:
        os._exit(0 if repr(op.finish().to_pylist()) == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
