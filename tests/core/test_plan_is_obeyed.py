"""The engine does what the plan says, and decides nothing itself: another decision makes it do otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w
from muntin.connectors.spark.packed_rows import GROUP
from muntin.connectors.spark.partition_packer import PartitionPacker
from muntin.planning.plan import STORES, Plan
from muntin.slicing import tuple_slicer
from muntin.slicing.binding import ARRIVAL
from muntin.slicing.bound_plan import Settings
from muntin.slicing.combining.base import Combiner, WalkedWindows
from muntin.slicing.combining.finger_trees import FingerTrees
from muntin.slicing.combining.prefix_sums import PrefixSums
from muntin.slicing.combining.slice_queues import SliceQueues
from muntin.slicing.combining.standing_trees import StandingTrees
from muntin.slicing.operator import SlicingOperator
from muntin.slicing.snapshots.archive import unpack
from muntin.slicing.state import State

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.int64()})


def query(window: Any, **on: Any) -> Any:
    return mt.windows(x=window).aggregate(total=a.sum("v"), n=a.count()).on("t", **on)


def rows(*times: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"t": t, "v": t % 5} for t in times], schema=SCHEMA)


def decided(plan: Plan, question: str, answer: str) -> Plan:
    """The plan with another answer to a question."""
    assert question in [decision.question for decision in plan.decisions]
    changed = (replace(d, answer=answer) if d.question == question else d for d in plan.decisions)
    return replace(plan, decisions=tuple(changed))


def engine_of(query: Any, in_order: bool = False, **answers: str) -> SlicingOperator:
    """An operator whose plan has these answers, each to the question that begins with its name."""
    engine = SlicingOperator(query, Settings(in_order))
    plan = engine.bind(SCHEMA)
    decisions = plan.decisions
    for name, answer in answers.items():
        question = next(d.question for d in decisions.decisions if d.question.startswith(name))
        decisions = decided(decisions, question, answer)
    plan = replace(plan, decisions=decisions)
    engine.keep(plan, State(plan))
    return engine


def results(engine: SlicingOperator) -> list[Any]:
    found = []
    for part in (rows(*range(40)), rows(*range(40, 80))):
        found += engine.process(part).to_pylist()
        found += engine.advance(int(part["t"][-1].as_py()) - 10).to_pylist()
    return found + engine.finish().to_pylist()


# Keep tuples? ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [w.last(4, every=10), w.slide_by_tuple(30, every=3)], ids=str)
def test_tuples_stay_or_go_as_the_plan_says(window: Any) -> None:
    """In order, where every tuple that was sliced has its final place."""
    kept = {}
    for answer in ("yes", "no"):
        engine = engine_of(query(window), in_order=True, keep=answer)
        engine.process(rows(*range(40)))
        assert engine.state.tuples is not None
        kept[answer] = len(engine.state.tuples)
    assert engine_of(query(window), in_order=True).plan.keeps_tuples  # type: ignore[union-attr]  # it is bound
    assert kept["yes"] > kept["no"] == 0


def test_tuples_that_no_window_needs_go_whatever_the_plan_says() -> None:
    engines = [engine_of(query(w.count(5)), in_order=True, keep=answer) for answer in ("yes", "no")]
    assert results(engines[0]) == results(engines[1]) != []


# Split slices? ---------------------------------------------------------------------------------------


@pytest.fixture
def taken_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many keys had slices cut again, at each call."""
    found: list[int] = []
    take_back = tuple_slicer._take_back

    def noting(plan: Any, state: Any, tuples: Any, dirty: Any) -> Any:
        found.extend([len(dirty)] if len(dirty) else [])
        return take_back(plan, state, tuples, dirty)

    monkeypatch.setattr(tuple_slicer, "_take_back", noting)
    return found


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_slices_are_cut_again_or_not_as_the_plan_says(answer: str, taken_back: list[int]) -> None:
    engine = engine_of(query(w.punctuation(mt.col("v") == 4), allowed_lateness=30), split=answer)
    engine.process(rows(*range(0, 40, 2)))
    engine.advance(38)
    before = [(int(f), int(n)) for f, n in zip(engine.state.slices.first, engine.state.slices.n, strict=True)]
    assert len(before) > 2
    engine.process(rows(15, 19))
    engine.advance(39)
    after = [(int(f), int(n)) for f, n in zip(engine.state.slices.first, engine.state.slices.n, strict=True)]
    assert taken_back == ([1] if answer == "yes" else [])
    assert (set(before) <= set(after)) == (answer == "no")


def test_early_results_do_not_split_slices_where_the_plan_says_no(taken_back: list[int]) -> None:
    for answer in ("yes", "no"):
        taken_back.clear()
        engine = engine_of(query(w.punctuation(mt.col("v") == 4), early=mt.each_batch()), split=answer)
        for t in range(10):
            engine.process(rows(t))
        assert bool(taken_back) == (answer == "yes")


def test_splitting_is_harmless_where_the_plan_does_without() -> None:
    for window in (w.count(5), w.punctuation(mt.col("v") == 4)):
        engines = [engine_of(query(window), split=answer) for answer in ("yes", "no")]
        assert results(engines[0]) == results(engines[1]) != []


# Remove tuples from slices? --------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["no", "invert", "recompute"])
def test_tuples_leave_slices_as_the_plan_says(answer: str, taken_back: list[int]) -> None:
    """A late tuple shifts one tuple of each later slice, or, with the answer "no", is sliced at the end."""
    engine = engine_of(query(w.count(5), allowed_lateness=100), remove=answer)
    engine.process(rows(*range(0, 80, 2)))
    engine.advance(80)
    engine.process(rows(21))
    engine.advance(81)
    metrics = engine.state.metrics
    partials = len(engine.state.slices.partials.partials)
    assert bool(taken_back) == (answer != "no")
    assert metrics.inverts == (
        6 * partials if answer == "invert" else 0
    )  # the late tuple is in the third of eight slices
    if answer == "recompute":
        assert metrics.recomputed_tuples == 40 - 10  # but those of the two slices before the late tuple


# Store? ----------------------------------------------------------------------------------------------

COMBINERS: dict[str, type[Combiner]] = {
    "lazy": WalkedWindows, "prefix": PrefixSums, "two_stacks": SliceQueues, "daba": SliceQueues,
    "flatfat": StandingTrees, "fiba": FingerTrees,
}  # fmt: skip


@pytest.mark.parametrize("store", STORES)
def test_the_store_of_the_plan_combines(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[str] = set()
    for kind in {*COMBINERS.values()}:
        owner = next(c for c in kind.__mro__ if "reduce" in vars(c))

        def noting(self: Any, *arguments: Any, reduce: Any = owner.reduce) -> Any:
            used.add(type(self).__name__)
            return reduce(self, *arguments)

        monkeypatch.setattr(owner, "reduce", noting)
    shape = query(w.sliding(20, every=2))
    expected = results(engine_of(shape))
    used.clear()
    engine = engine_of(shape, store=store)
    assert engine.plan is not None
    plan = replace(engine.plan, decisions=replace(engine.plan.decisions, forced=True))
    engine.keep(plan, State(plan))
    assert results(engine) == expected
    assert COMBINERS[store].__name__ in used


# What crosses a shuffle? -----------------------------------------------------------------------------


@pytest.mark.parametrize("sends_slices", [True, False])
def test_slices_or_tuples_cross_the_shuffle_as_the_plan_says(
    sends_slices: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = query(w.tumbling(10))
    assert asked.explain().plan.sends_slices
    monkeypatch.setattr(Plan, "sends_slices", property(lambda plan: sends_slices))
    schema = SCHEMA.append(pa.field(ARRIVAL, pa.int64()))
    batch = pa.RecordBatch.from_pylist([{"t": t, "v": 1, GROUP: 0, ARRIVAL: t} for t in range(30)])
    newest, payloads = PartitionPacker(asked, (0,), schema).pack([batch])
    assert newest == 29
    (tables,) = [unpack(payload, checked=False)[1] for _, payload in payloads if payload is not None]
    sizes = {name: len(tables[name]) for name in ("slices", "tuples") if name in tables}
    assert sizes == ({"slices": 3} if sends_slices else {"tuples": 30})
