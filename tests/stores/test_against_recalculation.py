"""Every store against recomputation, step by step, with all invariants checked after each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from benchmarks.baselines import BaseIntervals, ClassicBTree, Recalculate, SubtractOnEvict, TupleTree
from muntin.stores import DabaLite, FiBA, FlatFAT, Lazy, Prefix, Store, TwoStacksLite, monoid

CONCATENATION = monoid(
    lambda p, q: p + q,
    identity=(),
    lift=lambda v: (v,),
    invert=lambda p, q: p[len(q) :],
    name="concatenation",
)
BARE_MAX = monoid(max, name="max without identity")


@dataclass(frozen=True)
class Subject:
    """A store and what it can do."""

    make: Callable[[], Store]
    name: str
    ties: bool = False  # keeps entries of one time apart
    disorder: bool = False  # takes entries at any time
    anywhere: bool = False  # evicts anywhere
    ranges: bool = True  # answers any range
    place: Callable[[int], Any] = int  # the time of a number, in their order

    @property
    def oracle(self) -> Recalculate:
        return Recalculate(self.make().monoid, ties=self.ties)


def fifo(kind: type[Store], *arguments: Any, **options: Any) -> Subject:
    lite = kind in (TwoStacksLite, DabaLite)
    make = partial(kind, *arguments, **options)
    ties = lite or kind in (BaseIntervals, SubtractOnEvict)
    return Subject(make, f"{kind.__name__} {arguments[0]}", ties=ties, ranges=not lite)


def free(kind: type[Store], *arguments: Any, ties: bool = False, **options: Any) -> Subject:
    arity = options.get("arity", "")
    make = partial(kind, *arguments, **options)
    return Subject(make, f"{kind.__name__}{arity} {arguments[0]}", ties=ties, disorder=True, anywhere=True)


def flatfat(*arguments: Any) -> Subject:
    return Subject(partial(FlatFAT, *arguments), f"FlatFAT {arguments[0]}", anywhere=True)


def letters(t: int) -> str:
    """Text in the order of these numbers."""
    return f"{t + 1000:05}"


def dates(t: int) -> datetime:
    """A moment with a zone, in the order of these numbers."""
    return datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin")) + timedelta(hours=t)


def moments(t: int) -> np.datetime64:
    """A moment of NumPy, in the order of these numbers."""
    return np.datetime64("1970-01-01", "us") + np.timedelta64(t, "us")


def quarters(t: int) -> float:
    """A float in the order of these numbers, on both sides of 0."""
    return t / 4


def timed(subject: Subject, place: Callable[[int], Any], times: str) -> Subject:
    """The same store over times of another type."""
    make = partial(subject.make, times=times)
    return replace(subject, make=make, place=place, name=f"{subject.name}, {place.__name__}")


INTERPRETED = [
    *(fifo(kind, CONCATENATION) for kind in (TwoStacksLite, DabaLite, Prefix)),
    *(fifo(kind, CONCATENATION) for kind in (BaseIntervals, SubtractOnEvict)),
    *(fifo(kind, BARE_MAX) for kind in (TwoStacksLite, DabaLite)),
    flatfat(CONCATENATION),
    flatfat(BARE_MAX),
    free(Lazy, CONCATENATION),
    free(TupleTree, CONCATENATION, ties=True),
    free(ClassicBTree, CONCATENATION, arity=2),
    *(free(FiBA, CONCATENATION, arity=arity) for arity in (2, 4, 8)),
    free(FiBA, BARE_MAX, arity=2),
    *(free(FiBA, CONCATENATION, arity=arity) for arity in (3, 5, 19)),
    timed(free(FiBA, CONCATENATION, arity=2), letters, "object"),
    timed(free(FiBA, CONCATENATION, arity=3), dates, "object"),
    *(timed(subject, letters, "object") for subject in (flatfat(CONCATENATION), free(Lazy, CONCATENATION))),
    *(timed(fifo(kind, CONCATENATION), letters, "object") for kind in (TwoStacksLite, DabaLite, Prefix)),
]
COMPILED = [
    *(fifo(kind, "last") for kind in (TwoStacksLite, DabaLite)),
    fifo(Prefix, "sum", dtype="int64"),
    flatfat("last"),
    free(Lazy, "last"),
    free(FiBA, "last", arity=4),
    timed(free(FiBA, "last", arity=4), quarters, "float64"),
    timed(free(FiBA, "last", arity=4), moments, "datetime64[us]"),
    timed(flatfat("last"), quarters, "float64"),
    timed(fifo(TwoStacksLite, "last"), quarters, "float64"),
]

values = st.integers(-50, 50)


class Machine(RuleBasedStateMachine):
    """Random operations on a store and on the oracle."""

    subject: Subject

    def __init__(self) -> None:
        super().__init__()
        self.store = self.subject.make()
        self.oracle = self.subject.oracle

    @property
    def newest(self) -> int:
        return self.oracle.times()[-1] if len(self.oracle) else -20

    def at(self, t: int) -> Any:
        """The time as the store takes it."""
        return self.subject.place(t)

    def time(self, data: st.DataObject) -> int:
        """A time that the store takes: anywhere, at the end, or one that is there."""
        if self.subject.disorder:
            return data.draw(st.integers(-40, 80))
        if self.subject.anywhere and len(self.oracle) and data.draw(st.booleans()):
            return data.draw(st.sampled_from(self.oracle.times()))
        return self.newest + data.draw(st.integers(0, 3))

    def known(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(self.oracle.times()))

    @rule(data=st.data(), v=values)
    def insert(self, data: st.DataObject, v: int) -> None:
        t = self.time(data)
        self.store.insert(self.at(t), v)
        self.oracle.insert(t, v)

    @rule(v=values, steps=st.lists(st.integers(0, 2), max_size=40))
    def insert_in_order(self, v: int, steps: list[int]) -> None:
        t = self.newest
        for j, step in enumerate(steps):
            t += step
            self.store.insert(self.at(t), v + j)
            self.oracle.insert(t, v + j)

    @precondition(lambda self: self.subject.disorder)
    @rule(entries=st.lists(st.tuples(st.integers(-40, 80), values), max_size=60))
    def insert_many(self, entries: list[tuple[int, int]]) -> None:
        ts, vs = [t for t, _ in entries], [v for _, v in entries]
        self.store.insert_many(list(map(self.at, ts)), vs)
        self.oracle.insert_many(ts, vs)

    @precondition(lambda self: not self.subject.disorder)
    @rule(steps=st.lists(st.tuples(st.integers(0, 2), values), max_size=40))
    def insert_many_in_order(self, steps: list[tuple[int, int]]) -> None:
        t, ts = self.newest, []
        for step, _ in steps:
            t += step
            ts.append(t)
        self.store.insert_many(list(map(self.at, ts)), [v for _, v in steps])
        self.oracle.insert_many(ts, [v for _, v in steps])

    @precondition(lambda self: len(self.oracle))
    @rule(count=st.integers(1, 30))
    def evict(self, count: int) -> None:
        for _ in range(min(count, len(self.oracle))):
            self.store.evict()
            self.oracle.evict()

    @precondition(lambda self: len(self.oracle) and self.subject.anywhere)
    @rule(data=st.data())
    def evict_anywhere(self, data: st.DataObject) -> None:
        t = self.known(data)
        self.store.evict(self.at(t))
        self.oracle.evict(t)

    @rule(t=st.integers(-45, 85))
    def evict_absent(self, t: int) -> None:
        """An absent time is no error and changes nothing."""
        if t not in self.oracle.times():
            self.store.evict(self.at(t))

    @precondition(lambda self: len(self.oracle))
    @rule()
    def evict_oldest_time(self) -> None:
        t = self.oracle.times()[0]
        self.store.evict(self.at(t))
        self.oracle.evict(t)

    @precondition(lambda self: len(self.oracle))
    @rule(data=st.data(), beside=st.integers(-1, 1))
    def evict_before(self, data: st.DataObject, beside: int) -> None:
        t = self.known(data) + beside
        assert self.store.evict_before(self.at(t)) == self.oracle.evict_before(t)

    @rule(a=st.integers(-45, 85), length=st.integers(-2, 60))
    def query_range(self, a: int, length: int) -> None:
        b = a + length if self.subject.ranges else max(a, self.newest) + 1
        assert self.store.query_range(self.at(a), self.at(b)) == self.oracle.query_range(a, b)

    @rule()
    def query(self) -> None:
        assert self.store.query() == self.oracle.query()

    @invariant()
    def agree(self) -> None:
        self.store.check_invariants()
        assert len(self.store) == len(self.oracle)
        assert self.store.times() == list(map(self.at, self.oracle.times()))


def check(subject: Subject, examples: int) -> None:
    machine = type("Machine", (Machine,), {"subject": subject})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=max(examples, 1), stateful_step_count=25)
    )


@pytest.mark.parametrize("subject", INTERPRETED, ids=lambda subject: subject.name)
def test_interpreted(subject: Subject) -> None:
    check(subject, settings.default.max_examples // 5)


@pytest.mark.parametrize("subject", COMPILED, ids=lambda subject: subject.name)
def test_compiled(subject: Subject) -> None:
    check(subject, settings.default.max_examples // 5)


@pytest.mark.deep
@pytest.mark.parametrize("subject", [*INTERPRETED, *COMPILED], ids=lambda subject: subject.name)
def test_at_length(subject: Subject) -> None:
    check(subject, settings.default.max_examples // 10)
