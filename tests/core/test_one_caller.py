"""An operator belongs to one caller at a time: a second one gets an error, and changes nothing."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import ConcurrentCallError

CALLS: dict[str, Callable[[Operator], object]] = {
    "process": lambda op: op.process({"t": 2, "v": 1}),
    "flush": lambda op: op.flush(),
    "advance": lambda op: op.advance(5),
    "finish": lambda op: op.finish(),
    "poll": lambda op: op.poll(),
    "add": lambda op: op.add(more=w.tumbling(5)),
    "remove": lambda op: op.remove("two"),
    "take_late": lambda op: op.take_late(),
    "take_bad": lambda op: op.take_bad(),
    "watermark": lambda op: op.watermark,
    "slices": lambda op: op.slices(),
    "open_windows": lambda op: op.open_windows(),
    "snapshot": lambda op: op.snapshot(),
    "stats": lambda op: op.stats(),
}


def test_every_public_name_of_an_operator_is_among_them() -> None:
    public = {name for name, _ in inspect.getmembers(Operator) if not name.startswith("_")}
    # restore makes an operator of its own; stream is read by calls of process and finish
    assert public - {"restore", "stream"} == set(CALLS)


def operator_with(lift: Callable[[int], int]) -> Operator:
    aggregate = a.aggregate("v", lift=lift, combine=lambda x, y: x + y, compile=False)
    return mt.windows(ten=w.tumbling(10), two=w.tumbling(2)).aggregate(x=aggregate).on("t").operator()


@pytest.mark.parametrize("call", CALLS)
def test_a_second_thread_gets_an_error_while_a_step_is_under_way(call: str) -> None:
    inside, over = threading.Event(), threading.Event()

    def lift(value: int) -> int:
        if value == 7:
            inside.set()
            assert over.wait(60)
        return value

    op = operator_with(lift)
    op.process([{"t": 1, "v": 1}])
    first = threading.Thread(target=op.process, args=([{"t": 3, "v": 7}],))
    first.start()
    assert inside.wait(60)
    try:
        told = rf"belongs to one caller at a time: got a call of {call}\(\).*one thread, or hold a lock"
        with pytest.raises(ConcurrentCallError, match=told):
            CALLS[call](op)
    finally:
        over.set()
        first.join()
    rows = op.finish().to_pylist()
    assert [(row["window_name"], row["x"]) for row in rows] == [("two", 1), ("two", 7), ("ten", 8)]


@pytest.mark.parametrize("call", CALLS)
def test_user_code_cannot_call_its_own_operator(call: str) -> None:
    found: list[Any] = []

    def lift(value: int) -> int:
        if value == 7:
            found.append(op)
            CALLS[call](op)
        return value

    op = operator_with(lift)
    op.process([{"t": 1, "v": 1}])
    with pytest.raises(mt.errors.UserCodeError, match=rf"got a call of {call}\(\) while another call"):
        op.process([{"t": 3, "v": 7}])
    assert found
    assert [row["x"] for row in op.finish().to_pylist()] == [1, 1]


def test_an_error_sets_the_operator_free() -> None:
    op = operator_with(int)
    for wrong in (lambda: op.process({"t": [None]}), lambda: op.remove("none"), lambda: op.advance([])):
        with pytest.raises(mt.MuntinError):
            wrong()
    op.process({"t": 1, "v": 2})
    assert op.finish()["x"].to_pylist() == [2, 2]
    with pytest.raises(mt.errors.DataError, match="the stream has ended"):
        op.process({"t": 1, "v": 2})


def test_many_threads_lose_nothing_that_was_taken() -> None:
    """Each call either happened as a whole or raised."""
    op = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t").operator()
    op.process({"t": 0})
    taken = [1, 0, 0, 0]

    def push(number: int) -> None:
        for i in range(3000):
            try:
                op.process({"t": i} if i % 7 else [{"t": i}])
                taken[number] += 1
                if i % 50 == 0:
                    op.flush()
            except ConcurrentCallError:
                pass

    threads = [threading.Thread(target=push, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(op.finish()["n"].to_pylist()) == sum(taken)
