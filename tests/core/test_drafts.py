"""A step never changes the state that it is given, whether it succeeds or fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.embedded import Operator
from muntin.errors import DataError, MuntinError, UserCodeError
from muntin.slicing.combining.base import Combiner
from muntin.slicing.key_compaction import compact
from muntin.slicing.key_index import KeyIndex
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.partials import PartialSet
from muntin.slicing.window_changes import Change

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.int64()})
LATE = {"allowed_lateness": 5, "late": "route", "bad": "route"}


class Mood:
    """Whether the user's functions fail now."""

    bad = False


@pytest.fixture(autouse=True)
def good_mood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mood, "bad", False)


def combined(one: list[int], other: list[int]) -> list[int]:
    if Mood.bad:
        raise ValueError("bad mood")
    return sorted([*one, *other])[-3:]


class Triples(w.ForwardContextFree):
    """A window of each three tuples, counted in a list that is changed in place."""

    columns = ("v",)

    def initial_state(self) -> list[int]:
        return []

    def observe(self, state: list[int], record: w.Record) -> tuple[list[int], int, int]:
        state.append(record["v"])
        if Mood.bad and len(state) == 2:
            raise ValueError("bad mood")
        if len(state) == 3:
            state.clear()
        return state, int(len(state) == 1), int(len(state) == 1 and record.rank > 0)


SUMS = {"total": a.sum("v"), "middle": a.median("v")}
OWN = {"total": a.sum("v"), "largest": a.aggregate("v", lift=lambda v: [v], combine=combined)}
QUERIES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "on time": ({"ten": w.tumbling(10), "more": w.sliding(20, every=5)}, SUMS, LATE, {}),
    "sessions": ({"visit": w.session(3), "day": w.landmark(0, every=10)}, SUMS, LATE, {}),
    "empty windows": ({"ten": w.tumbling(10, emit_empty=True)}, SUMS, LATE, {}),
    "kept tuples": ({"three": w.count(3), "calls": w.punctuation(mt.col("v") > 3)}, SUMS, LATE, {}),
    "own combine": ({"ten": w.tumbling(10), "visit": w.session(3)}, OWN, LATE, {}),
    "own combine of kept tuples": ({"three": w.count(3), "ten": w.tumbling(10)}, OWN, LATE, {}),
    "own window": ({"triples": Triples(), "ten": w.tumbling(10)}, SUMS, LATE, {}),
    "early results": (
        {"ten": w.tumbling(10), "visit": w.session(3), "three": w.count(3)},
        SUMS,
        {**LATE, "early": mt.each_batch()},
        {},
    ),
    "early results of a period": (
        {"ten": w.tumbling(10), "high": w.threshold(mt.col("v") > 1)},
        SUMS,
        {"early": mt.every(10)},
        {},
    ),
    "forgotten keys": (
        {"three": w.count(3), "ten": w.tumbling(10, emit_empty=True), "last": w.last(2, every=5)},
        SUMS,
        {**LATE, "forget_keys_after": 4},
        {},
    ),
    "in order": ({"ten": w.tumbling(10), "three": w.count(3)}, SUMS, {}, {"in_order": True}),
    "one key": ({"ten": w.tumbling(10), "more": w.sliding(20, 5)}, {"total": a.sum("v")}, {}, {}),
    "two stacks": ({"long": w.sliding(20, every=1)}, {"most": a.max("v")}, {}, {"store": "two_stacks"}),
    "finger tree": ({"long": w.sliding(20, every=1)}, {"most": a.max("v")}, LATE, {"store": "fiba"}),
}  # fmt: skip


def rows(times: Any, keys: str = "ab") -> pa.RecordBatch:
    listed = [{"t": t, "k": keys[t % len(keys)], "v": t * 7 % 5} for t in times]
    return pa.RecordBatch.from_pylist(listed, schema=SCHEMA)


def operator_of(name: str) -> Operator:
    windows, aggregates, on, options = QUERIES[name]
    return mt.windows(**windows).aggregate(**aggregates).by("k").on("t", **on).operator(**options)


def begun(name: str) -> Operator:
    """An operator that has added tuples, late and bad ones too, and emitted windows."""
    op = operator_of(name)
    op.process(pa.Table.from_batches([rows(range(40))]))
    if name == "in order":
        return op
    op.advance(30)
    if "bad" in QUERIES[name][2]:
        op.process([{"t": None, "k": "a", "v": 1}, {"t": 1, "k": "c", "v": 1}, {"t": 27, "k": "a", "v": 1}])
    op.advance(35)
    op.process(pa.Table.from_batches([rows([36] if name == "one key" else [33, 36, 2])]))
    op.flush()
    return op


# What a state holds. ---------------------------------------------------------------------------------

SKIPPED = (Combiner, KeyIndex, PartialSet)
"""Caches that states share and that check themselves, and what never changes."""


def parts_of(value: Any, path: str = "state") -> Iterator[tuple[str, Any]]:
    """All arrays and plain values, each with the path to it."""
    if isinstance(value, SKIPPED) or callable(value):
        return
    if isinstance(value, np.ndarray):
        yield path, value
        items: Any = enumerate(value.tolist()) if value.dtype == object else ()
    elif isinstance(value, dict):
        yield f"{path}.names", tuple(map(str, value))
        items = ((str(name), part) for name, part in value.items())
    elif isinstance(value, list | tuple):
        yield f"{path}.length", len(value)
        items = enumerate(value)
    elif isinstance(value, pa.Array | pa.RecordBatch | pa.Table):
        yield path, value.to_pylist()
        items = ()
    elif type(value).__module__.startswith("muntin"):
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        named = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        named |= getattr(value, "__dict__", {})
        if dataclasses.is_dataclass(value):  # others are derived, once they are asked for
            named = {f.name: named[f.name] for f in dataclasses.fields(value) if f.init}
        items = ((name, part) for name, part in named.items())
    else:
        yield path, repr(value)
        items = ()
    for name, part in items:
        yield from parts_of(part, f"{path}.{name}")


def freeze(state: Any) -> dict[str, Any]:
    """A copy of all that a state holds.

    Arrays are compared and not made read-only: Numba would compile each kernel anew for such arrays.
    """
    found = {}
    for path, part in parts_of(state):
        found[path] = part
        if isinstance(part, np.ndarray):
            found[path] = part.copy() if part.dtype != object else len(part)
    return found


def assert_same(state: Any, before: dict[str, Any]) -> None:
    now = dict(parts_of(state))
    assert now.keys() == before.keys()
    for path, part in now.items():
        if not isinstance(part, np.ndarray):
            assert part == before[path], path
        elif part.dtype == object:
            assert len(part) == before[path], path
        else:
            assert part.tobytes() == before[path].tobytes(), path


def contents(engine: SlicingOperator) -> dict[str, Any]:
    """All tables as Arrow, and the plain values of the header."""
    assert engine.plan is not None
    tables = {name: table.to_arrow().to_pylist() for name, table in engine.state.tables(engine.plan)}
    return tables | {"header": repr(sorted(vars(engine.state.metrics).items())), "at": engine.state.watermark}


# Steps. ----------------------------------------------------------------------------------------------

Step = Callable[[SlicingOperator], Any]


def compaction(engine: SlicingOperator) -> None:
    assert engine.plan is not None
    state = engine.state.draft()
    compact(engine.plan, state, force=True)
    engine.keep(engine.plan, state)


def another_window(engine: SlicingOperator) -> dict[str, int]:
    return engine.change(Change({"x": w.session(4)}, remove=(engine.served.all[0].name,))).since


STEPS: dict[str, Step] = {
    "tuples": lambda engine: engine.process(rows(range(40, 60), "abcd")),
    "late tuples": lambda engine: engine.process(rows([31, 34, 35, 3])),
    "tuples and a watermark": lambda engine: engine.process(rows(range(40, 60)), watermark=55),
    "few tuples of one key": lambda engine: engine.process(rows(range(40, 46), "a"), watermark=46),
    "a quiet watermark": lambda engine: engine.advance(36),
    "a watermark": lambda engine: engine.advance(50),
    "the end": lambda engine: engine.finish(),
    "an early look": lambda engine: engine.early_look(),
    "idle": lambda engine: engine.close_idle(),
    "a window more": lambda engine: engine.change(Change({"seven": w.tumbling(7), "two": w.count(2)})).since,
    "another window": another_window,
    "an aggregate more": lambda engine: engine.change(Change(aggregates={"more": a.min("v")})).since,
    "statistics": lambda engine: dataclasses.replace(engine.stats(), state_bytes=0),  # stores are shared
    "compaction": compaction,
    "side outputs": lambda engine: (engine.take_late(), engine.take_bad()),
    "a newer time": lambda engine: engine.note_newest(70),
}  # fmt: skip


def shown(result: Any) -> str:
    return repr(result.to_pylist()) if isinstance(result, pa.Table) else repr(result)


def outcome(engine: SlicingOperator, step: Step) -> str:
    try:
        return shown(step(engine))
    except MuntinError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", QUERIES)
def test_a_step_leaves_its_state_as_it_was(name: str) -> None:
    """After each kind of step the old state is unchanged, and going on from it gives what a replay gives."""
    engine = begun(name)._engine
    saved, before, tables = (engine.plan, engine.state), freeze(engine.state), contents(engine)
    old = engine.state
    for step in STEPS.values():
        fresh = begun(name)._engine
        assert outcome(engine, step) == outcome(fresh, step)
        for follow in ("tuples", "a watermark", "the end"):
            assert outcome(engine, STEPS[follow]) == outcome(fresh, STEPS[follow])
        assert_same(old, before)
        engine.keep(*saved)
        assert contents(engine) == tables


@pytest.mark.parametrize("name", QUERIES)
def test_many_steps_leave_all_their_states_as_they_were(name: str) -> None:
    """One step after the other, from states that steps have made, which share more with each other."""
    engine = begun(name)._engine
    states = []
    for step in (*STEPS.values(), STEPS["tuples"], STEPS["late tuples"]):
        states.append((engine.state, freeze(engine.state)))
        if step is not STEPS["the end"]:
            outcome(engine, step)
    for state, before in states:
        assert_same(state, before)


def bad_tuple(engine: SlicingOperator) -> Any:
    """The second tuple of a batch has no time."""
    batch = pa.RecordBatch.from_pylist(
        [{"t": 41, "k": "d", "v": 1}, {"t": None, "k": "a", "v": 1}], schema=SCHEMA
    )
    return engine.process(batch, watermark=60)  # fmt: skip


def overflow(engine: SlicingOperator) -> Any:
    """Sums that do not fit into 64 bits, in slices or in windows."""
    huge = [{"t": t, "k": "e", "v": 2**62} for t in (41, 41, 42, 43, 44, 48)]
    return engine.process(pa.RecordBatch.from_pylist(huge, schema=SCHEMA), watermark=80)


FAILING = [(name, step) for name in QUERIES for step in (bad_tuple, overflow)]
FAILING = [(name, step) for name, step in FAILING if step is bad_tuple or "total" in QUERIES[name][1]]


@pytest.mark.parametrize(("name", "failing"), FAILING)
def test_a_step_that_fails_leaves_its_state_as_it_was(name: str, failing: Step) -> None:
    windows, aggregates, on, options = QUERIES[name]
    on = {name: value for name, value in on.items() if name != "bad"}
    query = mt.windows(**windows).aggregate(**aggregates).by("k").on("t", **on)
    engines = []
    for _ in range(2):
        op = query.operator(**options)
        op.process(pa.Table.from_batches([rows(range(40))]))
        op.advance(35)
        engines.append(op._engine)
    engine, fresh = engines
    state, before = engine.state, freeze(engine.state)
    for _ in range(2):
        with pytest.raises(DataError):
            failing(engine)
        assert engine.state is state
        assert_same(state, before)
    for step in ("tuples", "a watermark", "the end"):
        assert outcome(engine, STEPS[step]) == outcome(fresh, STEPS[step])


@pytest.mark.parametrize("name", ["own combine", "own combine of kept tuples", "own window"])
@pytest.mark.parametrize("step", ["tuples and a watermark", "a watermark", "the end"])
def test_code_of_the_user_that_fails_half_way(name: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, fresh = begun(name)._engine, begun(name)._engine
    state, before = engine.state, freeze(engine.state)
    with monkeypatch.context() as patch:
        patch.setattr(Mood, "bad", True)
        with pytest.raises(UserCodeError, match="bad mood"):
            STEPS[step](engine)
    assert engine.state is state
    assert_same(state, before)
    for follow in (step, "tuples", "the end"):
        assert outcome(engine, STEPS[follow]) == outcome(fresh, STEPS[follow])
