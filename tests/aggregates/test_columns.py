"""Every aggregate over columns, through random lifts, joins and reductions, against plain Python."""

import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from muntin import aggregates as a
from muntin.aggregates.base import Aggregate
from muntin.errors import DataError

sys.path.insert(0, str(Path(__file__).parent))  # what follows lies beside this file, not installed
from catalogue import CASES, TYPES, makes_sense
from rowsets import rowsets


def test_every_constructor_is_covered() -> None:
    assert set(CASES) == {name for name in a.__all__ if name.islower()} - {"col"}


ALL = [pytest.param(name, *case, id=f"{case[0]}") for name, cases in CASES.items() for case in cases]


@pytest.mark.parametrize(("name", "aggregate", "expected"), ALL)
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_any_tree_of_reductions_equals_recomputation(
    name: str, aggregate: Aggregate, expected: Any, data: st.DataObject
) -> None:
    rowset = data.draw(rowsets(aggregate, name, expected))
    rowset.check()
    for _ in range(data.draw(st.integers(0, 3))):
        size = len(rowset.content)
        step = data.draw(st.sampled_from(["take", "cut", "ranges", "gather", "snapshot"]))
        if step == "take":
            rowset = rowset.take(data.draw(st.permutations(range(size))))
        elif step == "cut":
            at = data.draw(st.integers(0, size))
            rowset = rowset.cut(at, size).join(rowset.cut(0, at))
        elif step == "ranges":
            rowset = rowset.reduce(None, data.draw(ranges(size)))
        elif step == "gather" and size:
            rows = data.draw(st.lists(st.integers(0, size - 1), max_size=6))
            rowset = rowset.reduce(rows, data.draw(ranges(len(rows))))
        else:
            rowset = rowset.snapshot()
    rowset.check()


def ranges(size: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    edge = st.integers(0, size)
    return st.lists(st.tuples(edge, edge).map(lambda pair: (min(pair), max(pair))), max_size=4)


@pytest.mark.parametrize(("name", "aggregate", "expected"), ALL)
@settings(max_examples=settings.default.max_examples // 4)
@given(data=st.data())
def test_invert_leaves_the_rest(name: str, aggregate: Aggregate, expected: Any, data: st.DataObject) -> None:
    if not aggregate.invertible:
        return
    rowset = data.draw(rowsets(aggregate, name, expected))
    if not rowset.bound.invertible:
        return
    size = len(rowset.content)
    cut = data.draw(st.integers(0, size))
    whole, part, rest = (rowset.reduce(None, [edges]) for edges in ((0, size), (0, cut), (cut, size)))
    states = {p: p.invert(whole.states[p], part.states[p]) for p in rowset.partials}
    rest.of(states, rest.content).check()


@pytest.mark.parametrize(("name", "aggregate", "expected"), ALL)
def test_types_without_meaning_are_refused(name: str, aggregate: Aggregate, expected: Any) -> None:
    for type_ in TYPES:
        types = [type_] * len(aggregate.inputs)
        if types and not makes_sense(name, types):
            with pytest.raises(DataError, match=f'{name} needs .*: "[xy]" is'):
                aggregate.bind(tuple(types))


@pytest.mark.parametrize(
    "aggregate", [case[0] for name, cases in CASES.items() if name != "aggregate" for case in cases]
)
def test_parameters_recreate_the_aggregate(aggregate: Aggregate) -> None:
    assert getattr(a, aggregate.constructor)(**aggregate.parameters()) == aggregate
